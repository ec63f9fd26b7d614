/* SPDX-License-Identifier: MIT */
/* Rows of normalize: how threads share and reduce them; and layer normalisation, in which every element of a row has its own channel, for rows that
 * fit in registers. Moves x and y once. */
#ifndef SDLF_CALCULATORS_CUDA_NORM_NORMALIZE_CUH
#define SDLF_CALCULATORS_CUDA_NORM_NORMALIZE_CUH

#include <type_traits>

#include "calculators/cuda/nhwc/vector8.cuh"

enum {
    WARP = 32,
    MOST_WARPS = 8,
    SHORT = 1024 /* longest row for one warp */,
    MOST_VECTORS = 4 /* of a row, per thread */,
    LONGEST = MOST_VECTORS * MOST_WARPS * WARP * VECTOR
};

/* Reduce over the WARPS warps that share a row; all of their threads get the sums. Pair: double2 or float2. */
template <int WARPS, typename Pair> static __device__ __forceinline__ Pair row_sum(Pair value, Pair *parts)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        value.x += __shfl_xor_sync(0xffffffffu, value.x, step);
        value.y += __shfl_xor_sync(0xffffffffu, value.y, step);
    }
    if (WARPS == 1) return value;
    __syncthreads();
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    Pair sum = parts[0];
    for (int warp = 1; warp < WARPS; warp++) sum.x += parts[warp].x, sum.y += parts[warp].y;
    return sum;
}

/* Call `use(row, thread, threads)` for each row of this block's share. WARPS 1: one warp per row. */
template <int WARPS, typename Use> static __device__ __forceinline__ void for_rows(int64_t count, Use use)
{
    if (WARPS == 1) {
        for (int64_t row = grid_first() / WARP; row < count; row += grid_step() / WARP)
            use(row, static_cast<int>(threadIdx.x % WARP), WARP);
    } else {
        for (int64_t row = blockIdx.x; row < count; row += gridDim.x)
            use(row, static_cast<int>(threadIdx.x), WARPS * WARP);
    }
}

/* Call function(WARPS), the number of warps that share a row, as a compile-time constant. */
template <typename Function> static void with_warps(int64_t length, Function function)
{
    if (length <= SHORT)
        function(std::integral_constant<int, 1>());
    else
        function(std::integral_constant<int, MOST_WARPS>());
}

/* Operands of one element per channel: scale, shift, or their gradients; present or not. NULL: there are fewer. */
enum { CHANNEL_OPERANDS = 3 };
static const sdlf_tensor *channel_operand(const sdlf_operation *op, int i)
{
    const bool forward = op->kind == SDLF_NORMALIZE_FORWARD;
    const sdlf_tensor *const operands[CHANNEL_OPERANDS] = {&op->in[1], forward ? &op->in[2] : &op->out[1],
                                                           forward ? nullptr : &op->out[2]};
    return operands[i];
}

/* ---- layer normalisation ---- */

/* Call function(VECTORS), the number of vectors of a row per thread, as a compile-time constant. */
template <typename Function> static void with_vectors(int64_t vectors, Function function)
{
    switch (vectors) {
    case 1: function(std::integral_constant<int, 1>()); break;
    case 2: function(std::integral_constant<int, 2>()); break;
    case 3: function(std::integral_constant<int, 3>()); break;
    default: function(std::integral_constant<int, MOST_VECTORS>()); break;
    }
}

template <typename T> struct layer_norm_arguments {
    const T *x;
    const float *scale, *shift; /* NULL: none */
    T *y;
    float *mean, *inverse;
    int64_t rows;
    int length;
    bool aligned; /* scale and shift allow vectors of eight */
    float epsilon;
};

static __device__ __forceinline__ float8 load_channels(const float *from, int i, bool aligned)
{
    if (aligned) return load8(from, i);
    float8 values;
#pragma unroll
    for (int v = 0; v < VECTOR; v++) values.at[v] = from[i * VECTOR + v];
    return values;
}

/* A thread keeps vectors `thread`, `thread` + threads, ... of its row, at most VECTORS. The mean of the deviations from the first mean corrects
 * for the rounding of that mean: even for rows far from 0, results are as if sums were computed with more digits. */
template <typename T, int WARPS, int VECTORS>
static __global__ void __launch_bounds__(MOST_WARPS *WARP) layer_norm(const layer_norm_arguments<T> p)
{
    __shared__ float2 parts[MOST_WARPS];
    const int count = p.length / VECTOR;
    const float share = 1.0f / static_cast<float>(p.length);
    wait_and_launch_dependent_grids();
    for_rows<WARPS>(p.rows, [&](int64_t row, int thread, int threads) {
        const int64_t first = row * count;
        float8 kept[VECTORS] = {};
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (thread + k * threads < count) kept[k] = load8(p.x, first + thread + k * threads);
        float2 sums = {0, 0};
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
#pragma unroll
            for (int v = 0; v < VECTOR; v++) sums.x += kept[k].at[v];
        const float centre = row_sum<WARPS>(sums, parts).x * share;
        sums = {0, 0};
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            if (thread + k * threads >= count) continue;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) {
                kept[k].at[v] -= centre;
                sums.x += kept[k].at[v];
                sums.y += kept[k].at[v] * kept[k].at[v];
            }
        }
        sums = row_sum<WARPS>(sums, parts);
        const float rest = sums.x * share, variance = sums.y * share - rest * rest;
        const float inverse = 1 / sqrtf((variance < 0 ? 0 : variance) + p.epsilon); /* NaN stays NaN */
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int i = thread + k * threads;
            if (i >= count) continue;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) kept[k].at[v] = (kept[k].at[v] - rest) * inverse;
            if (p.scale != nullptr) {
                const float8 scale = load_channels(p.scale, i, p.aligned);
#pragma unroll
                for (int v = 0; v < VECTOR; v++) kept[k].at[v] *= scale.at[v];
            }
            if (p.shift != nullptr) {
                const float8 shift = load_channels(p.shift, i, p.aligned);
#pragma unroll
                for (int v = 0; v < VECTOR; v++) kept[k].at[v] += shift.at[v];
            }
            store8(p.y, first + i, kept[k]);
        }
        if (thread == 0) {
            p.mean[row] = centre + rest;
            p.inverse[row] = inverse;
        }
    });
}

/* True for layer normalisation of rows that fit. */
static bool is_layer_norm(const sdlf_operation *op)
{
    const int64_t length = op->normalize.length;
    bool fits = length > 0 && length % VECTOR == 0 && length <= LONGEST && op->normalize.inner == 1 &&
                op->in[0].dtype != SDLF_FLOAT64;
    for (int i = 0; i < CHANNEL_OPERANDS; i++) {
        const sdlf_tensor *channel = channel_operand(op, i);
        fits = fits && (!sdlf_tensor_present(channel) || sdlf_tensor_count(channel) == length);
    }
    return fits;
}

/* With few rows, blocks have few warps, so that every multiprocessor has some. */
template <typename T> static void launch_layer_norm(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const int length = static_cast<int>(op->normalize.length);
    const int64_t rows = sdlf_tensor_count(&op->in[0]) / length;
    const float *scale = optional<float>(op->in[1]), *shift = optional<float>(op->in[2]);
    const layer_norm_arguments<T> p = {.x = data_of<T>(op->in[0]),
                                       .scale = scale,
                                       .shift = shift,
                                       .y = data_of<T>(op->out[0]),
                                       .mean = data_of<float>(op->out[1]),
                                       .inverse = data_of<float>(op->out[2]),
                                       .rows = rows,
                                       .length = length,
                                       .aligned = is_aligned16(scale) && is_aligned16(shift),
                                       .epsilon = op->normalize.epsilon};
    with_warps(length, [&](auto warps) {
        constexpr int WARPS = warps.value;
        const int64_t together = cuda_ceil_div(rows * WARPS, calculator->multiprocessors);
        const int most = together < MOST_WARPS ? static_cast<int>(together) : MOST_WARPS;
        const int threads = (WARPS == 1 ? most : WARPS) * WARP;
        const dim3 blocks(cuda_blocks(calculator, rows * WARPS * WARP, threads));
        with_vectors(cuda_ceil_div(length, WARPS * WARP * VECTOR), [&](auto vectors) {
            launch_overlapped(calculator, layer_norm<T, WARPS, vectors.value>, blocks, dim3(threads), 0, p);
        });
    });
}

#endif
