/* SPDX-License-Identifier: MIT */
/* Epilogue of the TMA-tiled implicit GEMM in 16 bits (conv2d/halo16.cuh): sums are in the shared memory of the block, or
 * of the cluster's blocks under split-K; a thread stores four filters of a pixel to y, or of the maximum of 2x2 pixels. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO16_EPILOGUE_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO16_EPILOGUE_CUH

#include "calculators/cuda/conv2d/halo16.h"
#include "calculators/cuda/conv2d/halo16_tile.cuh"
#include "calculators/cuda/divider.cuh"

/* Divisors and shares that the host computes, so that a block need not divide before it loads its first box. */
struct halo16_cut {
    divider<int32_t> across, down; /* tiles of an image */
    divider<int32_t> lines;        /* k-steps of a chunk of channels */
    int share, rest;               /* k-steps of a block of a cluster; the first `rest` have one more */

    halo16_cut() = default;
    explicit halo16_cut(const cuda_halo &p) : across(p.tiles_across), down(p.tiles_down), lines(p.tap_sides[0])
    {
        share = p.steps / HALO16_TAPS / p.splits;
        rest = p.steps / HALO16_TAPS % p.splits;
    }
};

/* ---- tiles ---- */

template <typename OPERAND, int GROUPS, int PIXELS, int STAGES, int ROUNDING>
struct halo16_epilogue : halo16_tile<OPERAND, GROUPS, PIXELS> {
    using both = halo16_tile<OPERAND, GROUPS, PIXELS>;
    using tile = typename both::tile;
    using sums = typename both::sums;
    using both::FILTERS, both::WORKERS, both::WARPS;
    using tile::INNER, tile::ROW, tile::STEP, tile::PLACE, tile::PART;
    static constexpr int ROUNDERS = 32 * ROUNDING, THREADS = WORKERS + ROUNDERS + 32;
    static constexpr int LINE = HALO16_TAPS * STEP;                    /* bytes of weights of a k-step */
    static constexpr int QUADS = FILTERS / 4, LANES = THREADS / QUADS; /* pixels that are stored at a time */

    /* Blocks of a cluster share a tile and split its K. */
    struct block {
        int image, row, column, filter; /* the first of the tile */
        int lines;                      /* k-steps of a chunk */
        int first, last;                /* range of k-steps */
        int line;                       /* line of the window that the first k-step is */
        int chunk, chunks;              /* of the first k-step; one past that of the last */

        __device__ __forceinline__ block(const cuda_halo &p, const halo16_cut &cut)
        {
            const int split = static_cast<int>(blockIdx.x);
            filter = static_cast<int>(blockIdx.y) * FILTERS;
            int at;
            const int down = divide(static_cast<int>(blockIdx.z), cut.across, at);
            column = at << p.tile_log;
            image = divide(down, cut.down, at);
            row = at * (PIXELS >> p.tile_log);
            lines = p.tap_sides[0];
            first = cut.share * split + min(split, cut.rest);
            last = first + cut.share + (split < cut.rest);
            chunk = divide(first, cut.lines, line);
            chunks = cut.lines.quotient(last - 1) + 1;
        }
    };

    /* ---- results ---- */

    /* The sum of four neighbouring filters of the tile's pixel m over the MOST blocks, at most, that split K, in rank order. All loads
     * are issued before the first is awaited; none unless `wanted`. from: address of this thread's filters of pixel 0 in each block. */
    template <int MOST>
    static __device__ __forceinline__ float4 total_of(const cuda_halo &p, const uint32_t (&from)[MOST],
                                                      const float *part, int m, bool wanted)
    {
        if constexpr (MOST == 1) {
            return *reinterpret_cast<const float4 *>(part + m * PART);
        } else {
            float4 one[MOST];
#pragma unroll
            for (int rank = 0; rank < MOST; rank++)
                one[rank] = read_there(from[rank] + m * PART * 4, wanted && (MOST == 2 || rank < p.splits));
#pragma unroll
            for (int rank = 1; rank < MOST; rank++) {
                one[0].x += one[rank].x;
                one[0].y += one[rank].y;
                one[0].z += one[rank].z;
                one[0].w += one[rank].w;
            }
            return one[0];
        }
    }

    /* The same, or, with POOLS, the maximum over the 2x2 window m. */
    template <int MOST, bool POOLS>
    static __device__ __forceinline__ float4 result_of(const cuda_halo &p, const uint32_t (&from)[MOST],
                                                       const float *part, int m, bool wanted)
    {
        if (!POOLS) return total_of<MOST>(p, from, part, m, wanted);
        int at = (m >> 2) * 16 + (m & 3) * 2;
        float4 v = total_of<MOST>(p, from, part, at, wanted);
        v = larger(v, total_of<MOST>(p, from, part, at + 1, wanted));
        v = larger(v, total_of<MOST>(p, from, part, at + 8, wanted));
        return larger(v, total_of<MOST>(p, from, part, at + 9, wanted));
    }

    template <int MOST>
    static __device__ __forceinline__ void find_parts(const cuda_halo &p, uint32_t (&from)[MOST], const float *part)
    {
#pragma unroll
        for (int rank = 0; rank < MOST && MOST > 1; rank++) {
            from[rank] = 0;
            if (MOST == 2 || rank < p.splits) from[rank] = address_in(part, rank);
        }
    }

    static __device__ __forceinline__ float4 bias_of(const cuda_halo &p, int filter)
    {
        if (p.bias == nullptr || filter >= p.filters) return make_float4(0, 0, 0, 0);
        return __ldg(reinterpret_cast<const float4 *>(p.bias + filter));
    }

    /* Store the tile's results, or, with POOLS, their 2x2 maxima. A thread has the same four filters in each of its
     * pixels, and loads AT_ONCE pixels before it stores the first; under split-K each block stores some of the pixels. */
    template <int MOST, bool POOLS, bool ANY = false>
    static __device__ __forceinline__ void store_fours(const cuda_halo &p, const block &b, const float *part)
    {
        constexpr int AT_ONCE = POOLS || MOST > 2 ? 1 : 4;
        const int thread = static_cast<int>(threadIdx.x), column = thread % QUADS * 4, filter = b.filter + column;
        if (filter >= p.filters) return;
        const halo16_activation<ANY> activation(p.activation);
        const float4 bias = bias_of(p, filter);
        uint32_t from[MOST] = {};
        part += column;
        find_parts<MOST>(p, from, part);
        const int height = POOLS ? p.out_height / 2 : p.out_height, width = POOLS ? p.out_width / 2 : p.out_width;
        const int top = POOLS ? b.row / 2 : b.row, left = POOLS ? b.column / 2 : b.column, log = POOLS ? 2 : p.tile_log;
        const int mask = (1 << log) - 1, first = b.image * height; /* lines of earlier images */
        const int count = POOLS ? PIXELS / 4 : PIXELS, step = LANES * (MOST > 1 ? p.splits : 1);
        for (int begin = thread / QUADS + static_cast<int>(blockIdx.x) * LANES; begin < count;
             begin += AT_ONCE * step) {
            float4 value[AT_ONCE];
            bool wanted[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int m = begin + i * step;
                wanted[i] = m < count && top + (m >> log) < height && left + (m & mask) < width;
                value[i] = result_of<MOST, POOLS>(p, from, part, min(m, count - 1), wanted[i]);
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int m = begin + i * step, row = top + (m >> log), place = left + (m & mask);
                if (!wanted[i]) continue;
                float4 v = plus(value[i], bias);
                const int at = ((first + row) * width + place) * p.filters + filter;
                if (!POOLS && p.residual != nullptr) v = plus(v, *reinterpret_cast<const float4 *>(p.residual + at));
                v = activation.of(v);
                if (!POOLS || p.plane == 0) {
                    *reinterpret_cast<float4 *>(p.y + at) = v;
                } else {
                    float *y = p.y + (b.image * p.filters + filter) * p.plane + row * width + place;
                    y[0] = v.x;
                    y[p.plane] = v.y;
                    y[2 * p.plane] = v.z;
                    y[3 * p.plane] = v.w;
                }
            }
        }
    }

    /* The same for 2x2 maxima under split-K: a warp has a window and 32 filters, a lane one of the window's four
     * pixels, so that all blocks have something to load and no lane loads four pixels in turn. */
    template <int MOST>
    static __device__ __forceinline__ void pool_fours(const cuda_halo &p, const block &b, const float *part)
    {
        constexpr int GROUPS_OF = QUADS / 8, TEAMS = THREADS / 32 / GROUPS_OF;
        const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32, corner = lane / 8;
        const int column = (warp % GROUPS_OF * 8 + lane % 8) * 4, filter = b.filter + column, team = warp / GROUPS_OF;
        const halo16_activation<false> activation(p.activation);
        const float4 bias = bias_of(p, filter);
        uint32_t from[MOST] = {};
        part += column;
        find_parts<MOST>(p, from, part);
        const int height = p.out_height / 2, width = p.out_width / 2;
        if (team >= TEAMS) return;
        for (int m = team + static_cast<int>(blockIdx.x) * TEAMS; m < PIXELS / 4; m += TEAMS * p.splits) {
            const int row = b.row / 2 + (m >> 2), place = b.column / 2 + (m & 3);
            if (row >= height || place >= width) continue; /* the same for all lanes of a warp */
            const int pixel = (m >> 2) * 16 + (m & 3) * 2 + (corner >> 1) * 8 + (corner & 1);
            float4 v = total_of<MOST>(p, from, part, pixel, true);
#pragma unroll
            for (int other = 8; other < 32; other *= 2)
                v = larger(
                    v, make_float4(__shfl_xor_sync(0xffffffffu, v.x, other), __shfl_xor_sync(0xffffffffu, v.y, other),
                                   __shfl_xor_sync(0xffffffffu, v.z, other), __shfl_xor_sync(0xffffffffu, v.w, other)));
            if (filter >= p.filters) continue;
            v = activation.of(plus(v, bias));
            if (p.plane == 0) {
                if (corner == 0)
                    *reinterpret_cast<float4 *>(p.y + ((b.image * height + row) * width + place) * p.filters + filter) =
                        v;
            } else {
                const float one = corner < 2 ? corner == 0 ? v.x : v.y : corner == 2 ? v.z : v.w;
                p.y[(b.image * p.filters + filter + corner) * p.plane + row * width + place] = one;
            }
        }
    }

    /* The same for filters that are no multiple of 4 or not aligned for float4, and for pooling before an activation
     * that is not quick. */
    static __device__ __noinline__ void store_slowly(const cuda_halo &p, const block &b, const float *part, bool pools)
    {
        const int height = pools ? p.out_height / 2 : p.out_height, width = pools ? p.out_width / 2 : p.out_width;
        const int log = pools ? 2 : p.tile_log, count = pools ? PIXELS / 4 : PIXELS;
#pragma unroll 1
        for (int e = static_cast<int>(threadIdx.x) + static_cast<int>(blockIdx.x) * THREADS; e < count * FILTERS;
             e += THREADS * p.splits) {
            int m = e / FILTERS, column = e % FILTERS, filter = b.filter + column;
            int row = (pools ? b.row / 2 : b.row) + (m >> log);
            int place = (pools ? b.column / 2 : b.column) + (m & ((1 << log) - 1));
            if (row >= height || place >= width || filter >= p.filters) continue;
            float value = -INFINITY;
#pragma unroll 1
            for (int i = 0; i < (pools ? 4 : 1); i++) {
                int pixel = pools ? (m >> 2) * 16 + (m & 3) * 2 + i / 2 * 8 + i % 2 : m;
                const float *from = part + pixel * PART + column;
                float total = 0;
                for (int rank = 0; rank < p.splits; rank++) total += read_number(from, rank);
                value = pools ? larger(value, total) : total;
            }
            int64_t at = (static_cast<int64_t>(b.image * height + row) * width + place) * p.filters + filter;
            if (p.plane > 0) at = static_cast<int64_t>(b.image * p.filters + filter) * p.plane + row * width + place;
            if (p.bias != nullptr) value += p.bias[filter];
            if (p.residual != nullptr) value += p.residual[at];
            p.y[at] = activate(p.activation, value);
        }
    }

    /* Not inlined, so that the quick path keeps its registers. */
    template <int MOST>
    static __device__ __noinline__ void store_any(const cuda_halo &p, const block &b, const float *part)
    {
        store_fours<MOST, false, true>(p, b, part);
    }

    static __device__ __forceinline__ float read_number(const float *from, int rank)
    {
        float number;
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(number) : "r"(address_in(from, rank)));
        return number;
    }

    static __device__ __forceinline__ void store(const cuda_halo &p, const block &b, const float *part, bool pools)
    {
        if (!p.fours || (pools && !p.quick))
            store_slowly(p, b, part, pools);
        else if (!p.quick)
            p.splits > 1 ? store_any<HALO_SPLITS>(p, b, part) : store_any<1>(p, b, part);
        else if (p.splits > 2)
            pools ? pool_fours<HALO_SPLITS>(p, b, part) : store_fours<HALO_SPLITS, false>(p, b, part);
        else if (p.splits > 1)
            pools ? pool_fours<2>(p, b, part) : store_fours<2, false>(p, b, part);
        else
            pools ? store_fours<1, true>(p, b, part) : store_fours<1, false>(p, b, part);
    }
};

#endif
