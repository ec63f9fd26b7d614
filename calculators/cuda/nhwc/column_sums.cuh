/* SPDX-License-Identifier: MIT */
/* Two sums over each column of a matrix (M,C), C a multiple of 8, of arbitrary summands: a thread accumulates 8 adjacent columns of every so
 * many rows of its block's part, in float32; the threads of a warp are reduced by shuffles, the warps of a block in shared memory, and the
 * parts' sums, in the workspace, by the last block of a group of columns, in double and in order. The result therefore depends on the shape
 * only. On 132 multiprocessors all blocks are resident at once, one on each: the last one has little to add. */
#ifndef SDLF_CALCULATORS_CUDA_NHWC_COLUMN_SUMS_CUH
#define SDLF_CALCULATORS_CUDA_NHWC_COLUMN_SUMS_CUH

#include "calculators/cuda/nhwc/vector8.cuh"

enum { SUMS_THREADS = 768, SUMS_WARPS = SUMS_THREADS / 32, SUMS_BLOCKS = 132 };

struct sums_cut {
    int64_t rows, channels;
    int across;        /* threads along the columns; a group has 8 across columns */
    int groups, parts; /* the grid */
    int64_t rows_each; /* per part */
};

static inline sums_cut sums_cut_of(int64_t rows, int64_t channels)
{
    sums_cut cut = {rows, channels, 8, 0, 0, 0};
    while (cut.across / 2 * VECTOR >= channels) cut.across /= 2;
    const int64_t columns = cut.across * VECTOR, lines = SUMS_THREADS / cut.across;
    cut.groups = static_cast<int>((channels + columns - 1) / columns);
    int64_t parts = (rows + 4 * lines - 1) / (4 * lines), most = SUMS_BLOCKS / cut.groups;
    if (parts > most) parts = most > 1 ? most : 1;
    cut.rows_each = (rows + parts - 1) / parts;
    cut.parts = static_cast<int>((rows + cut.rows_each - 1) / cut.rows_each);
    return cut;
}

static inline int64_t sums_bytes(const sums_cut &cut)
{
    return cut.parts * cut.channels * static_cast<int64_t>(sizeof(float2));
}

/* Values: read(vector) loads its parameters of 8 columns once; load(i) loads elements 8 i to 8 i + 7, 8 columns of a row, UNROLL rows ahead,
 * so that many loads are in flight; add(numbers, loaded, sums) accumulates them. finish.take(channel, double2 sums) is called for every
 * channel. tickets: one per group, from the calculator. Grid: groups, parts. */
template <typename Values, typename Finish>
static __global__ void __launch_bounds__(SUMS_THREADS, 1)
    sum_columns(const Values values, const Finish finish, float2 *partial, unsigned *tickets, const sums_cut cut)
{
    __shared__ alignas(16) double2 shares_of[SUMS_THREADS]; /* first holds the sums of the warps */
    float2 *warps = reinterpret_cast<float2 *>(shares_of);
    wait_and_launch_dependent_grids();
    const int lane = static_cast<int>(threadIdx.x) % cut.across, line = static_cast<int>(threadIdx.x) / cut.across;
    const int lines = SUMS_THREADS / cut.across, vectors = static_cast<int>(cut.channels / VECTOR);
    const int vector = static_cast<int>(blockIdx.x) * cut.across + lane;
    const int64_t first = blockIdx.y * cut.rows_each, end = min(first + cut.rows_each, cut.rows);
    float2 sums[VECTOR] = {};
    if (vector < vectors) {
        const typename Values::channel_numbers numbers = values.read(vector);
        for (int64_t row = first + line; row < end; row += Values::UNROLL * lines) {
            typename Values::loaded in[Values::UNROLL];
#pragma unroll
            for (int u = 0; u < Values::UNROLL; u++) {
                if (row + u * lines < end) in[u] = values.load((row + u * lines) * vectors + vector);
            }
#pragma unroll
            for (int u = 0; u < Values::UNROLL; u++) {
                if (row + u * lines < end) values.add(numbers, in[u], sums);
            }
        }
    }
    for (int step = cut.across; step < 32; step *= 2) {
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            sums[v].x += __shfl_xor_sync(0xffffffffu, sums[v].x, step);
            sums[v].y += __shfl_xor_sync(0xffffffffu, sums[v].y, step);
        }
    }
    if (static_cast<int>(threadIdx.x) % 32 < cut.across) {
#pragma unroll
        for (int v = 0; v < VECTOR; v++)
            warps[(static_cast<int>(threadIdx.x) / 32 * VECTOR + v) * cut.across + lane] = sums[v];
    }
    __syncthreads();
    const int columns = cut.across * VECTOR, column = static_cast<int>(threadIdx.x) % columns;
    const int share = static_cast<int>(threadIdx.x) / columns, shares = SUMS_THREADS / columns;
    const int channel = static_cast<int>(blockIdx.x) * columns + column % cut.across * VECTOR + column / cut.across;
    const bool mine = channel < cut.channels;
    if (share == 0 && mine) {
        float2 sum = {};
#pragma unroll
        for (int w = 0; w < SUMS_WARPS; w++) {
            const float2 more = warps[w * columns + column];
            sum.x += more.x;
            sum.y += more.y;
        }
        partial[blockIdx.y * cut.channels + channel] = sum;
    }
    if (!is_last_block(tickets + blockIdx.x, cut.parts)) return;
    double2 all = {};
#pragma unroll 16
    for (int part = share; mine && part < cut.parts; part += shares) {
        const float2 more = __ldcg(&partial[part * cut.channels + channel]);
        all.x += static_cast<double>(more.x);
        all.y += static_cast<double>(more.y);
    }
    shares_of[threadIdx.x] = all;
    __syncthreads();
    if (share != 0 || !mine) return;
    for (int s = 1; s < shares; s++) {
        all.x += shares_of[s * columns + column].x;
        all.y += shares_of[s * columns + column].y;
    }
    finish.take(channel, all);
}

template <typename Values, typename Finish>
static void launch_sums(const cuda_calculator *calculator, const sums_cut &cut, const Values &values,
                        const Finish &finish, void *workspace)
{
    launch_overlapped(calculator, sum_columns<Values, Finish>,
                      dim3(static_cast<unsigned>(cut.groups), static_cast<unsigned>(cut.parts)), dim3(SUMS_THREADS), 0,
                      values, finish, static_cast<float2 *>(workspace), calculator->tickets, cut);
}

/* The same for few rows: partial sums that have already been computed (engine_bn_partials). values.of(part, channel) returns the pair to
 * add, in double. Grid: channels / 8. */
enum { PARTS_THREADS = 256 };

template <typename Values, typename Finish>
static __global__ void __launch_bounds__(PARTS_THREADS) sum_parts(const Values values, const Finish finish, int parts)
{
    __shared__ double2 of_warps[PARTS_THREADS / 32][VECTOR];
    wait_and_launch_dependent_grids();
    const int thread = static_cast<int>(threadIdx.x), v = thread % VECTOR;
    const int channel = static_cast<int>(blockIdx.x) * VECTOR + v;
    double2 sum = {};
#pragma unroll 4
    for (int part = thread / VECTOR; part < parts; part += PARTS_THREADS / VECTOR) {
        const double2 more = values.of(part, channel);
        sum.x += more.x;
        sum.y += more.y;
    }
    for (int step = VECTOR; step < 32; step *= 2) {
        sum.x += __shfl_xor_sync(0xffffffffu, sum.x, step);
        sum.y += __shfl_xor_sync(0xffffffffu, sum.y, step);
    }
    if (thread % 32 < VECTOR) of_warps[thread / 32][v] = sum;
    __syncthreads();
    if (thread >= VECTOR) return;
    for (int warp = 1; warp < PARTS_THREADS / 32; warp++) {
        sum.x += of_warps[warp][v].x;
        sum.y += of_warps[warp][v].y;
    }
    finish.take(channel, sum);
}

template <typename Values, typename Finish>
static void launch_parts(const cuda_calculator *calculator, int parts, int64_t channels, const Values &values,
                         const Finish &finish)
{
    launch_overlapped(calculator, sum_parts<Values, Finish>, dim3(static_cast<unsigned>(channels / VECTOR)),
                      dim3(PARTS_THREADS), 0, values, finish, parts);
}

#endif
