/* SPDX-License-Identifier: MIT */
/* Convolution over boxes in tf32 whose results leave as boxes (conv2d/patch_box_store.cuh), with tiles of whole lines that are counted through two
 * groups of warps: the first has FIRST pixels, the second SECOND, of the same 64 filters. So fewer places of a product are no pixels: of 28 x 28
 * pixels, 14 lines of 29 places are 406 of 408, where 7 lines are 203 of 208.
 *
 * A line may begin in one group and end in the other: each group's results are two boxes of 32 filters' pixels, its whole lines and its part of
 * that line. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_WIDE_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_BOX_WIDE_CUH

#include "calculators/cuda/conv2d/patch_box_store.cuh"

/* Of y: the first group's lines, its part of the line between, the second group's, and its lines. */
struct patch_wide_maps {
    CUtensorMap y[4];
};

template <int FIRST, int SECOND, int STAGES> struct patch_box_wide : patch_box_stored<1, 2, FIRST, STAGES, true> {
    using stored = patch_box_stored<1, 2, FIRST, STAGES, true>;
    using base = typename stored::base;
    using bring = typename base::bring;
    using barriers = typename base::barriers;
    using block = typename base::block;
    using turns = typename stored::turns;
    using base::WARPS, base::ROW, base::STEP, stored::HALF, stored::THREADS;

    /* Of one warp, as in patch_box_stored. */
    static __device__ void store(const cuda_patch &p, const patch_wide_maps &maps, uint32_t area, turns *turn,
                                 unsigned units)
    {
        const bool one = threadIdx.x % 32 == 0;
        const int lines = FIRST / p.patch_across, rest = FIRST % p.patch_across; /* of the first group */
        int phase = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) tma_prefetch(&maps.y[i]);
        await_inputs(); /* nobody needs what y replaces */
        for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x, phase ^= 1) {
            const block b(p, unit);
            for (int group = 0; group < 2; group++) {
                if (one) barrier_arrive(&turn->free[group]);
                bring::await_with_warp(&turn->full[group], phase);
                if (!one) continue;
                for (int half = 0; half < 2; half++) {
                    const uint32_t from = area + half * HALF;
                    image_place at = {b.filter() + half * 32, 0, b.row(p), b.image};
                    if (group == 0) {
                        tma_store_image(&maps.y[0], from, at);
                        at.row += lines;
                        tma_store_image(&maps.y[1], from + lines * p.patch_across * ROW, at);
                    } else {
                        at.row += lines;
                        at.column = rest;
                        tma_store_image(&maps.y[2], from, at);
                        at.row++;
                        at.column = 0;
                        tma_store_image(&maps.y[3], from + (p.patch_across - rest) * ROW, at);
                    }
                }
                tma_await_stores<true>();
            }
        }
        if (one) tma_await_stores<false>();
    }

    /* Of a group's warps: its part of one tile after the other, N pixels from place `first` on. */
    template <int N>
    static __device__ __forceinline__ void make_tiles(const cuda_patch &p, int group, int first, uint32_t filters,
                                                      uint32_t patches, uint32_t area, const int *tap_at, barriers *bar,
                                                      turns *turn, unsigned units)
    {
        typename base::position at = {0, 0, 0, 0};
        const int filter = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
        int phase = 0;
        await_inputs();
        for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x, phase ^= 1) {
            const block b(p, unit);
            float sum[N / 8][4] = {};
            base::template multiply<N>(p, b, sum, at, 0, filters, patches + first * ROW, tap_at, bar, &bar->weights[0],
                                       0);
            const typename stored::finish last(p, b.filter() + filter);
            barrier_await(&turn->free[group], phase);
            stored::template stage_results<false>(last, sum, area, filter);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            barrier_arrive(&turn->full[group]);
        }
    }

    static __device__ void run(const cuda_patch &p, const CUtensorMap *x, const patch_wide_maps &maps)
    {
        extern __shared__ __align__(1024) char memory[];
        char *shared = memory + (1024 - patch_address(memory) % 1024) % 1024;
        const int product = STAGES * STEP + p.patches * p.patch_bytes;
        const uint32_t filters = patch_address(shared), patches = filters + STAGES * STEP, area = filters + product;
        barriers *bar = reinterpret_cast<barriers *>(shared + product + 2 * HALF);
        turns *turn = reinterpret_cast<turns *>(bar + 1);
        int *tap_at = reinterpret_cast<int *>(turn + 1);
        const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
        const unsigned units = static_cast<unsigned>(p.images * p.tiles_down * p.tiles_across * p.tiles_filters);
        stored::make_barriers(p, bar, turn, tap_at, warp);
        if (warp < 4) {
            make_tiles<FIRST>(p, 0, 0, filters, patches, area, tap_at, bar, turn, units);
        } else if (warp < WARPS) {
            make_tiles<SECOND>(p, 1, FIRST, filters, patches, area, tap_at, bar, turn, units);
        } else if (warp == WARPS) {
            if (p.ahead_bytes > 0 && threadIdx.x % 32 == 0)
                prefetch_share(p.ahead, p.ahead_bytes, blockIdx.x, gridDim.x);
            bring::bring_patches(p, x, patches, bar, units);
        } else if (warp == WARPS + 1) {
            if (p.fresh) await_inputs();
            bring::bring_weights(p, shared, &bar->weights[0], 0, units);
        } else {
            store(p, maps, area, turn, units);
        }
    }
};

template <typename PRODUCT>
static __global__ void __launch_bounds__(PRODUCT::THREADS, 1)
    patch_box_wide_kernel(const __grid_constant__ cuda_patch p, const __grid_constant__ CUtensorMap x,
                          const __grid_constant__ patch_wide_maps maps)
{
    PRODUCT::run(p, &x, maps);
}

#endif
