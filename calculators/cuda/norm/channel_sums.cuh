/* SPDX-License-Identifier: MIT */
/* Two sums over each channel of a tensor (N,C,area), of arbitrary summands: for normalisation and its gradients.
 *
 * The images are split into parts, so that there are enough blocks for a whole device; each part writes its sums to the workspace,
 * and the consumer of a channel's sums adds them in order. The split depends only on the shape, and so do the bits of the sums,
 * which are double. Planes of 32 elements or more: one block per channel and part. Smaller ones: x is viewed as (N, C area), a block
 * sums 32 adjacent columns of a part, and a channel has `area` of them. x is read once, in whole cache lines. */
#ifndef SDLF_CALCULATORS_CUDA_CHANNEL_SUMS_CUH
#define SDLF_CALCULATORS_CUDA_CHANNEL_SUMS_CUH

#include "calculators/cuda/divider.cuh"

enum { CHANNEL_THREADS = 256, CHANNEL_COLUMNS = 32, CHANNEL_LINES = CHANNEL_THREADS / CHANNEL_COLUMNS };

struct channel_cut {
    int64_t images, channels, area;
    bool columns;
    int64_t sums;        /* per part */
    int64_t images_each; /* per part */
    int parts;
};

static inline channel_cut channel_cut_of(int64_t images, int64_t channels, int64_t area)
{
    channel_cut cut = {images, channels, area, area < 32, 0, 0, 1};
    cut.sums = cut.columns ? channels * area : channels;
    int64_t blocks = cut.columns ? (cut.sums + CHANNEL_COLUMNS - 1) / CHANNEL_COLUMNS : channels;
    int64_t least =
        cut.columns ? 4 * CHANNEL_LINES : (4 * CHANNEL_THREADS + area - 1) / area; /* images that justify a block */
    int64_t parts = blocks > 0 ? (2048 + blocks - 1) / blocks : 1;
    if (parts > (images + least - 1) / least) parts = (images + least - 1) / least;
    if (parts < 1) parts = 1;
    cut.images_each = (images + parts - 1) / parts;
    cut.parts = cut.images_each > 0 ? static_cast<int>((images + cut.images_each - 1) / cut.images_each) : 0;
    return cut;
}

/* Blocks of CHANNEL_THREADS threads, one thread per channel. */
static inline unsigned channel_blocks(const channel_cut &cut)
{
    int64_t blocks = (cut.channels + CHANNEL_THREADS - 1) / CHANNEL_THREADS;
    return blocks > 0 ? static_cast<unsigned>(blocks) : 1u;
}

static inline int64_t channel_sums_bytes(const channel_cut &cut)
{
    return cut.parts * cut.sums * static_cast<int64_t>(sizeof(double2));
}

static __device__ __forceinline__ void add_to(double2 &to, const double2 &more)
{
    to.x += more.x;
    to.y += more.y;
}

/* Grid: channels, parts. value(element, channel) returns the summands. */
template <typename Index, typename Value>
static __global__ void __launch_bounds__(CHANNEL_THREADS)
    sum_planes(Value value, double2 *sums, channel_cut cut, divider<Index> area)
{
    __shared__ double2 warps[CHANNEL_THREADS / 32];
    Index c = static_cast<Index>(blockIdx.x), image = static_cast<Index>(cut.channels * cut.area);
    int64_t n0 = blockIdx.y * cut.images_each, images = min(cut.images_each, cut.images - n0);
    Index first = static_cast<Index>(n0) * image + c * area.number, count = static_cast<Index>(images) * area.number;
    double2 sum = {};
#pragma unroll 4
    for (Index v = static_cast<Index>(threadIdx.x); v < count; v += CHANNEL_THREADS) {
        Index within, n = divide(v, area, within);
        add_to(sum, value(first + n * image + within, c));
    }
    for (int step = 16; step > 0; step /= 2) {
        sum.x += __shfl_xor_sync(0xffffffffu, sum.x, step);
        sum.y += __shfl_xor_sync(0xffffffffu, sum.y, step);
    }
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int warp = 1; warp < CHANNEL_THREADS / 32; warp++) add_to(sum, warps[warp]);
    sums[blockIdx.y * cut.sums + c] = sum;
}

/* Grid: groups of columns, parts. */
template <typename Index, typename Value>
static __global__ void __launch_bounds__(CHANNEL_THREADS)
    sum_columns(Value value, double2 *sums, channel_cut cut, divider<Index> area)
{
    __shared__ double2 lines[CHANNEL_LINES][CHANNEL_COLUMNS];
    int64_t column = static_cast<int64_t>(blockIdx.x) * CHANNEL_COLUMNS + threadIdx.x;
    int64_t n0 = blockIdx.y * cut.images_each, end = min(n0 + cut.images_each, cut.images);
    double2 sum = {};
    if (column < cut.sums) {
        Index c = area.quotient(static_cast<Index>(column));
#pragma unroll 4
        for (int64_t n = n0 + threadIdx.y; n < end; n += CHANNEL_LINES)
            add_to(sum, value(static_cast<Index>(n * cut.sums + column), c));
    }
    lines[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= cut.sums) return;
    for (int line = 1; line < CHANNEL_LINES; line++) add_to(sum, lines[line][threadIdx.x]);
    sums[blockIdx.y * cut.sums + column] = sum;
}

/* Launch one of the two kernels; the tensor must not be empty. */
template <typename Index, typename Value>
static void sum_channels(cudaStream_t stream, const channel_cut &cut, double2 *sums, const Value &value)
{
    const divider<Index> area(cut.area);
    if (cut.columns) {
        dim3 grid((unsigned)((cut.sums + CHANNEL_COLUMNS - 1) / CHANNEL_COLUMNS), (unsigned)cut.parts);
        sum_columns<Index><<<grid, dim3(CHANNEL_COLUMNS, CHANNEL_LINES), 0, stream>>>(value, sums, cut, area);
    } else {
        dim3 grid((unsigned)cut.channels, (unsigned)cut.parts);
        sum_planes<Index><<<grid, CHANNEL_THREADS, 0, stream>>>(value, sums, cut, area);
    }
}

/* A channel's sums, added over its parts and columns in order. */
static __device__ __forceinline__ double2 channel_sum(const double2 *sums, const channel_cut &cut, int64_t c)
{
    double2 sum = {};
    int64_t columns = cut.columns ? cut.area : 1;
    for (int part = 0; part < cut.parts; part++) {
        for (int64_t i = 0; i < columns; i++) add_to(sum, sums[part * cut.sums + c * columns + i]);
    }
    return sum;
}

/* The channel of element e. */
template <typename Index>
static __device__ __forceinline__ Index channel_of(Index e, const divider<Index> &area, const divider<Index> &channels)
{
    Index channel;
    divide(area.quotient(e), channels, channel);
    return channel;
}

#endif
