/* SPDX-License-Identifier: MIT */
/* TMA-tiled implicit GEMM in tf32 (conv2d/halo_tma.cuh) with a TMA-store epilogue: for blocks that compute several tiles.
 *
 * A warpgroup writes its 64 filters of a tile, after bias, residual and activation, to a staging area of shared memory in TMA's layout: two halves
 * of 32 filters, a pixel a row of 128 bytes, 16-byte chunks at chunk ^ (row % 8). One thread of a warp of its own issues the TMA store, which
 * clips at the edges of y, and the group continues with its next tile. The groups use the area in turn: while one does, the other multiplies.
 * With whole lines, the slots that are no pixels are staged, too: they are outside y. A residual is loaded by TMA into the area before a group
 * gets it; the group adds to what it finds there.
 *
 * 2x2 maxima are taken in registers: a thread has two neighbours of a line, and those below them. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_STORE_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_STORE_CUH

#include "calculators/cuda/conv2d/halo_tma.cuh"

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int STAGES, bool THROUGH>
struct halo_tma_stored : halo_tma_product<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, FILTER_GROUPS, STAGES, 2, THROUGH> {
    using base = halo_tma_product<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, FILTER_GROUPS, STAGES, 2, THROUGH>;
    using loader = typename base::loader;
    using barriers = typename base::barriers;
    using block = typename base::block;
    using sums = typename base::sums;
    using base::GROUPS, base::WARPS, base::ROW, base::STEP;

    static constexpr int RINGS = FILTER_GROUPS;
    static constexpr int THREADS = base::THREADS + 32; /* with a warp that stores */
    static constexpr int HALF =
        HALO_STAGED(PIXELS, THROUGH &&PIXEL_GROUPS == 1) * ROW; /* bytes of 32 filters of a tile */
    static_assert(THROUGH || HALF / 4 % 1024 == 0, "boxes of pooled results begin at multiples of 1024");

    /* mbarriers of the staging area: `free` for a group, with the residual loaded; `full` of its results. A phase is a tile. */
    struct turns {
        uint64_t full[GROUPS], free[GROUPS];
    };

    /* What turns a sum into a result. */
    struct epilogue {
        float bias[2], low, high;

        __device__ epilogue(const cuda_halo &p, int filter)
        {
            const bool bounded = p.activation.function == SDLF_CLIP;
            low = bounded                              ? static_cast<float>(p.activation.low)
                  : p.activation.function == SDLF_RELU ? 0.0f
                                                       : -INFINITY;
            high = bounded ? static_cast<float>(p.activation.high) : INFINITY;
#pragma unroll
            for (int i = 0; i < 2; i++)
                bias[i] = p.bias != nullptr && filter + i * 8 < p.filters ? __ldg(p.bias + filter + i * 8) : 0.0f;
        }
    };

    static __device__ __forceinline__ float staged(uint32_t at)
    {
        float value;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(at) : "memory");
        return value;
    }
    static __device__ __forceinline__ void stage(uint32_t at, float value)
    {
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(value) : "memory");
    }
    /* Shared-memory address of a filter of the group's 64, where 32 filters take half_bytes. The address of the filter
     * 8 further on, the other one of a thread, differs in one bit of the chunk: NEXT. */
    static __device__ __forceinline__ uint32_t place_of(uint32_t area, int half_bytes, int row, int filter)
    {
        return area + filter / 32 * half_bytes + row * ROW + ((filter % 32 / 4 ^ row % 8) << 4) + filter % 4 * 4;
    }
    static constexpr uint32_t NEXT = 2 << 4;

    /* Write results to the staging area. filter: this thread's first of the group's 64. ADDED: the area holds the residual. */
    template <bool ADDED, int N>
    static __device__ __forceinline__ void stage_results(const epilogue &last, const float (&sum)[N][4], uint32_t area,
                                                         int filter)
    {
        uint32_t at[4];
#pragma unroll
        for (int v = 0; v < 4; v++)
            at[v] = place_of(area, HALF, static_cast<int>(threadIdx.x) % 4 * 2 + v % 2, filter) ^ v / 2 * NEXT;
#pragma unroll
        for (int j = 0; j < N; j++) {
            float more[4] = {0, 0, 0, 0};
            if (ADDED) {
#pragma unroll
                for (int v = 0; v < 4; v++) more[v] = staged(at[v] + j * 8 * ROW);
            }
#pragma unroll
            for (int v = 0; v < 4; v++) {
                float value = sum[j][v] + last.bias[v / 2];
                if (ADDED) value += more[v];
                stage(at[v] + j * 8 * ROW, base::between(value, last.low, last.high));
            }
        }
    }

    static __device__ __forceinline__ float larger(float a, float b)
    {
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
        return a;
    }

    /* The same for 2x2 maxima. */
    static __device__ __forceinline__ void stage_pooled(const epilogue &last, const sums &sum, uint32_t area,
                                                        int filter)
    {
        uint32_t at[2][2]; /* in the first four rows of 8 and in the others, of both filters */
#pragma unroll
        for (int i = 0; i < 4; i++)
            at[i / 2][i % 2] =
                place_of(area, HALF / 4, i / 2 * 4 + static_cast<int>(threadIdx.x) % 4, filter) ^ i % 2 * NEXT;
#pragma unroll
        for (int j = 0; j < PIXELS / 8; j += 2) {
#pragma unroll
            for (int v = 0; v < 2; v++) {
                float most =
                    larger(larger(sum[j][v * 2], sum[j][v * 2 + 1]), larger(sum[j + 1][v * 2], sum[j + 1][v * 2 + 1]));
                stage(at[j / 2 % 2][v] + j / 4 * 8 * ROW, larger(most + last.bias[v], 0.0f));
            }
        }
    }

    /* Loop of the storing warp: give the area to each group in turn, and store its results by TMA. */
    static __device__ void store(const cuda_halo &p, const CUtensorMap *y, const CUtensorMap *residual, uint32_t area,
                                 turns *turn, unsigned units)
    {
        const bool one = threadIdx.x % 32 == 0, line = p.tile_down == 1;
        const int half_bytes = p.pools ? HALF / 4 : HALF, down_by = p.pools ? 2 : 1;
        const int rows = THROUGH ? p.tile_down * p.patch_across : PIXELS;
        int phase = 0;
        tma_prefetch(y);
        if (p.residual != nullptr) tma_prefetch(residual);
        wait_on_dependent_grids(); /* the residual is complete, and nobody reads what y overwrites */
        for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x, phase ^= 1) {
            const block b(p, unit);
#pragma unroll 1
            for (int group = 0; group < GROUPS; group++) {
                const int column = b.column(p) + group % PIXEL_GROUPS * (line ? PIXELS : 8);
                const image_place first = {b.filter() + group / PIXEL_GROUPS * 64, column / down_by, b.row(p) / down_by,
                                           b.image};
                const image_place second = {first.channel + 32, first.column, first.row, first.image};
                const uint32_t free = loader::place_of(&turn->free[group]);
                if (p.residual != nullptr && one) {
                    tma_expect(free, 2 * rows * ROW);
                    tma_load_image(area, residual, first, free);
                    tma_load_image(area + half_bytes, residual, second, free);
                } else if (one) {
                    barrier_arrive(&turn->free[group]);
                }
                loader::await_with_warp(&turn->full[group], phase);
                if (one) {
                    tma_store_image(y, area, first);
                    tma_store_image(y, area + half_bytes, second);
                    tma_await_stores<true>();
                }
            }
        }
        if (one) tma_await_stores<false>();
    }

    static __device__ __forceinline__ void make_barriers(const cuda_halo &p, barriers *bar, turns *turn, int *tap_at,
                                                         int warp)
    {
        if (warp < WARPS) {
            loader::make_taps(p, tap_at);
        } else if (warp <= WARPS + RINGS) {
            loader::make_barriers(p, bar, warp - WARPS);
        } else if (threadIdx.x % 32 == 0) {
            for (int i = 0; i < GROUPS; i++) {
                barrier_init(&turn->full[i], 128);
                barrier_init(&turn->free[i], 1);
            }
            fence_mbarrier_init();
        }
        __syncthreads();
    }

    static __device__ void run(const cuda_halo &p, const CUtensorMap *x, const CUtensorMap *y,
                               const CUtensorMap *residual)
    {
        extern __shared__ __align__(1024) char memory[];
        char *shared = memory + (1024 - halo_address(memory) % 1024) % 1024;
        const int product = RINGS * STAGES * STEP + p.patches * p.patch_bytes;
        const uint32_t filters = halo_address(shared), patches = filters + RINGS * STAGES * STEP;
        const uint32_t area = filters + product;
        barriers *bar = reinterpret_cast<barriers *>(shared + product + 2 * HALF);
        turns *turn = reinterpret_cast<turns *>(bar + 1);
        int *tap_at = reinterpret_cast<int *>(turn + 1);
        const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32,
                                     0); /* the shuffle tells the compiler that it is the same in all lanes */
        const int group = warp / 4,
                  producer = warp - WARPS; /* 0: patches; then the weight rings; the last one stores */
        const unsigned units = static_cast<unsigned>(p.images * p.tiles_down * p.tiles_across * p.tiles_filters);
        make_barriers(p, bar, turn, tap_at, warp);
        if (producer == 0) {
            if (p.ahead_bytes > 0 && threadIdx.x % 32 == 0)
                prefetch_share(p.ahead, p.ahead_bytes, blockIdx.x, gridDim.x);
            loader::load_patches(p, x, patches, bar, units);
        } else if (producer > RINGS) {
            store(p, y, residual, area, turn, units);
        } else if (producer > 0) {
            const int number = producer - 1;
            if (p.fresh) wait_on_dependent_grids();
            loader::load_weights(p, shared + number * STAGES * STEP, &bar->weights[number], number * 64, units);
        } else {
            make_tiles(p, group, filters, patches, area, tap_at, bar, turn, units);
        }
    }

    /* Loop of a group's warps: compute its part of one tile after the other. */
    static __device__ __forceinline__ void make_tiles(const cuda_halo &p, int group, uint32_t filters, uint32_t patches,
                                                      uint32_t area, const int *tap_at, barriers *bar, turns *turn,
                                                      unsigned units)
    {
        typename base::position at = {0, 0, 0, 0};
        typename loader::ring *ring = &bar->weights[RINGS > 1 ? group : 0];
        const uint32_t rows = filters + (RINGS > 1 ? group * STAGES * STEP : 0);
        const uint32_t pixels = patches + group % PIXEL_GROUPS * (p.tile_down == 1 ? PIXELS : 8) * ROW;
        const int filter = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
        int phase = 0, lead = RINGS > 1 ? min(p.lead, min(p.steps, p.patches * p.taps)) : 0;
        wait_on_dependent_grids();
        if (group == 1 && lead > 0) {
            base::await_ahead();
            lead = 0;
        }
        for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x, phase ^= 1) {
            const block b(p, unit);
            sums sum = {};
            base::multiply(p, b, sum, at, 0, rows, pixels, tap_at, bar, ring, lead);
            lead = 0;
            const epilogue last(p, b.filter() + group / PIXEL_GROUPS * 64 + filter);
            barrier_await(&turn->free[group], phase);
            if (!THROUGH && p.pools)
                stage_pooled(last, sum, area, filter);
            else if (p.residual != nullptr)
                stage_results<true>(last, sum, area, filter);
            else
                stage_results<false>(last, sum, area, filter);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            barrier_arrive(&turn->full[group]);
        }
    }
};

template <typename PRODUCT>
static __global__ void __launch_bounds__(PRODUCT::THREADS, 1)
    halo_tma_store_kernel(const __grid_constant__ cuda_halo p, const __grid_constant__ CUtensorMap x,
                          const __grid_constant__ CUtensorMap y, const __grid_constant__ CUtensorMap residual)
{
    PRODUCT::run(p, &x, &y, &residual);
}

#endif
