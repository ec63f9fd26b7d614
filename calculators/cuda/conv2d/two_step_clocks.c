/* How long a convolution in two steps takes (conv2d/two_step.c), from its counts: launches, bytes that each of them moves, and the turns
 * in which multiprocessors take the tiles of cuBLAS's products. The numbers are fitted to times measured on an H200, of the layers of
 * eight networks at batch 1 to 128 and of others drawn at random, in fp32, tf32, bf16 and float64. */
#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/gemm/factors.h"

/* Clocks of a launch, of a product's beginning and end, and of a second kernel that adds parts of sums; bytes that a multiprocessor
 * moves in a clock: steps around the product, the product itself, and the gathering of dx. */
static const double launch = 2510, around = 2970, parted = 2240;
static const double step_bytes = 10.1, product_bytes = 13.6, gather_bytes = 2.4;

/* Tiles that cuBLAS has kernels for, and which share of the largest's rate they reach. */
static const struct {
    int rows, columns;
    double share;
} tiles[] = {{128, 64, 1}, {64, 128, 1}, {64, 64, 0.81}, {32, 64, 0.55}, {64, 32, 0.55}, {32, 32, 0.44}};

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* What is to be done. */
typedef struct work {
    int64_t batch, rows, columns, depth; /* a product for each image */
    int launches;
    double bytes, moved, gathered; /* by the steps around it, by the product, by those that gather dx */
    bool odd;                      /* lines of a plane are none that tensor cores are given in wide steps */
} work;

static work work_of(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const cuda_conv2d g = cuda_conv2d_geometry(op);
    bool half = cuda_has_half_factors(calculator->math) && op->out[0].dtype == SDLF_FLOAT32,
         made = !cuda_is_pointwise(&g);
    double size = (double)sdlf_dtype_size(op->out[0].dtype), factor = half ? 2 : size, rounding = half ? 6 : 0;
    int64_t taps = g.channels * g.window.size[0] * g.window.size[1], area = g.out_height * g.out_width;
    double x = (double)(g.batch * g.channels * g.height * g.width), y = (double)(g.batch * g.filters * area);
    double w = (double)(g.filters * taps), columns = (double)g.batch * (double)(taps * area);
    const double cache = 48 << 20; /* beyond, columns come back from memory */
    double again = size < 8 && factor * columns > cache ? factor * columns : 0; /* doubles are bound by arithmetic */
    work k = {.batch = g.batch, .launches = 1, .odd = area % (half ? 8 : 4) != 0};
    if (op->kind == SDLF_CONV2D_FORWARD) {
        k.rows = g.filters, k.columns = area, k.depth = taps;
        k.bytes = rounding * w + (made ? size * (x < columns ? x : columns) + factor * columns : rounding * x);
        k.moved = factor * columns + size * y;
        if (made) k.bytes += again;
        k.launches += half + (made || half);
        if (op->conv2d.activation.function != SDLF_IDENTITY || sdlf_tensor_present(&op->in[2])) {
            k.bytes += 2 * size * y;
            k.launches++;
        }
    } else if (op->kind == SDLF_CONV2D_BACKWARD_WEIGHTS) {
        k.rows = g.filters, k.columns = taps, k.depth = area;
        k.bytes = rounding * y + (made ? size * (x < columns ? x : columns) + factor * columns : rounding * x) +
                  size * w * (double)g.batch;
        k.moved = factor * (columns + y) + size * w * (double)g.batch;
        if (made) k.bytes += again;
        k.launches += 1 + half + (made || half);
    } else {
        k.rows = taps, k.columns = area, k.depth = g.filters;
        k.bytes = rounding * (w + y);
        k.moved = factor * y + size * columns;
        bool single = g.window.size[0] == 1 && g.window.size[1] == 1; /* no pixel has several windows */
        if (made && single) k.bytes += size * (columns + x);
        if (made && !single) k.gathered = size * (columns + x);
        k.launches += 2 * half + made;
    }
    return k;
}

/* Multiplications that a multiprocessor makes in a clock. */
static double rate_of(const cuda_calculator *calculator, sdlf_dtype dtype)
{
    if (dtype == SDLF_FLOAT64)
        return calculator->capability == 80 || calculator->capability == 90 || calculator->capability == 100 ? 156 : 2;
    if (calculator->math == SDLF_MATH_FP32) return 93;
    return calculator->math == SDLF_MATH_TF32 ? 301 : 1048;
}

/* Tiles in turns, or, of a single product, cut along its sums as well. */
static double product_clocks(const cuda_calculator *calculator, const work *k, double rate)
{
    static const int parts[] = {1, 4, 16};
    const double all = step_bytes * calculator->multiprocessors;
    double best = 0;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        int64_t each = k->batch * divide_up(k->rows, tiles[i].rows) * divide_up(k->columns, tiles[i].columns);
        double step = (double)tiles[i].rows * tiles[i].columns / (rate * tiles[i].share);
        for (size_t j = 0; j < (k->batch == 1 ? sizeof parts / sizeof parts[0] : 1); j++) {
            double turns = (double)divide_up(each * parts[j], calculator->multiprocessors);
            double clocks = turns * (double)divide_up(k->depth, parts[j]) * step;
            if (parts[j] > 1) clocks += parted + 8.0 * parts[j] * (double)(k->rows * k->columns) / all;
            if (best == 0 || clocks < best) best = clocks;
        }
    }
    return best;
}

double cuda_two_step_clocks(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const work k = work_of(calculator, op);
    double rate = rate_of(calculator, op->out[0].dtype), per_clock = calculator->multiprocessors;
    bool tensor = calculator->math != SDLF_MATH_FP32 && op->out[0].dtype == SDLF_FLOAT32;
    if (tensor && k.odd) rate /= calculator->math == SDLF_MATH_TF32 ? 2.3 : 5.8;
    double product = product_clocks(calculator, &k, rate), moving = k.moved / (product_bytes * per_clock);
    return launch * k.launches + around + (product > moving ? product : moving) +
           (k.bytes / step_bytes + k.gathered / gather_bytes) / per_clock;
}
