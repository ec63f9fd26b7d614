/* SPDX-License-Identifier: MIT */
/* The split-K reduction of a wgrad (engine/splits.h). Reads every partial sum once, and writes dw once.
 *
 * A block has 32 channels of up to SUM_LINES lines: a line is a tap of a filter, read by 8 threads; its splits are distributed over `lanes`
 * threads, whose sums are added in order. The block then writes dw channel by channel from shared memory. */
#include "calculators/cuda/engine/splits.h"

#include <algorithm>

#include "calculators/cuda/engine/pack.cuh"

enum { SUM_THREADS = 256, SUM_LINES = SUM_THREADS / 8, SUM_CHANNELS = 32 };

struct split_sums : engine_splits {
    packed_lines lines;
    divider<int32_t> by_group_filters, by_joined, by_taps;
    int64_t split;               /* elements of one split */
    int columns;                 /* elements read of a line */
    int channels;                /* if a line holds the channels of one unpadded pixel, their number; otherwise 0 */
    bool vectorized;             /* a block has all taps, and four elements of dw can be stored at once */
    int lanes;                   /* a power of 2 up to SUM_LINES */
    int filters_each, taps_each; /* per block: SUM_LINES lines at most; with several filters, all of their taps */
};

static __device__ __forceinline__ float4 add4(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static __global__ void __launch_bounds__(SUM_THREADS) add_splits(const split_sums sums)
{
    __shared__ float4 line_sums[SUM_LINES][8];
    __shared__ float tile[SUM_LINES][SUM_CHANNELS + 1];
    wait_and_launch_dependent_grids();
    const int across = static_cast<int>(threadIdx.x) % 8, thread_line = static_cast<int>(threadIdx.x) / 8;
    const int lane = thread_line % sums.lanes, at_once = SUM_LINES / sums.lanes;
    const int filter = static_cast<int>(blockIdx.x) * sums.filters_each;
    const int first_channel = static_cast<int>(blockIdx.y) * SUM_CHANNELS, channel = first_channel + across * 4;
    const int first_tap = static_cast<int>(blockIdx.z) * sums.taps_each;
    const int taps = min(sums.taps_each, sums.taps - first_tap);
    const int filters = min(sums.filters_each, sums.filters - filter), lines = filters * taps;
    const float *from = sums.from + (static_cast<int64_t>(filter) * sums.taps + first_tap) * sums.packed + channel;
    for (int begin = 0; begin < lines; begin += at_once) {
        const int line = begin + thread_line / sums.lanes;
        const bool is_there = line < lines && channel < sums.columns;
        int group = 0; /* of the filter, within its block */
        if (sums.joined > 1)
            divide(sums.by_group_filters.quotient(filter + sums.by_taps.quotient(line)), sums.by_joined, group);
        const float *mine = from + static_cast<int64_t>(line) * sums.packed + group * sums.columns;
        float4 sum = {};
#pragma unroll 8
        for (int s = lane; is_there && s < sums.splits; s += sums.lanes)
            sum = add4(sum, *reinterpret_cast<const float4 *>(mine + s * sums.split));
        line_sums[thread_line][across] = sum;
        __syncthreads();
        if (lane == 0 && is_there) {
            for (int l = 1; l < sums.lanes; l++) sum = add4(sum, line_sums[thread_line + l][across]);
            float *to = &tile[line][across * 4];
            to[0] = sum.x;
            to[1] = sum.y;
            to[2] = sum.z;
            to[3] = sum.w;
        }
        __syncthreads();
    }
    if (sums.vectorized) { /* a filter's channels and taps are contiguous: each thread stores four elements */
        int within = static_cast<int>(threadIdx.x) % 8, tap;
        const int f = divide(static_cast<int>(threadIdx.x) / 8, sums.by_taps, tap);
        within += 8 * tap;
        int c = divide(4 * within, sums.by_taps, tap);
        if (f >= filters || first_channel + c >= sums.channels) return;
        float of[4];
#pragma unroll
        for (int v = 0; v < 4; v++) {
            of[v] = tile[f * taps + tap][c];
            if (++tap == taps) tap = 0, c++;
        }
        const int64_t line = (static_cast<int64_t>(filter + f) * sums.lines.channels + first_channel) * taps;
        *reinterpret_cast<float4 *>(sums.dw + line + 4 * within) = make_float4(of[0], of[1], of[2], of[3]);
        return;
    }
    for (int i = static_cast<int>(threadIdx.x); i < SUM_CHANNELS * filters * sums.taps_each; i += SUM_THREADS) {
        int tap;
        const int row = divide(i, sums.by_taps, tap), f = row / SUM_CHANNELS, c = row % SUM_CHANNELS;
        int element = first_channel + c, pixel = element < sums.channels ? 0 : -1;
        if (sums.channels == 0) pixel = sums.lines.pixel_of(first_channel + c, element);
        if (pixel < 0 || tap >= taps) continue;
        const int64_t line =
            (static_cast<int64_t>(filter + f) * sums.lines.channels + element) * sums.taps + first_tap + tap;
        sums.dw[line * sums.lines.pixels + pixel] = tile[f * taps + tap][c];
    }
}

void engine_add_splits(const cuda_calculator *calculator, const engine_splits &given)
{
    split_sums sums = {};
    static_cast<engine_splits &>(sums) = given;
    sums.lines = packed_lines(given.weights);
    sums.split = static_cast<int64_t>(sums.filters) * sums.taps * sums.packed;
    sums.columns = given.weights.length;
    sums.channels = sums.lines.pixels == 1 && sums.lines.padding == 0
                        ? std::min({sums.lines.channels, sums.lines.width, sums.columns})
                        : 0;
    sums.lanes = 1;
    while (sums.lanes < SUM_LINES && sums.lanes * 4 < sums.splits) sums.lanes *= 2;
    /* as many blocks as fill the device, but no smaller ones */
    const int parts = (sums.columns + SUM_CHANNELS - 1) / SUM_CHANNELS;
    const int64_t all = static_cast<int64_t>(sums.filters) * sums.taps * parts;
    const int64_t lines = std::min<int64_t>(std::max<int64_t>(all / (4 * calculator->multiprocessors), 1), SUM_LINES);
    sums.taps_each = static_cast<int>(std::min<int64_t>(sums.taps, lines));
    sums.filters_each = sums.taps_each < sums.taps ? 1 : static_cast<int>(lines / sums.taps);
    sums.by_taps = divider<int32_t>(sums.taps_each);
    sums.vectorized = sums.taps_each == sums.taps && sums.channels == sums.lines.channels && sums.channels % 4 == 0 &&
                      reinterpret_cast<uintptr_t>(sums.dw) % 16 == 0;
    sums.by_group_filters = divider<int32_t>(std::max(sums.group_filters, 1));
    sums.by_joined = divider<int32_t>(std::max(sums.joined, 1));
    const dim3 blocks(static_cast<unsigned>((sums.filters + sums.filters_each - 1) / sums.filters_each),
                      static_cast<unsigned>(parts),
                      static_cast<unsigned>((sums.taps + sums.taps_each - 1) / sums.taps_each));
    launch_overlapped(calculator, add_splits, blocks, SUM_THREADS, 0, sums);
}
