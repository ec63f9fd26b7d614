/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool_forward on tensor cores: factors rounded to tf32, float16 or bfloat16 (see conv2d_pool/forward.cu).
 *
 * The convolution is a product: patches (positions, C R R taps) x weights (taps, 32 filters). A warp makes 8 windows of 32
 * filters: the four positions of a window lie in the four places of a thread's sums that belong to one row of the product, so
 * that a thread pools by itself. A block brings some rows of windows of one image, all channels, with zeros around them, and
 * the weights of its 32 filters to shared memory, and so no patch is ever stored. 8 N K P Q C R R FLOPs. */
#include "calculators/cuda/conv2d_pool/forward.cuh"
#include "calculators/cuda/mma.cuh"

enum { THREADS = 256, WARP = 32, WARPS = 8, FILTERS = 32, WEIGHT_LINE = FILTERS + 8, WINDOWS = 8 };

struct forward_layout {
    int line, lines, taps, steps; /* of a channel's rows; C R R, and in eights */
    int piece_rows, pieces;       /* rows of windows in a piece; pieces of an image */
};

static int64_t memory_of(const forward_layout &l, const pool_geometry &g)
{
    return (static_cast<int64_t>(g.channels) * l.line * l.lines + l.steps * 8 * (WEIGHT_LINE + 1)) * 4;
}

/* As many rows of windows as make 64 windows, or fewer where that leaves multiprocessors without work. */
static forward_layout layout_of(const cuda_calculator *calculator, const pool_geometry &g, int side)
{
    forward_layout l;
    l.line = 2 * g.out_width + side - 1;
    l.taps = g.channels * side * side;
    l.steps = (l.taps + 7) / 8;
    l.piece_rows = 64 / g.out_width;
    if (l.piece_rows > g.out_height) l.piece_rows = g.out_height;
    if (l.piece_rows < 1) l.piece_rows = 1;
    l.pieces = (g.out_height + l.piece_rows - 1) / l.piece_rows;
    while (l.piece_rows > 1 && g.batch * l.pieces < calculator->multiprocessors) {
        l.piece_rows /= 2;
        l.pieces = (g.out_height + l.piece_rows - 1) / l.piece_rows;
    }
    l.lines = 2 * l.piece_rows + side - 1;
    return l;
}

/* Grid: x over blocks that share the pieces of images, y over groups of filters. */
template <sdlf_math MATH, int R>
static __global__ void __launch_bounds__(THREADS) conv2d_pool_forward_tensor(pool_forward<float> p, forward_layout l)
{
    extern __shared__ __align__(16) uint32_t shared[];
    const pool_geometry &g = p.g;
    uint32_t *weights = shared, *x = weights + l.steps * 8 * WEIGHT_LINE;
    int *offset = reinterpret_cast<int *>(x + g.channels * l.line * l.lines); /* of a tap from a position */
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, group = lane / 4, t = lane % 4;
    int k0 = blockIdx.y * FILTERS;
    for (int k = warp; k < FILTERS; k += WARPS) {
        for (int tap = lane; tap < l.steps * 8; tap += WARP) {
            bool valid = k0 + k < g.filters && tap < l.taps;
            float w = valid ? p.w[static_cast<int64_t>(k0 + k) * l.taps + tap] : 0.0f;
            weights[tap * WEIGHT_LINE + k] = factor_bits<MATH>(w);
        }
    }
    for (int tap = threadIdx.x; tap < l.steps * 8; tap += THREADS) {
        int c = tap / (R * R), r = tap / R % R, s = tap % R;
        offset[tap] = tap < l.taps ? (c * l.lines + r) * l.line + s : 0;
    }
    for (int piece = blockIdx.x; piece < g.batch * l.pieces; piece += gridDim.x) {
        int n = piece / l.pieces, p0 = piece % l.pieces * l.piece_rows;
        __syncthreads();
        for (int line = warp; line < g.channels * l.lines; line += WARPS) {
            const float *plane = p.x + static_cast<int64_t>(n * g.channels + line / l.lines) * g.height * g.width;
            int row = 2 * p0 - g.top + line % l.lines;
            for (int column = lane; column < l.line; column += WARP)
                x[line * l.line + column] = factor_bits<MATH>(pool_pixel(plane, g, row, column - g.left));
        }
        __syncthreads();
        int windows = min(l.piece_rows, g.out_height - p0) * g.out_width, area = g.out_height * g.out_width;
        for (int first = warp * WINDOWS; first < windows; first += WARPS * WINDOWS) {
            int window = min(first + group, windows - 1);
            const uint32_t *corner = x + 2 * (window / g.out_width) * l.line + 2 * (window % g.out_width);
            float sums[2][4][4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    int k = k0 + j * 8 + 2 * t + e;
                    float bias = p.bias != nullptr && k < g.filters ? p.bias[k] : 0.0f;
                    sums[0][j][e] = sums[0][j][e + 2] = sums[1][j][e] = sums[1][j][e + 2] = bias;
                }
            }
#pragma unroll 4
            for (int step = 0; step < l.steps; step++) {
                int tap = step * 8 + t;
                uint32_t a[2][4];
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const uint32_t *at = corner + offset[tap + 4 * half];
                    bool valid = tap + 4 * half < l.taps;
                    a[0][2 * half] = valid ? at[0] : 0u;
                    a[0][2 * half + 1] = valid ? at[1] : 0u;
                    a[1][2 * half] = valid ? at[l.line] : 0u;
                    a[1][2 * half + 1] = valid ? at[l.line + 1] : 0u;
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    uint32_t b[2] = {weights[tap * WEIGHT_LINE + j * 8 + group],
                                     weights[(tap + 4) * WEIGHT_LINE + j * 8 + group]};
                    mma_tf32(sums[0][j], a[0], b);
                    mma_tf32(sums[1][j], a[1], b);
                }
            }
            if (first + group >= windows) continue;
#pragma unroll
            for (int j = 0; j < 4; j++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    int k = k0 + j * 8 + 2 * t + e;
                    if (k >= g.filters) continue;
                    const float four[4] = {sums[0][j][e], sums[0][j][e + 2], sums[1][j][e], sums[1][j][e + 2]};
                    unsigned marks;
                    int64_t to = (static_cast<int64_t>(n) * g.filters + k) * area + p0 * g.out_width + window;
                    p.y[to] = pool_four(four, g.first, marks);
                    if (p.mask != nullptr) p.mask[to] = static_cast<uint8_t>(marks);
                }
            }
        }
    }
}

bool cuda_conv2d_pool_forward_suits(const cuda_calculator *calculator, const pool_geometry &g, int side)
{
    return calculator->math != SDLF_MATH_FP32 && cuda_has_tensor_cores(calculator) &&
           memory_of(layout_of(calculator, g, side), g) <= calculator->shared_most;
}

template <sdlf_math MATH>
static sdlf_status launch(const cuda_calculator *calculator, const pool_forward<float> &p, int side)
{
    const forward_layout l = layout_of(calculator, p.g, side);
    const int bytes = (int)memory_of(l, p.g);
    int pieces = p.g.batch * l.pieces, most = 4 * calculator->multiprocessors;
    dim3 grid((unsigned)(pieces < most ? pieces : most), (unsigned)((p.g.filters + FILTERS - 1) / FILTERS));
    sdlf_status status = SDLF_OK;
    with_side(side, [&](auto r) {
        status = allow_shared(conv2d_pool_forward_tensor<MATH, r.value>, bytes);
        if (status == SDLF_OK)
            conv2d_pool_forward_tensor<MATH, r.value><<<grid, THREADS, bytes, calculator->stream>>>(p, l);
    });
    return status == SDLF_OK ? cuda_check_launch("conv2d_relu_max_pool_forward") : status;
}

sdlf_status cuda_conv2d_pool_forward_tensor(const cuda_calculator *calculator, const pool_forward<float> &p, int side)
{
    switch (calculator->math) {
    case SDLF_MATH_FP16: return launch<SDLF_MATH_FP16>(calculator, p, side);
    case SDLF_MATH_BF16: return launch<SDLF_MATH_BF16>(calculator, p, side);
    default: return launch<SDLF_MATH_TF32>(calculator, p, side);
    }
}
