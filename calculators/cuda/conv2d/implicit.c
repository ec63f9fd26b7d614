/* SPDX-License-Identifier: MIT */
/* Implicit GEMM: an operation as one GEMM, the choice of its tile, and of the number of splits of K. */
#include "calculators/cuda/conv2d/implicit.h"

#include <string.h>

const cuda_implicit_tile cuda_implicit_tiles[IMPLICIT_TILES] = {{128, 128}, {64, 128}, {64, 64}, {32, 128}};

/* Limit of indices, so far from INT_MAX that sums of two fit an int. */
static const int64_t MOST = INT32_MAX / 4;
static const int64_t MOST_PARTS = INT64_C(256) << 20; /* bytes of all partial sums */
enum { ALIGNMENT = 256 };

static int greatest_divisor(int a, int b)
{
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The x with a x = 1 mod n. */
static int inverse(int a, int n)
{
    int64_t x = 0;
    while (x < n && x * a % n != 1 % n) x++;
    return (int)x;
}

static void set_window(cuda_implicit *p, const cuda_conv2d *g)
{
    for (int i = 0; i < 2; i++) {
        p->taps[i] = g->window.size[i];
        p->padding[i] = g->window.padding_before[i];
        p->stride[i] = g->window.stride[i];
        p->dilation[i] = g->window.dilation[i];
        p->phases[i] = p->divisor[i] = 1;
        if (!p->transposed) continue;
        p->phases[i] = p->stride[i];
        p->divisor[i] = greatest_divisor(p->stride[i], p->dilation[i]);
        int between = p->stride[i] / p->divisor[i];
        p->inverse[i] = inverse(p->dilation[i] / p->divisor[i] % between, between);
    }
}

static void set_source(cuda_implicit *p, const sdlf_tensor *image, int64_t group_channels)
{
    const int64_t *side = image->shape.dim;
    p->source = image->data;
    p->source_plane = side[2] * side[3];
    p->source_group = group_channels * p->source_plane;
    p->source_image = side[1] * p->source_plane;
    p->source_height = (int)side[2];
    p->source_width = (int)side[3];
}

static void set_result(cuda_implicit *p, const sdlf_tensor *image, int64_t group_channels)
{
    const int64_t *side = image->shape.dim;
    p->result_row = side[2] * side[3];
    p->result_group = group_channels * p->result_row;
    p->result_image = side[1] * p->result_row;
    p->result_width = (int)side[3];
    p->extent[0] = (int)side[2];
    p->extent[1] = (int)side[3];
    p->rows = (int)group_channels;
    p->columns = (int)(side[0] * p->result_row);
}

cuda_implicit cuda_implicit_of(const sdlf_operation *op)
{
    cuda_implicit p;
    memset(&p, 0, sizeof p);
    const sdlf_tensor *x, *y, *w;
    cuda_conv2d_operands(op, &x, &w, &y);
    cuda_conv2d g = cuda_conv2d_of(op, x, w, y);
    int64_t window = (int64_t)g.window.size[0] * g.window.size[1], area = g.out_height * g.out_width;
    p.weights = op->kind == SDLF_CONV2D_BACKWARD_WEIGHTS;
    p.transposed = op->kind == SDLF_CONV2D_BACKWARD_INPUT;
    p.groups = (int)g.groups;
    set_window(&p, &g);
    set_source(&p, p.transposed ? y : x, p.transposed ? g.group_filters : g.group_channels);
    set_result(&p, p.transposed ? x : y, p.transposed ? g.group_channels : g.group_filters);
    p.depth = (int)(window * (p.transposed ? g.group_filters : g.group_channels));
    p.a_row = p.depth;
    p.a_group = (int64_t)p.rows * p.depth;
    p.result_count = sdlf_tensor_count(&op->out[0]);
    if (p.weights) {
        p.a_row = area;
        p.a_group = g.group_filters * area;
        p.a_image = g.filters * area;
        p.depth = (int)(g.batch * area);
        p.columns = (int)(g.group_channels * window);
        p.result_row = p.columns;
        p.result_group = (int64_t)p.rows * p.columns;
    }
    return p;
}

bool cuda_implicit_counts(const sdlf_operation *op)
{
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(op, &x, &w, &y);
    const sdlf_window2d *window = &op->conv2d.window;
    if (sdlf_tensor_count(x) == 0 || sdlf_tensor_count(y) == 0 || sdlf_tensor_count(w) == 0) return false;
    for (int i = 0; i < 2; i++) {
        int64_t reach = (int64_t)window->size[i] * window->dilation[i];
        int64_t side = x->shape.dim[2 + i] + window->padding_before[i] + window->padding_after[i] + reach;
        if (side > MOST || (i == 0 && side > 2 * MOST / x->shape.dim[3])) return false;
        if (window->stride[i] > 1024) return false; /* phases of backward input are enumerated one by one */
    }
    int64_t pixels = x->shape.dim[0] * x->shape.dim[2] * x->shape.dim[3];
    int64_t outputs = y->shape.dim[0] * y->shape.dim[2] * y->shape.dim[3];
    int64_t taps = sdlf_shape_span(w->shape, 2, 4);
    return pixels <= MOST && outputs <= MOST && taps * w->shape.dim[0] <= MOST && taps * w->shape.dim[1] <= MOST &&
           sdlf_shape_span(x->shape, 1, 4) <= MOST && sdlf_shape_span(y->shape, 1, 4) <= MOST &&
           op->conv2d.groups <= 65536;
}

bool cuda_implicit_takes(const sdlf_operation *op)
{
    return op->conv2d.window.size[0] + op->conv2d.window.size[1] <= IMPLICIT_SIDES && cuda_implicit_counts(op);
}

/* ---- the choice of tile and parts ---- */

static int64_t blocks_of(const cuda_implicit *p)
{
    return (int64_t)p->row_tiles * p->column_tiles * p->splits * p->phases[0] * p->phases[1] * p->groups;
}

static void cut(cuda_implicit *p, int tile, int splits)
{
    int64_t largest = p->columns;
    if (p->transposed)
        largest = p->columns / ((int64_t)p->extent[0] * p->extent[1]) * cuda_ceil_div(p->extent[0], p->stride[0]) *
                  cuda_ceil_div(p->extent[1], p->stride[1]);
    p->row_tiles = (int)cuda_ceil_div(p->rows, cuda_implicit_tiles[tile].rows);
    p->column_tiles = (int)cuda_ceil_div(largest, cuda_implicit_tiles[tile].columns);
    p->splits = splits;
}

/* Multiply-adds of words that a multiprocessor completes in a clock, loads and everything else of a k-step included. */
static double rate_of(const cuda_calculator *calculator, sdlf_dtype dtype, int tile)
{
    static const double efficiency[IMPLICIT_TILES] = {0.80, 0.72, 0.60, 0.55};
    double rate = 128;
    if (dtype == SDLF_FLOAT64)
        rate = calculator->capability == 80 || calculator->capability == 90 || calculator->capability == 100 ? 64 : 2;
    else if (calculator->math != SDLF_MATH_FP32)
        rate = 400;
    return rate * efficiency[tile];
}

/* Estimated clocks of the whole GEMM. A multiprocessor's blocks alternate; with only one or two resident, it idles
 * between a k-step's loads and its multiplications. Split-K costs another launch and the traffic of the partial sums. */
static double clocks_of(const cuda_calculator *calculator, const cuda_implicit *p, sdlf_dtype dtype, int tile)
{
    const cuda_implicit_tile *size = &cuda_implicit_tiles[tile];
    int width =
        dtype == SDLF_FLOAT32 && (calculator->math == SDLF_MATH_FP16 || calculator->math == SDLF_MATH_BF16) ? 2 : 1;
    int64_t phases = (int64_t)p->phases[0] * p->phases[1];
    double steps = (double)cuda_ceil_div(cuda_ceil_div(p->depth / phases, IMPLICIT_DEPTH * width), p->splits) + 8;
    double step = (double)size->rows * size->columns * IMPLICIT_DEPTH / rate_of(calculator, dtype, tile);
    double least = 400; /* a k-step of one block by itself: memory latency */
    double load = (double)cuda_ceil_div(blocks_of(p), calculator->multiprocessors);
    double turn = load < 4 ? load : 4; /* resident blocks */
    double clocks = load / turn * steps * (turn * step > least ? turn * step : least) * (1 + 0.25 / turn);
    if (p->splits > 1) clocks += 4000 + (double)p->result_count * (p->splits + 1) * sdlf_dtype_size(dtype) / 2000;
    return clocks;
}

/* Choose the tile and p->splits with the least estimated time. Depends only on shapes, math mode and device. */
static int choose(const cuda_calculator *calculator, cuda_implicit *p, sdlf_dtype dtype)
{
    static const int splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    int64_t bytes = p->result_count * (int64_t)sdlf_dtype_size(dtype), steps = cuda_ceil_div(p->depth, IMPLICIT_DEPTH);
    int best_tile = 2, best_splits = 1;
    double best = -1;
    for (int tile = 0; tile < IMPLICIT_TILES; tile++) {
        if (dtype == SDLF_FLOAT64 && tile != 2) continue;
        for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
            if (splits[i] > 1 && (steps < 4 * splits[i] || bytes * splits[i] > MOST_PARTS)) break;
            cut(p, tile, splits[i]);
            if (blocks_of(p) > INT32_MAX) continue;
            double clocks = clocks_of(calculator, p, dtype, tile);
            if (best >= 0 && clocks >= best) continue;
            best = clocks;
            best_tile = tile;
            best_splits = splits[i];
        }
    }
    cut(p, best_tile, best_splits);
    return best_tile;
}

/* ---- running ---- */

/* The workspace: w' of backward input, then the partial sums. */
static int64_t exchanged_bytes(const cuda_implicit *p, sdlf_dtype dtype)
{
    if (!p->transposed) return 0;
    int64_t bytes = (int64_t)p->groups * p->rows * p->depth * (int64_t)sdlf_dtype_size(dtype);
    return cuda_ceil_div(bytes, ALIGNMENT) * ALIGNMENT;
}

int64_t cuda_implicit_workspace(const cuda_implicit *p, sdlf_dtype dtype)
{
    int64_t parts = p->splits > 1 ? p->splits * p->result_count * (int64_t)sdlf_dtype_size(dtype) : 0;
    return exchanged_bytes(p, dtype) + parts;
}

int64_t conv2d_implicit_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_implicit p = cuda_implicit_of(op);
    choose((const cuda_calculator *)calculator, &p, op->out[0].dtype);
    return cuda_implicit_workspace(&p, op->out[0].dtype);
}

/* True if a may be loaded 4 elements at a time. */
static bool is_wide(const cuda_implicit *p)
{
    bool aligned = ((uintptr_t)p->a & 15) == 0;
    if (!p->transposed) return aligned && p->a_row % 4 == 0;
    return aligned && p->depth / (p->taps[0] * p->taps[1]) % 4 == 0; /* rows of every phase */
}

cuda_epilogue cuda_implicit_bind(cuda_implicit *p, const sdlf_operation *op)
{
    const sdlf_tensor *result = &op->out[0];
    cuda_epilogue epilogue = {
        .dtype = result->dtype,
        .data = result->data,
        .count = p->result_count,
        .channels = result->shape.dim[1],
        .area = result->shape.dim[2] * result->shape.dim[3],
    };
    if (op->kind == SDLF_CONV2D_FORWARD) {
        epilogue.bias = sdlf_tensor_present(&op->in[2]) ? op->in[2].data : NULL;
        epilogue.residual = sdlf_tensor_present(&op->in[3]) ? op->in[3].data : NULL;
        epilogue.activation = op->conv2d.activation;
    }
    char *workspace = op->workspace.data;
    p->a = p->transposed ? workspace : op->in[1].data; /* w; backward weights: dy */
    p->result = p->splits > 1 ? workspace + exchanged_bytes(p, result->dtype) : result->data;
    p->bias = epilogue.bias;
    p->residual = epilogue.residual;
    p->activation = epilogue.activation;
    p->wide = is_wide(p);
    return epilogue;
}

sdlf_status cuda_implicit_begin(sdlf_calculator *calculator, const cuda_implicit *p, const sdlf_operation *op)
{
    if (!p->transposed) return SDLF_OK;
    return cuda_implicit_exchange(calculator, p, op->out[0].dtype, op->in[1].data, op->workspace.data);
}

sdlf_status cuda_implicit_end(sdlf_calculator *calculator, const cuda_implicit *p, const sdlf_operation *op,
                              const cuda_epilogue *epilogue)
{
    sdlf_status status = SDLF_OK;
    if (p->splits > 1) status = cuda_implicit_epilogue(calculator, epilogue, p->result, p->splits);
    if (status != SDLF_OK || !p->weights || !sdlf_tensor_present(&op->out[1])) return status;
    return cuda_bias_gradient(calculator, &op->in[1], &op->out[1]);
}

static sdlf_status multiply(sdlf_calculator *base, const cuda_implicit *p, sdlf_dtype dtype, int tile)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    bool rounds =
        calculator->math != SDLF_MATH_FP32 && (calculator->math == SDLF_MATH_FP16 || cuda_has_tensor_cores(calculator));
    return dtype == SDLF_FLOAT32 && rounds ? cuda_implicit_tensor(base, p, tile)
                                           : cuda_implicit_simt(base, p, dtype, tile);
}

sdlf_status conv2d_implicit_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_implicit p = cuda_implicit_of(op);
    int tile = choose(cuda_calculator_from(calculator), &p, op->out[0].dtype);
    cuda_epilogue epilogue = cuda_implicit_bind(&p, op);
    sdlf_status status = cuda_implicit_begin(calculator, &p, op);
    if (status == SDLF_OK) status = multiply(calculator, &p, op->out[0].dtype, tile);
    return status == SDLF_OK ? cuda_implicit_end(calculator, &p, op, &epilogue) : status;
}
