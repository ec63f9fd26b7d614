/* SPDX-License-Identifier: MIT */
/* TMA-tiled implicit GEMM in tf32 (conv2d/halo_tma.cuh): tile sizes, the tiles of a block, and the epilogue that stores
 * results, or their 2x2 maxima, straight to y through a small staging buffer. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_EPILOGUE_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_EPILOGUE_CUH

#include "calculators/cuda/conv2d/halo.cuh"

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int RINGS, int LINES, int SHARES = 1> struct halo_tma_tile {
    static constexpr int GROUPS = FILTER_GROUPS * PIXEL_GROUPS; /* for each share of the k-steps */
    static constexpr int WORKERS = 128 * GROUPS * SHARES, WARPS = WORKERS / 32;
    static constexpr int THREADS =
        WORKERS + 32 + 32 * RINGS; /* one producer warp for patches, one for each weight ring */
    static constexpr int FILTERS = 64 * FILTER_GROUPS, TILE = PIXELS * PIXEL_GROUPS;
    static constexpr int ROW = HALO_CHANNELS * 4, STEP = FILTERS / RINGS * ROW /* of a ring */, PART = FILTERS + 4;
    static constexpr int SOME = 8 * LINES,
                         LEFT = 68; /* pixels of a group that are stored at a time; a row of 64 filters, in floats */
    static constexpr int LEAVING = 2 * SOME * LEFT; /* floats of a group's staging buffers, of which there are two */

    typedef float sums[PIXELS / 8][4];

    struct block {
        int image, down, across, filters; /* the tile's index along each axis */
        int split, first, last, tap;      /* range of k-steps, and the tap of the first */

        __device__ block(const cuda_halo &p, unsigned at)
        {
            split = 0;
            if (p.splits > 1) {
                split = static_cast<int>(at % p.splits);
                at /= p.splits;
            }
            filters = static_cast<int>(at % p.tiles_filters);
            at /= p.tiles_filters;
            across = static_cast<int>(at % p.tiles_across);
            at /= p.tiles_across;
            down = static_cast<int>(at % p.tiles_down);
            image = static_cast<int>(at / p.tiles_down);
            first = tap = 0;
            last = p.steps;
            if (p.splits > 1) {
                const unsigned share = static_cast<unsigned>(p.steps) / p.splits, rest = p.steps - share * p.splits;
                first = static_cast<int>(share) * split + min(split, static_cast<int>(rest));
                last = first + static_cast<int>(share) + (split < static_cast<int>(rest));
                tap = static_cast<int>(static_cast<unsigned>(first) % p.taps);
            }
        }

        __device__ __forceinline__ int filter() const
        {
            return filters * FILTERS;
        }
        __device__ __forceinline__ int row(const cuda_halo &p) const
        {
            return down * p.tile_down;
        }
        __device__ __forceinline__ int column(const cuda_halo &p) const
        {
            return across * p.tile_across;
        }
    };
};

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int RINGS, int LINES, bool THROUGH, int SHARES = 1>
struct halo_tma_epilogue : halo_tma_tile<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, SHARES> {
    using shape = halo_tma_tile<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, SHARES>;
    using block = typename shape::block;
    using sums = typename shape::sums;
    using shape::SOME, shape::LEFT;

    /* Barrier among the 128 threads of a group. */
    static __device__ __forceinline__ void await_group(int group)
    {
        asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    }

    /* Clamp, which is any quick activation; NaN stays NaN. */
    static __device__ __forceinline__ float between(float x, float low, float high)
    {
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(low));
        asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(high));
        return x;
    }

    static __device__ __forceinline__ float low_of(const sdlf_activation &quick)
    {
        if (quick.function == SDLF_CLIP) return static_cast<float>(quick.low);
        return quick.function == SDLF_RELU ? 0.0f : -INFINITY;
    }
    static __device__ __forceinline__ float high_of(const sdlf_activation &quick)
    {
        return quick.function == SDLF_CLIP ? static_cast<float>(quick.high) : INFINITY;
    }

    /* Write some of a group's sums, in the layout of WGMMA accumulators, to one of its two staging buffers; to: this thread's address. */
    static __device__ __forceinline__ void leave(const sums &sum, int some, float *to)
    {
        to += some % 2 * SOME * LEFT;
#pragma unroll
        for (int line = 0; line < LINES; line++) {
            const float(&c)[4] = sum[some * LINES + line];
#pragma unroll
            for (int v = 0; v < 4; v++) to[(line * 8 + v % 2) * LEFT + v / 2 * 8] = c[v];
        }
    }

    /* A thread's results in a tile of whole lines: every eighth slot, from slot `first` on. */
    struct walk {
        int row, column;

        __device__ __forceinline__ bool exists(const cuda_halo &p, const int4 &tile_at) const
        {
            return column < p.out_width && row < p.tile_down && tile_at.y + row < p.out_height;
        }
        /* Advance to the next one; returns the elements of y between the two. */
        __device__ __forceinline__ int64_t advance(const cuda_halo &p)
        {
            column += 8;
            bool over = column >= p.patch_across;
            if (over) {
                column -= p.patch_across;
                row++;
            }
            return static_cast<int64_t>(over ? 8 + p.out_width - p.patch_across : 8) * p.filters;
        }
    };

    /* Store a group's results through its two staging buffers at `leaving`: sums are written in the accumulator layout,
     * and read as four filters of a pixel a thread. */
    static __device__ __forceinline__ void store_results(const cuda_halo &p, const int4 &tile_at, const sums &sum,
                                                         float *leaving, int group)
    {
        const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
        const bool row = p.tile_down == 1;
        const int left = tile_at.z + group % PIXEL_GROUPS * (row ? PIXELS : 8), pixel = thread / 16;
        const int filter = tile_at.w + group / PIXEL_GROUPS * 64 + thread % 16 * 4;
        const int64_t line_step =
            static_cast<int64_t>(row ? 8 : p.out_width) * p.filters; /* between a thread's results */
        int64_t at = (static_cast<int64_t>(tile_at.x) * p.out_height + tile_at.y) * p.out_width + left + pixel;
        int lines =
            row ? (p.out_width - left - pixel + 7) / 8 : p.out_height - tile_at.y; /* lines of this thread that exist */
        if (filter >= p.filters || left + pixel >= p.out_width) lines = 0;
        float4 bias = {0, 0, 0, 0};
        if (p.bias != nullptr && filter < p.filters) bias = __ldg(reinterpret_cast<const float4 *>(p.bias + filter));
        const float low = low_of(p.activation), high = high_of(p.activation);
        at = at * p.filters + filter;
        float *to = leaving + lane % 4 * 2 * LEFT + warp * 16 + lane / 4;
        const float *from = leaving + pixel * LEFT + thread % 16 * 4;
        walk place = {0, pixel};
        int64_t next = at;
        leave(sum, 0, to);
#pragma unroll
        for (int some = 0; some < PIXELS / SOME; some++) {
            const int turn = some % 2 * SOME * LEFT;
            await_group(group); /* whoever is past it has read the other buffer */
            float4 four[LINES];
#pragma unroll
            for (int line = 0; line < LINES; line++)
                four[line] = *reinterpret_cast<const float4 *>(from + turn + line * 8 * LEFT);
            if (some + 1 < PIXELS / SOME) leave(sum, some + 1, to);
#pragma unroll
            for (int line = 0; line < LINES; line++) {
                float4 v = {four[line].x + bias.x, four[line].y + bias.y, four[line].z + bias.z, four[line].w + bias.w};
                bool exists = some * LINES + line < lines;
                if (THROUGH) {
                    exists = lines > 0 && place.exists(p, tile_at);
                    at = next;
                    next += place.advance(p);
                }
                if (!exists) continue;
                if (p.residual != nullptr) {
                    float4 more = *reinterpret_cast<const float4 *>(p.residual + at);
                    v = make_float4(v.x + more.x, v.y + more.y, v.z + more.z, v.w + more.w);
                }
                *reinterpret_cast<float4 *>(p.y + at) = make_float4(between(v.x, low, high), between(v.y, low, high),
                                                                    between(v.z, low, high), between(v.w, low, high));
                if (!THROUGH) at += line_step;
            }
        }
        await_group(group); /* before the next tile's results */
    }

    static __device__ __forceinline__ float4 larger(float4 a, float4 b)
    {
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(a.x) : "f"(b.x));
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(a.y) : "f"(b.y));
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(a.z) : "f"(b.z));
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(a.w) : "f"(b.w));
        return a;
    }

    /* Index in y of a pooled result, and the store of four neighbouring filters there. */
    static __device__ __forceinline__ int64_t pooled_at(const cuda_halo &p, int image, int row, int column, int filter)
    {
        const int64_t height = p.out_height / 2, width = p.out_width / 2;
        if (p.plane > 0) return ((static_cast<int64_t>(image) * p.filters + filter) * height + row) * width + column;
        return ((image * height + row) * width + column) * p.filters + filter;
    }

    static __device__ __forceinline__ void store_pooled_four(const cuda_halo &p, float *y, const float4 &v)
    {
        if (p.plane == 0) {
            *reinterpret_cast<float4 *>(y) = v;
        } else {
            y[0] = v.x;
            y[p.plane] = v.y;
            y[2 * p.plane] = v.z;
            y[3 * p.plane] = v.w;
        }
    }

    /* The same for 2x2 maxima, with ReLU: a thread has the two lines of a pixel, and gets its neighbour's maximum from
     * the lane 16 further on; of four lines' results each of the two stores one row. */
    static __device__ __forceinline__ void store_pooled(const cuda_halo &p, const int4 &tile_at, const sums &sum,
                                                        float *leaving, int group)
    {
        const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
        const int pixel = thread / 16, odd = pixel % 2;
        const int height = p.out_height / 2, width = p.out_width / 2;
        const int column = (tile_at.z + group % PIXEL_GROUPS * 8 + pixel) / 2;
        const int filter = tile_at.w + group / PIXEL_GROUPS * 64 + thread % 16 * 4;
        const bool stores = filter < p.filters && column < width && (LINES > 2 || !odd);
        float4 bias = {0, 0, 0, 0};
        if (p.bias != nullptr && filter < p.filters) bias = __ldg(reinterpret_cast<const float4 *>(p.bias + filter));
        int row = tile_at.y / 2 + (LINES > 2 ? odd : 0);
        float *y = p.y + pooled_at(p, tile_at.x, row, column, filter);
        float *to = leaving + lane % 4 * 2 * LEFT + warp * 16 + lane / 4;
        const float *from = leaving + pixel * LEFT + thread % 16 * 4;
        leave(sum, 0, to);
#pragma unroll
        for (int some = 0; some < PIXELS / SOME; some++) {
            const int turn = some % 2 * SOME * LEFT;
            await_group(group); /* whoever is past it has read the other buffer */
            float4 four[LINES];
#pragma unroll
            for (int line = 0; line < LINES; line++)
                four[line] = *reinterpret_cast<const float4 *>(from + turn + line * 8 * LEFT);
            if (some + 1 < PIXELS / SOME) leave(sum, some + 1, to);
            float4 first = larger(four[0], four[1]), second = first, mine = first;
            if (LINES > 2) {
                second = larger(four[LINES - 2], four[LINES - 1]);
                mine = odd ? second : first;
                second = odd ? first : second; /* for the neighbour */
            }
            float4 v = {__shfl_xor_sync(0xffffffffu, second.x, 16), __shfl_xor_sync(0xffffffffu, second.y, 16),
                        __shfl_xor_sync(0xffffffffu, second.z, 16), __shfl_xor_sync(0xffffffffu, second.w, 16)};
            v = larger(v, mine);
            v = make_float4(v.x + bias.x, v.y + bias.y, v.z + bias.z, v.w + bias.w);
            if (stores && row < height) store_pooled_four(p, y, larger(v, make_float4(0, 0, 0, 0)));
            row += LINES / 2;
            y += static_cast<int64_t>(LINES / 2) * width * (p.plane > 0 ? 1 : p.filters);
        }
        await_group(group); /* before the next tile's results */
    }
};

#endif
