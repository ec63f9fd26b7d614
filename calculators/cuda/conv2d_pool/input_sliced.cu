/* SPDX-License-Identifier: MIT */
/* The input gradient of conv2d_relu_max_pool on tensor cores for small images (see conv2d_pool/input.cu for the formula).
 *
 * A sliced-K GEMM: weights (16 channels, filters and taps) x da (filters and taps, pixels). A block computes some rows of dx of one image, up
 * to 72 pixels, for 16 channels: it unpools the rows of da that it needs, of all filters, padded with zeros, into shared memory. Its warps
 * share the filters: each keeps the weights of an eighth of them in registers, up to 13 k-steps of 8. The warps' sums are added in shared
 * memory, in order. 2 N C H W K R R FLOPs. */
#include "calculators/cuda/conv2d_pool/conv2d_pool.cuh"
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

enum { THREADS = 256, WARP = 32, WARPS = 8, CHANNELS = 16, TILES = 9, PIXELS = 8 * TILES, STEPS = 13 };

typedef float slice_sums[WARPS][CHANNELS][PIXELS + 8]; /* padded against bank conflicts */

struct sliced_input {
    const float *w, *dy;
    const uint8_t *mask;
    float *dx;
    pool_geometry g;
    int share;              /* filters of a warp */
    int rows, bands;        /* rows of dx that a block computes; blocks an image */
    int line, lines, plane; /* elements of a row, rows, elements in all, of a filter's da in shared memory */
};

/* Unpool da of all filters: line i is row h0 + top - (R - 1) + i, column j is left - (R - 1) + j; one warp a filter. */
template <sdlf_math MATH, int R>
static __device__ __forceinline__ void unpool(const sliced_input &p, uint32_t *da, int n, int h0)
{
    const pool_geometry &g = p.g;
    int first_row = h0 + g.top - (R - 1), first_column = g.left - (R - 1), area = g.out_height * g.out_width;
    int from = max(first_row, 0) / 2 * g.out_width, to = min((first_row + p.lines + 1) / 2, g.out_height) * g.out_width;
    for (int window = from + threadIdx.x % WARP; window < to; window += WARP) {
        int row = 2 * (window / g.out_width) - first_row, column = 2 * (window % g.out_width) - first_column;
#pragma unroll 4
        for (int k = threadIdx.x / WARP; k < g.filters; k += WARPS) {
            int at = (n * g.filters + k) * area + window;
            float value = p.dy[at];
            unsigned marks = p.mask[at];
            if ((marks & (marks - 1)) != 0) value /= static_cast<float>(__popc(marks));
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int line = row + i / 2, j = column + i % 2;
                if ((marks >> i & 1) != 0 && line >= 0 && line < p.lines && j >= 0 && j < p.line)
                    da[k * p.plane + line * p.line + j] = operand_bits<MATH>(value);
            }
        }
    }
}

/* Grid: x over bands of images, y over groups of channels. */
template <sdlf_math MATH, int R>
static __global__ void __launch_bounds__(THREADS) conv2d_pool_input_sliced(sliced_input p)
{
    const int taps = R * R;
    extern __shared__ __align__(16) uint32_t shared[];
    slice_sums &results = *reinterpret_cast<slice_sums *>(shared);
    uint32_t *da = shared + sizeof(slice_sums) / sizeof(uint32_t);
    int *offset = reinterpret_cast<int *>(
        da + WARPS * p.share * p.plane); /* of a term (filter, tap) from a pixel, within a warp's filters */
    const pool_geometry &g = p.g;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, group = lane / 4, t = lane % 4;
    int n = blockIdx.x / p.bands, h0 = blockIdx.x % p.bands * p.rows, c0 = blockIdx.y * CHANNELS;
    int pixels = min(p.rows, g.height - h0) * g.width, terms = p.share * taps;
    float raw[STEPS][4];
    wait_and_launch_dependent_grids();
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
#pragma unroll
        for (int e = 0; e < 4; e++) { /* e: channels group + 8 (e % 2), terms t + 4 (e / 2) */
            int term = i * 8 + e / 2 * 4 + t, k = warp * p.share + term / taps, c = c0 + group + e % 2 * 8;
            bool valid = term < terms && k < g.filters && c < g.channels;
            raw[i][e] = valid ? p.w[(k * g.channels + c) * taps + term % taps] : 0.0f;
        }
    }
    for (int e = threadIdx.x; e < WARPS * p.share * p.plane / 4; e += THREADS) reinterpret_cast<uint4 *>(da)[e] = {};
    for (int e = threadIdx.x; e < STEPS * 8; e += THREADS) {
        int tap = e % taps;
        offset[e] = e < terms ? e / taps * p.plane + (R - 1 - tap / R) * p.line + R - 1 - tap % R : 0;
    }
    __syncthreads();
    unpool<MATH, R>(p, da, n, h0);
    uint32_t weights[STEPS][4];
    int base[TILES];
    float sums[TILES][4] = {};
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
#pragma unroll
        for (int e = 0; e < 4; e++) weights[i][e] = operand_bits<MATH>(raw[i][e]);
    }
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        int pixel = min(tile * 8 + group, pixels - 1);
        base[tile] = warp * p.share * p.plane + pixel / g.width * p.line + pixel % g.width;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        if (i * 8 >= terms) break;
        const uint32_t *low = da + offset[i * 8 + t], *high = da + offset[i * 8 + 4 + t];
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            uint32_t b[2] = {low[base[tile]], high[base[tile]]};
            mma_tf32(sums[tile], weights[i], b);
        }
    }
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        *reinterpret_cast<float2 *>(&results[warp][group][tile * 8 + 2 * t]) =
            make_float2(sums[tile][0], sums[tile][1]);
        *reinterpret_cast<float2 *>(&results[warp][group + 8][tile * 8 + 2 * t]) =
            make_float2(sums[tile][2], sums[tile][3]);
    }
    __syncthreads();
    int area = g.height * g.width;
    for (int e = threadIdx.x; e < CHANNELS * PIXELS; e += THREADS) {
        int c = e / PIXELS, pixel = e % PIXELS;
        if (c0 + c >= g.channels || pixel >= pixels) continue;
        float sum = 0;
#pragma unroll
        for (int slice = 0; slice < WARPS; slice++) sum += results[slice][c][pixel];
        p.dx[(n * g.channels + c0 + c) * area + h0 * g.width + pixel] = sum;
    }
}

/* Sizes: everything but the operands. Bands have as many rows as 72 pixels hold, or half the image where there are few images. */
static sliced_input shared_out(const cuda_calculator *calculator, const sdlf_operation *op)
{
    sliced_input p = {};
    int side = conv2d_pool_options_of(op)->window.size[0];
    p.g = pool_backward_geometry_of(op);
    p.share = (p.g.filters + WARPS - 1) / WARPS;
    p.rows = p.g.width <= PIXELS ? PIXELS / p.g.width : 1;
    if (p.rows > p.g.height) p.rows = p.g.height;
    if (p.rows > 1 && p.rows == p.g.height && p.g.batch < calculator->multiprocessors) p.rows = (p.g.height + 1) / 2;
    p.bands = (p.g.height + p.rows - 1) / p.rows;
    p.line = p.g.width + side - 1;
    p.lines = p.rows + side - 1;
    p.plane = p.line * p.lines;
    while (p.plane % 8 != 4) p.plane++; /* a multiple of a vector, and no bank conflicts between filters */
    return p;
}

static int64_t memory_of(const sliced_input &p)
{
    return static_cast<int64_t>(sizeof(slice_sums)) + (static_cast<int64_t>(WARPS) * p.share * p.plane + STEPS * 8) * 4;
}

extern "C" bool cuda_conv2d_pool_input_sliced_suits(const cuda_calculator *calculator, const sdlf_operation *op)
{
    if (conv2d_pool_operands_of(op).dy->dtype != SDLF_FLOAT32 || calculator->math == SDLF_MATH_FP32 ||
        !cuda_has_tensor_cores(calculator))
        return false;
    const sliced_input p = shared_out(calculator, op);
    int side = conv2d_pool_options_of(op)->window.size[0];
    return p.g.width <= PIXELS && p.g.height * p.g.width <= 4 * PIXELS && p.share * side * side <= STEPS * 8 &&
           memory_of(p) <= calculator->shared_most;
}

template <sdlf_math MATH, int R> static sdlf_status launch(const cuda_calculator *calculator, const sliced_input &p)
{
    dim3 grid((unsigned)(p.g.batch * p.bands), (unsigned)((p.g.channels + CHANNELS - 1) / CHANNELS));
    const int bytes = (int)shared_alone(calculator, static_cast<int64_t>(grid.x) * grid.y, memory_of(p));
    sdlf_status status = allow_shared(conv2d_pool_input_sliced<MATH, R>, bytes);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, conv2d_pool_input_sliced<MATH, R>, grid, THREADS, bytes, p);
    return cuda_check_launch("conv2d_relu_max_pool_backward");
}

extern "C" sdlf_status cuda_conv2d_pool_input_sliced(sdlf_calculator *base, const sdlf_operation *op)
{
    const conv2d_pool_operands operands = conv2d_pool_operands_of(op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    sliced_input p = shared_out(calculator, op);
    p.w = data_of<float>(*operands.w);
    p.dy = data_of<float>(*operands.dy);
    p.mask = data_of<uint8_t>(*operands.mask);
    p.dx = data_of<float>(*operands.dx);
    sdlf_status status = SDLF_OK;
    with_side(conv2d_pool_options_of(op)->window.size[0], [&](auto side) {
        switch (calculator->math) {
        case SDLF_MATH_FP16: status = launch<SDLF_MATH_FP16, side.value>(calculator, p); break;
        case SDLF_MATH_BF16: status = launch<SDLF_MATH_BF16, side.value>(calculator, p); break;
        default: status = launch<SDLF_MATH_TF32, side.value>(calculator, p);
        }
    });
    return status;
}
