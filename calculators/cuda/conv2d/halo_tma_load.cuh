/* SPDX-License-Identifier: MIT */
/* Producer warps of the TMA-tiled implicit GEMM in tf32 (conv2d/halo_tma.cuh): one loads patches, another the weights
 * of each ring, as far ahead as there are free stages. The whole warp runs the loop and one lane issues the copies: so
 * their operands stay in uniform registers, which the copy instructions take. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_LOAD_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_LOAD_CUH

#include "calculators/cuda/conv2d/halo_tma_epilogue.cuh"
#include "calculators/cuda/mbarrier.cuh"
#include "calculators/cuda/tma.cuh"

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int RINGS, int STAGES, int LINES, int SHARES = 1>
struct halo_tma_load : halo_tma_tile<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, SHARES> {
    using shape = halo_tma_tile<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, SHARES>;
    using block = typename shape::block;
    using shape::FILTERS, shape::ROW, shape::STEP, shape::TILE, shape::WARPS, shape::WORKERS;

    static constexpr int TILES = 16; /* more than may be in flight: HALO_PATCH_STAGES and one */

    struct ring {
        uint64_t full[STAGES], empty[STAGES];
    };
    struct barriers {
        ring weights[RINGS];
        uint64_t patch_full[HALO_PATCH_STAGES], patch_empty[HALO_PATCH_STAGES];
        int4 tile
            [TILES]; /* ring of the block's tiles: image, row, column, filter; written before the tile's first patch */
    };

    static __device__ __forceinline__ uint32_t place_of(uint64_t *barrier)
    {
        return static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
    }

    /* Called by each producer warp for the barriers of what it fills: number 0 patches, the others a weight ring. */
    static __device__ __forceinline__ void make_barriers(const cuda_halo &p, barriers *bar, int number)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        if (number == 0 && lane < p.patches) {
            barrier_init(&bar->patch_full[lane], 1);
            barrier_init(&bar->patch_empty[lane], WARPS);
        } else if (number > 0 && lane < STAGES) {
            barrier_init(&bar->weights[number - 1].full[lane], 1);
            barrier_init(&bar->weights[number - 1].empty[lane], WARPS / SHARES / RINGS);
        }
        fence_mbarrier_init();
        __syncwarp();
    }

    /* Rows of the patch from the first pixel of tap (0, 0) to that of each tap. */
    static __device__ void make_taps(const cuda_halo &p, int *tap_at)
    {
        const int places = p.patch_pixels / (p.pixel_step[0] * p.pixel_step[1]);
        for (int i = static_cast<int>(threadIdx.x); i < p.taps; i += WORKERS) {
            int down = i / p.taps_across * p.tap_step[0], right = i % p.taps_across * p.tap_step[1];
            int rest = down % p.pixel_step[0] * p.pixel_step[1] + right % p.pixel_step[1];
            tap_at[i] = rest * places + down / p.pixel_step[0] * p.patch_across + right / p.pixel_step[1];
        }
    }

    /* Load a chunk's patch element by element, from an image that is not aligned for TMA; only for windows with stride 1. */
    static __device__ __noinline__ void load_slowly(const cuda_halo &p, const block &b, uint32_t to, int chunk)
    {
        for (int i = 0; i < p.patch_down * p.patch_across * HALO_CHANNELS; i++) {
            int place = i / HALO_CHANNELS, number = i % HALO_CHANNELS, channel = chunk * HALO_CHANNELS + number;
            int h = b.row(p) - p.padding[0] + place / p.patch_across;
            int w = b.column(p) - p.padding[1] + place % p.patch_across;
            bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.height) && channel < p.channels &&
                          static_cast<unsigned>(w) < static_cast<unsigned>(p.width);
            float value = 0;
            if (inside)
                value = p.x[((static_cast<int64_t>(b.image) * p.height + h) * p.width + w) * p.channels + channel];
            uint32_t at = to + place * ROW + ((number / 4 ^ place % 8) << 4) + number % 4 * 4; /* swizzled */
            asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(operand_bits<SDLF_MATH_TF32>(value)) : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }

    /* Wait with the whole warp before one lane copies, so that no lane falls behind by more than one phase. */
    static __device__ __forceinline__ void await_with_warp(uint64_t *barrier, int parity)
    {
        barrier_await(barrier, parity);
        __syncwarp();
    }

    static __device__ void load_patches(const cuda_halo &p, const CUtensorMap *x, uint32_t patches, barriers *bar,
                                        unsigned units)
    {
        const bool row = p.tile_down == 1; /* then there is a box for each group */
        const int remainders = p.pixel_step[0] * p.pixel_step[1], boxes = row ? PIXEL_GROUPS : remainders;
        const int rows = row ? PIXELS : boxes == 1 ? p.patch_pixels : p.patch_pixels / remainders; /* from box to box */
        const int bytes = (row ? TILE : remainders * p.patch_down * p.patch_across) * ROW;
        const bool one = threadIdx.x % 32 == 0;
        int slot = 0, turn = 0, number = 0;
        if (p.quads) tma_prefetch(x);
        for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x, number++) {
            const block b(p, unit);
            const int h = b.row(p) * p.stride[0] - p.padding[0], w = b.column(p) * p.stride[1] - p.padding[1];
            const int end = p.splits > 1 ? (b.last - 1) / p.taps + 1 : p.chunks;
            if (one) bar->tile[number % TILES] = {b.image, b.row(p), b.column(p), b.filter()};
            for (int chunk = p.splits > 1 ? b.first / p.taps : 0; chunk < end; chunk++) {
                if (turn > 0) await_with_warp(&bar->patch_empty[slot], (turn - 1) & 1);
                uint32_t full = place_of(&bar->patch_full[slot]), to = patches + slot * p.patch_bytes;
                if (p.quads && one) tma_expect(full, bytes);
                if (number == 0 && turn == 0 && slot == 0) wait_on_dependent_grids();
                if (p.quads && boxes == 1) {
                    if (one) tma_load_image(to, x, {chunk * HALO_CHANNELS, w, h, b.image}, full);
                } else if (p.quads) {
                    for (int i = 0; i < boxes; i++) {
                        int down = row ? 0 : i / p.pixel_step[1], right = row ? i * PIXELS : i % p.pixel_step[1];
                        if (one)
                            tma_load_image(to + i * rows * ROW, x,
                                           {chunk * HALO_CHANNELS, w + right, h + down, b.image}, full);
                    }
                } else if (one) {
                    load_slowly(p, b, to, chunk);
                    barrier_arrive(&bar->patch_full[slot]);
                }
                if (one && number == 0 && turn == 0 && slot == 0 && p.ahead_bytes == 0) launch_dependent_grids();
                if (++slot == p.patches) {
                    slot = 0;
                    turn++;
                }
            }
        }
    }

    /* Load the weights of a tile's filters from `skipped` on, k-step by k-step. */
    static __device__ void load_weights(const cuda_halo &p, char *weights, ring *ring, int skipped, unsigned units)
    {
        const int64_t pitch = static_cast<int64_t>(p.filters_padded) * ROW; /* bytes from k-step to k-step */
        int stage = 0, turn = 0;
        for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x) {
            const block b(p, unit);
            const char *from = p.w + b.first * pitch + (b.filter() + skipped) * ROW;
            for (int step = b.first; step < b.last; step++, from += pitch) {
                if (turn > 0) await_with_warp(&ring->empty[stage], (turn - 1) & 1);
                if (threadIdx.x % 32 == 0) copy_bulk(weights + stage * STEP, from, STEP, &ring->full[stage]);
                if (++stage == STAGES) {
                    stage = 0;
                    turn++;
                }
            }
        }
    }
};

#endif
