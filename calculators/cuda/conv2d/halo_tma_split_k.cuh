/* SPDX-License-Identifier: MIT */
/* Epilogue of the TMA-tiled implicit GEMM in tf32 (conv2d/halo_tma.cuh) whose sums first overwrite the operands in shared memory:
 * for split-K over a cluster, for shares of the k-steps, and for slow activations. It stores results, or their 2x2 maxima, to y. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_SPLIT_K_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_SPLIT_K_CUH

#include "calculators/cuda/conv2d/halo_tma_epilogue.cuh"

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int RINGS, int LINES, bool THROUGH, int SHARES = 1>
struct halo_tma_split_k : halo_tma_epilogue<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, THROUGH, SHARES> {
    using results = halo_tma_epilogue<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, THROUGH, SHARES>;
    using block = typename results::block;
    using sums = typename results::sums;
    using results::between, results::low_of, results::high_of;
    using results::FILTERS, results::TILE, results::THREADS, results::PART;
    using results::larger, results::pooled_at, results::store_pooled_four;
    using tile = halo_tile<halo_tf32, false, 16, 8, 16, 8>; /* for what does not depend on its size */

    /* Write this block's sums to its shared memory, pixel by pixel, or add to those there; nobody reads operands any more. */
    template <bool ADDS = false>
    static __device__ __forceinline__ void store_partial_sums(const sums &sum, float *part, int group)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
        float *at = part + (group % PIXEL_GROUPS * PIXELS + lane % 4 * 2) * PART + group / PIXEL_GROUPS * 64 +
                    warp * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < PIXELS / 8; j++) {
#pragma unroll
            for (int v = 0; v < 4; v++) {
                float *to = at + (j * 8 + v % 2) * PART + v / 2 * 8;
                *to = ADDS ? *to + sum[j][v] : sum[j][v];
            }
        }
    }

    /* Write a share's sums where others read them: beside the other shares' sums, or, with split-K over a cluster,
     * added to those, in the shares' order. */
    static __device__ __forceinline__ void put_share(const cuda_halo &p, const sums &sum, float *part, int share,
                                                     int group)
    {
        if (p.splits == 1) {
            store_partial_sums(sum, part + share * TILE * PART, group);
            return;
        }
        if (share == 0) store_partial_sums(sum, part, group);
#pragma unroll
        for (int next = 1; next < SHARES; next++) {
            halo_await_reads<THREADS>();
            if (share == next) store_partial_sums<true>(sum, part, group);
        }
    }

    /* Add four neighbouring sums of all shares of this block, in order. */
    static __device__ __forceinline__ float4 sum_shares(const float *part)
    {
        float4 total = *reinterpret_cast<const float4 *>(part);
#pragma unroll
        for (int share = 1; share < SHARES; share++) {
            float4 more = *reinterpret_cast<const float4 *>(part + share * TILE * PART);
            total = make_float4(total.x + more.x, total.y + more.y, total.z + more.z, total.w + more.w);
        }
        return total;
    }

    /* The same over the blocks of a cluster, RANKS at most. */
    template <int RANKS> static __device__ __forceinline__ float4 sum_parts(const cuda_halo &p, const float *part)
    {
        if (SHARES > 1 && (RANKS == 1 || p.splits == 1)) return sum_shares(part);
        return halo_sum_parts<RANKS>(halo_address(part), p.splits);
    }

    /* Index in y of a pixel of the block, counted group by group; -1: outside. (Element offsets in y fit int, conv2d/halo.c.) */
    static __device__ __forceinline__ int result_of(const cuda_halo &p, const block &b, int m)
    {
        int row = b.row(p), column = b.column(p) + m;
        if (THROUGH) {
            int down = m / p.patch_across;
            column = m - down * p.patch_across;
            if (down >= p.tile_down || column >= p.out_width) return -1;
            row += down;
        } else if (p.tile_down > 1) {
            row += m % PIXELS / 8;
            column = b.column(p) + m / PIXELS * 8 + m % 8;
        }
        if (row >= p.out_height || column >= p.out_width) return -1;
        return (b.image * p.out_height + row) * p.out_width + column;
    }

    /* Once all partial sums are there, each block of the cluster adds and stores its share of the tile's pixels. A
     * thread keeps the same four filters. */
    static __device__ __noinline__ void add_slow_parts(const cuda_halo &p, const block &b, const float *part)
    {
        constexpr int QUADS = FILTERS / 4, DOWN = THREADS / QUADS;
        const int column = static_cast<int>(threadIdx.x) % QUADS * 4, filter = b.filter() + column;
        if (filter >= p.filters) return;
        for (int m = static_cast<int>(threadIdx.x) / QUADS + b.split * DOWN; m < TILE; m += DOWN * p.splits) {
            const int pixel = result_of(p, b, m), at = pixel * p.filters + filter;
            if (pixel < 0) continue;
            const float *from = part + m * PART + column;
            const float4 total = sum_parts<HALO_SPLITS>(p, from);
            const float value[4] = {total.x, total.y, total.z, total.w};
#pragma unroll
            for (int v = 0; v < 4; v++) {
                if (filter + v < p.filters)
                    p.y[at + v] = tile::template epilogue<false>(p, filter + v, at + v, value[v]);
            }
        }
    }

    /* The same with a quick activation and float4 stores. The sums of AT_ONCE pixels are loaded before the first is used. */
    template <int RANKS, int AT_ONCE>
    static __device__ __forceinline__ void add_quick_parts(const cuda_halo &p, const block &b, const float *part)
    {
        constexpr int QUADS = FILTERS / 4, DOWN = THREADS / QUADS;
        static_assert(THREADS % QUADS == 0, "a thread's filters stay");
        const int column = static_cast<int>(threadIdx.x) % QUADS * 4, filter = b.filter() + column,
                  step = DOWN * p.splits;
        const float low = low_of(p.activation), high = high_of(p.activation);
        float4 bias = {0, 0, 0, 0};
        if (filter >= p.filters) return;
        if (p.bias != nullptr) bias = __ldg(reinterpret_cast<const float4 *>(p.bias + filter));
#pragma unroll 1
        for (int m = static_cast<int>(threadIdx.x) / QUADS + b.split * DOWN; m < TILE; m += AT_ONCE * step) {
            float4 total[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                total[i] = sum_parts<RANKS>(p, part + min(m + i * step, TILE - 1) * PART + column);
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int pixel = m + i * step < TILE ? result_of(p, b, m + i * step) : -1,
                          at = pixel * p.filters + filter;
                if (pixel < 0) continue;
                float4 v = {total[i].x + bias.x, total[i].y + bias.y, total[i].z + bias.z, total[i].w + bias.w};
                if (p.residual != nullptr) {
                    const float4 more = *reinterpret_cast<const float4 *>(p.residual + at);
                    v = make_float4(v.x + more.x, v.y + more.y, v.z + more.z, v.w + more.w);
                }
                *reinterpret_cast<float4 *>(p.y + at) = make_float4(between(v.x, low, high), between(v.y, low, high),
                                                                    between(v.z, low, high), between(v.w, low, high));
            }
        }
    }
    static __device__ __forceinline__ void reduce_splits(const cuda_halo &p, const block &b, const float *part)
    {
        if (!p.quick || !p.fours)
            add_slow_parts(p, b, part);
        else if (SHARES > 1 && p.splits == 1)
            add_quick_parts<1, 4>(p, b, part);
        else if (p.splits <= 4)
            add_quick_parts<4, 2>(p, b, part);
        else
            add_quick_parts<HALO_SPLITS, 1>(p, b, part);
    }

    /* The same with 2x2 max-pooling and ReLU. */
    static __device__ __forceinline__ void add_pooled_parts(const cuda_halo &p, const block &b, const float *part)
    {
        constexpr int QUADS = FILTERS / 4, DOWN = THREADS / QUADS, POOLED = PIXELS / 4; /* of a group */
        const int height = p.out_height / 2, width = p.out_width / 2;
        const int column = static_cast<int>(threadIdx.x) % QUADS * 4, filter = b.filter() + column;
        float bias[4];
#pragma unroll
        for (int v = 0; v < 4; v++)
            bias[v] = p.bias != nullptr && filter + v < p.filters ? __ldg(p.bias + filter + v) : 0.0f;
#pragma unroll 1
        for (int m = static_cast<int>(threadIdx.x) / QUADS + b.split * DOWN; m < TILE / 4; m += DOWN * p.splits) {
            int group = m / POOLED, down = m % POOLED / 4, across = m % 4;
            int row = b.row(p) / 2 + down, place = b.column(p) / 2 + group * 4 + across;
            if (row >= height || place >= width || filter >= p.filters) continue;
            const float *from = part + (group * PIXELS + down * 16 + across * 2) * PART + column;
            float4 most = sum_parts<HALO_SPLITS>(p, from);
#pragma unroll
            for (int i = 1; i < 4; i++) {
                const float *next = from + (i / 2 * 8 + i % 2) * PART;
                most = larger(most, sum_parts<HALO_SPLITS>(p, next));
            }
            most = larger(make_float4(most.x + bias[0], most.y + bias[1], most.z + bias[2], most.w + bias[3]),
                          make_float4(0, 0, 0, 0));
            float *y = p.y + pooled_at(p, b.image, row, place, filter);
            if (p.fours) {
                store_pooled_four(p, y, most);
            } else {
                const float value[4] = {most.x, most.y, most.z, most.w};
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    if (filter + v < p.filters) y[p.plane > 0 ? v * p.plane : v] = value[v];
                }
            }
        }
    }
};

#endif
