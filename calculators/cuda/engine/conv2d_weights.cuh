/* SPDX-License-Identifier: MIT */
/* wgrad as implicit GEMM: rows of the tile are filters, columns are (tap, channel), CHUNK channels of a tap at a time, and the reduction
 * runs over the pixels of dy. Both operands are MN-major: pixels are rows in memory.
 *
 * The reduction is split over blocks (split-K); each block writes its sums to the workspace, (split, K, taps, channels), and a second
 * kernel adds them in order and writes them as (K,C,R,S). */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_WEIGHTS_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_WEIGHTS_CUH

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/engine/mainloop.cuh"

struct weights_params {
    CUtensorMap x;                                          /* im2col, K pixels */
    CUtensorMap dy;                                         /* (filters, pixels), tiled */
    int row_tiles, column_tiles, splits, steps_each, steps; /* k-steps of K pixels */
    int filters, channels, taps, filter_width, chunks;      /* chunks of channels of a tap */
    int block_tiles, block_filters,
        block_channels; /* for several groups (engine/groups.h): tiles of rows per block; 0: one group */
    int dilation[2], lower[2], stride[2];
    divider<int32_t> count[2]; /* P, Q */
    float *sums;
};

template <typename T, int ROWS, int CHUNK_BYTES> struct weights_product {
    using Element = T;
    using Params = weights_params;
    static constexpr int SIZE = sizeof(T), CHUNK = CHUNK_BYTES / SIZE, K = K_BYTES / SIZE;
    static constexpr int BM = ROWS, BN = 128, CHUNK_A = 128 / SIZE, CHUNK_B = CHUNK, MN_A = 1, MN_B = 1;
    static constexpr int STAGES = BM == 128 ? 3 : 4;

    static constexpr int PARTS_A = BM / CHUNK_A, PARTS = PARTS_A + BN / CHUNK;

    struct Place {
        int row, end, channel, chunk, split, first,
            steps; /* filters from `row` to before `end`; first channel of the block */
    };

    static __device__ __forceinline__ Place place(const Params &p)
    {
        Place at;
        int tile = static_cast<int>(blockIdx.x);
        const int column = tile % p.column_tiles;
        tile /= p.column_tiles;
        const int number = tile % p.row_tiles;
        at.row = number * BM;
        at.end = p.filters;
        at.channel = 0;
        if (p.block_tiles > 0) {
            const int block = number / p.block_tiles, first = block * p.block_filters;
            at.row = first + (number - block * p.block_tiles) * BM;
            at.end = min(first + p.block_filters, p.filters);
            at.channel = block * p.block_channels;
        }
        at.chunk = column * (BN / CHUNK);
        at.split = tile / p.row_tiles;
        at.first = at.split * p.steps_each;
        at.steps = min(p.steps_each, p.steps - at.first);
        return at;
    }

    static __device__ __forceinline__ void prefetch(const Params &p)
    {
        tma_prefetch(&p.x);
        tma_prefetch(&p.dy);
    }

    /* One load of each k-step, constant but for its pixels: some filters of dy, or channels of a tap. */
    struct Part {
        int first, r, s; /* filter or channel; the tap's offset */
    };

    static __device__ __forceinline__ Part part(const Params &p, const Place &at, int number)
    {
        if (number < PARTS_A) return {at.row + number * CHUNK_A, 0, 0};
        const int column = at.chunk + number - PARTS_A;
        int tap = column / p.chunks, chunk = column - tap * p.chunks;
        if (tap >= p.taps) { /* beyond the last tap: channels that do not exist, loaded as 0 */
            tap = 0;
            chunk = p.chunks;
        }
        const int r = tap / p.filter_width, s = tap - r * p.filter_width;
        return {at.channel + chunk * CHUNK, p.dilation[0] * r, p.dilation[1] * s};
    }

    static __device__ __forceinline__ void load(const Params &p, const Place &at, const Part &part, int number,
                                                int step, uint32_t a, uint32_t b, uint32_t barrier)
    {
        const int pixel = (at.first + step) * K;
        if (number < PARTS_A) {
            tma_load_2d(a + number * CHUNK_A * K_BYTES, &p.dy, barrier, part.first, pixel);
            return;
        }
        int i, j;
        const int n = divide(divide(pixel, p.count[1], j), p.count[0], i);
        tma_load_im2col(b + (number - PARTS_A) * K * CHUNK_BYTES, &p.x, barrier, part.first,
                        p.lower[1] + p.stride[1] * j, p.lower[0] + p.stride[0] * i, n, part.s, part.r);
    }

    /* One thread stores 8 channels of a tap of a filter. */
    static __device__ __forceinline__ void finish(const Params &p, const Place &at, const float *sums, int thread)
    {
        constexpr int ACROSS = BN / 8;
        const int across = thread % ACROSS * 8, number = at.chunk + across / CHUNK;
        const int tap = number / p.chunks, channel = (number - tap * p.chunks) * CHUNK + across % CHUNK;
        if (tap >= p.taps || channel >= p.channels) return;
        for (int r = thread / ACROSS; r < BM && at.row + r < at.end; r += ENGINE_CONSUMERS / ACROSS) {
            const int64_t filter = static_cast<int64_t>(at.split) * p.filters + at.row + r;
            float *to = p.sums + (filter * p.taps + tap) * p.channels + channel;
            const float4 *from = reinterpret_cast<const float4 *>(sums + r * (BN + ENGINE_PAD) + across);
            reinterpret_cast<float4 *>(to)[0] = from[0];
            reinterpret_cast<float4 *>(to)[1] = from[1];
        }
    }
};

#endif
