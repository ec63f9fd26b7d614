/* SPDX-License-Identifier: MIT */
/* Gradients of layer normalisation of rows that fit in registers: dx, and dscale and dshift, which are sums over rows. Moves x, dy and dx once.
 *
 * As in forward, one warp or all warps of a block share a row, and a thread keeps vectors `thread`, `thread` + sharing, ... of it. A thread has the
 * same columns in each of its rows: it accumulates their sums in registers, in float32. The warps of a block add theirs in order in shared memory,
 * and each block writes one line of sums to the workspace; a second kernel adds these lines, in double. The grid depends only on the shape and the
 * device, and so do the bits of the sums. x, dy and dx are multiples of 16 bytes. */
#ifndef SDLF_CALCULATORS_CUDA_NORM_LAYER_NORM_BACKWARD_CUH
#define SDLF_CALCULATORS_CUDA_NORM_LAYER_NORM_BACKWARD_CUH

#include <algorithm>

#include "calculators/cuda/norm/normalize.cuh"

/* Rows per block, where that leaves each multiprocessor a block: a line of sums costs 2/3 of a row's traffic. */
enum { LEAST_ROWS = 8 };

/* Blocks that add lines: 128 bytes of each line, and threads per column. */
enum { LINE_COLUMNS = 16, LINE_THREADS = WARP };

template <typename T> struct layer_norm_backward_arguments {
    const T *x, *dy;
    const float *scale; /* NULL: none */
    const float *mean, *inverse;
    T *dx;        /* NULL: not wanted */
    float2 *sums; /* a line per block: sums for dshift and dscale; NULL: not wanted */
    int64_t rows;
    int length;
    bool aligned; /* scale allows vectors of eight */
};

/* Blocks that a multiprocessor holds at a time: of 64, 128, 128 and 255 registers. A thread needs 32 per vector, and about 30 more. */
static constexpr int layer_norm_resident(int vectors)
{
    return vectors == 1 ? 4 : vectors < MOST_VECTORS ? 2 : 1;
}

/* Write a block's line of sums; all threads call it. Pair (8 k + v) sharing + `thread` is of element v of the thread's vector k, so that threads
 * access adjacent pairs: sharing * VECTORS * VECTOR pairs, of which those for columns past the end of a row are 0. */
template <int WARPS, int VECTORS>
static __device__ __forceinline__ void write_line(const float8 (&dshift)[VECTORS], const float8 (&dscale)[VECTORS],
                                                  float2 *sums)
{
    constexpr int PLACES = WARPS * WARP * VECTOR; /* of one vector per thread */
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    float2 *line = sums + static_cast<int64_t>(blockIdx.x) * (VECTORS * PLACES);
    if constexpr (WARPS > 1) {
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
#pragma unroll
            for (int v = 0; v < VECTOR; v++)
                line[k * PLACES + v * WARPS * WARP + thread] = {dshift[k].at[v], dscale[k].at[v]};
    } else {
        __shared__ float2 of_warps[MOST_WARPS][PLACES];
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            if (k > 0) __syncthreads();
#pragma unroll
            for (int v = 0; v < VECTOR; v++)
                of_warps[thread / WARP][v * WARP + thread % WARP] = {dshift[k].at[v], dscale[k].at[v]};
            __syncthreads();
            for (int i = thread; i < PLACES; i += threads) {
                float2 sum = of_warps[0][i];
                for (int warp = 1; warp < threads / WARP; warp++)
                    sum.x += of_warps[warp][i].x, sum.y += of_warps[warp][i].y;
                line[k * PLACES + i] = sum;
            }
        }
    }
}

template <typename T, int WARPS, int VECTORS>
static __global__ void __launch_bounds__(MOST_WARPS *WARP, layer_norm_resident(VECTORS))
    layer_norm_backward(const layer_norm_backward_arguments<T> p)
{
    __shared__ float2 parts[MOST_WARPS];
    const int count = p.length / VECTOR;
    const float share = 1.0f / static_cast<float>(p.length);
    float8 dshift[VECTORS] = {}, dscale[VECTORS] = {};
    wait_and_launch_dependent_grids();
    for_rows<WARPS>(p.rows, [&](int64_t row, int thread, int threads) {
        const int64_t first = row * count;
        float8 normal[VECTORS], g[VECTORS]; /* at first x and dy */
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int i = thread + k * threads;
            if (i >= count) continue;
            normal[k] = load8(p.x, first + i);
            g[k] = load8(p.dy, first + i);
        }
        const float mean = p.mean[row], inverse = p.inverse[row];
        float2 sums = {0, 0};
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int i = thread + k * threads;
            if (i >= count) continue;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) {
                normal[k].at[v] = (normal[k].at[v] - mean) * inverse;
                dshift[k].at[v] += g[k].at[v];
                dscale[k].at[v] += g[k].at[v] * normal[k].at[v];
            }
            if (p.scale != nullptr) {
                const float8 scale = load_channels(p.scale, i, p.aligned);
#pragma unroll
                for (int v = 0; v < VECTOR; v++) g[k].at[v] *= scale.at[v];
            }
#pragma unroll
            for (int v = 0; v < VECTOR; v++) {
                sums.x += g[k].at[v];
                sums.y += g[k].at[v] * normal[k].at[v];
            }
        }
        if (p.dx == nullptr) return;
        sums = row_sum<WARPS>(sums, parts);
        const float offset = sums.x * share, along = sums.y * share;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int i = thread + k * threads;
            if (i >= count) continue;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) g[k].at[v] = inverse * (g[k].at[v] - offset - normal[k].at[v] * along);
            store8(p.dx, first + i, g[k]);
        }
    });
    if (p.sums != nullptr) write_line<WARPS>(dshift, dscale, p.sums);
}

/* Add the lines of all blocks. Blocks of LINE_COLUMNS x LINE_THREADS; a line is a multiple of LINE_COLUMNS. Threads along y share the lines of a
 * column; then each of the LINE_COLUMNS warps reduces one column. Either gradient may be NULL. */
static __global__ void __launch_bounds__(LINE_COLUMNS *LINE_THREADS)
    layer_norm_add_lines(const float2 *sums, int lines, int line, int sharing, int length, float *dscale, float *dshift)
{
    __shared__ double2 shares[LINE_THREADS][LINE_COLUMNS + 1]; /* no bank conflicts along y */
    const int first = static_cast<int>(blockIdx.x) * LINE_COLUMNS;
    double2 sum = {0, 0};
    wait_and_launch_dependent_grids();
#pragma unroll 8
    for (int i = static_cast<int>(threadIdx.y); i < lines; i += LINE_THREADS) {
        const float2 more = sums[static_cast<int64_t>(i) * line + first + threadIdx.x];
        sum.x += static_cast<double>(more.x);
        sum.y += static_cast<double>(more.y);
    }
    shares[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    const int thread = static_cast<int>(threadIdx.y * LINE_COLUMNS + threadIdx.x), lane = thread % WARP;
    sum = row_sum<1>(shares[lane][thread / WARP], static_cast<double2 *>(nullptr));
    const int place = first + thread / WARP, vector = place / sharing / VECTOR * sharing + place % sharing;
    const int column = vector * VECTOR + place / sharing % VECTOR;
    if (lane != 0 || column >= length) return;
    if (dscale != nullptr) dscale[column] = static_cast<float>(sum.y);
    if (dshift != nullptr) dshift[column] = static_cast<float>(sum.x);
}

/* ---- launching ---- */

struct layer_norm_cut {
    int64_t rows;
    int sharing; /* threads per row */
    int vectors; /* per thread */
    int threads; /* per block */
    int blocks, line;
};

/* The tensor must not be empty. Every block has a row. With few rows, blocks have few warps, so that every multiprocessor has some. */
static layer_norm_cut layer_norm_cut_of(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const int64_t length = op->normalize.length, multiprocessors = calculator->multiprocessors;
    const int warps = length <= SHORT ? 1 : MOST_WARPS;
    layer_norm_cut cut = {.rows = sdlf_tensor_count(&op->in[0]) / length, .sharing = warps * WARP};
    cut.vectors = static_cast<int>(cuda_ceil_div(length, cut.sharing * VECTOR));
    const int64_t together = cuda_ceil_div(cut.rows * warps, multiprocessors);
    cut.threads = static_cast<int>(warps == 1 ? std::min<int64_t>(together, MOST_WARPS) : warps) * WARP;
    const int64_t turns = cuda_ceil_div(cut.rows * cut.sharing, cut.threads); /* of any block */
    const int64_t worth = cuda_ceil_div(cut.rows, LEAST_ROWS), resident = layer_norm_resident(cut.vectors);
    const int64_t most = std::max(std::min(worth, resident * multiprocessors), multiprocessors);
    cut.blocks = static_cast<int>(std::min(turns, most));
    cut.line = cut.sharing * cut.vectors * VECTOR;
    return cut;
}

static int64_t layer_norm_backward_bytes(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const layer_norm_cut cut = layer_norm_cut_of(calculator, op);
    /* at least that of fewer rows, which may have more blocks of fewer warps */
    const int64_t most = std::max<int64_t>(cut.blocks, std::min<int64_t>(cut.rows, calculator->multiprocessors));
    return most * cut.line * static_cast<int64_t>(sizeof(float2));
}

template <typename T>
static void launch_layer_norm_backward(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const layer_norm_cut cut = layer_norm_cut_of(calculator, op);
    const int length = static_cast<int>(op->normalize.length);
    const float *scale = optional<float>(op->in[1]);
    float *dscale = optional<float>(op->out[1]), *dshift = optional<float>(op->out[2]);
    const bool sums = dscale != nullptr || dshift != nullptr;
    const layer_norm_backward_arguments<T> p = {.x = data_of<T>(op->in[0]),
                                                .dy = data_of<T>(op->in[4]),
                                                .scale = scale,
                                                .mean = data_of<float>(op->in[2]),
                                                .inverse = data_of<float>(op->in[3]),
                                                .dx = optional<T>(op->out[0]),
                                                .sums = sums ? data_of<float2>(op->workspace) : nullptr,
                                                .rows = cut.rows,
                                                .length = length,
                                                .aligned = is_aligned16(scale)};
    with_warps(length, [&](auto warps) {
        with_vectors(cut.vectors, [&](auto vectors) {
            launch_overlapped(calculator, layer_norm_backward<T, warps.value, vectors.value>,
                              dim3(static_cast<unsigned>(cut.blocks)), dim3(static_cast<unsigned>(cut.threads)), 0, p);
        });
    });
    if (sums)
        launch_overlapped(calculator, layer_norm_add_lines, dim3(static_cast<unsigned>(cut.line / LINE_COLUMNS)),
                          dim3(LINE_COLUMNS, LINE_THREADS), 0, p.sums, cut.blocks, cut.line, cut.sharing, length,
                          dscale, dshift);
}

#endif
