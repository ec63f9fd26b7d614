/* SPDX-License-Identifier: MIT */
/* TMA-tiled implicit GEMM in tf32: WGMMA with both operands in shared memory, where TMA loads patches as boxes of x (tma.cuh). For compute
 * capability 9.0a.
 *
 * Operands are swapped: the rows (M) of the GEMM are filters, 64 for each warpgroup, its columns (N) are pixels. A tile is PIXEL_GROUPS times 8
 * pixels across and PIXELS / 8 lines high, or, for 1x1 convolutions without stride, one row. 8 neighbouring pixels of a line are 8 consecutive
 * rows of 128 bytes of the patch; the 8 of the next line begin one line of the patch later. A matrix descriptor describes just that, and a tap is
 * the same with another first row. For strided windows, the pixels of each remainder by the strides are contiguous in the patch, each remainder
 * a box of its own. THROUGH: a tile is whole lines of the image, whose pixels are linearised, with a slot that is no pixel after each line
 * (conv2d/halo_tiling.c), so that less of a tile is empty where the image's width is no multiple of 8.
 *
 * The kernel is warp-specialised. One producer warp loads patches, another weights, as far ahead as there are free stages
 * (conv2d/halo_tma_load.cuh); all other warps multiply. A block computes one tile after the other; while a tile's results go through a small
 * staging buffer to y, the next tile's operands are loaded. Two groups of 64 filters have a weight ring each where registers allow for the warp
 * that fills it: the first group leads by some k-steps, so that the epilogue of each overlaps the mainloop of the other (ping-pong). With split-K
 * over a cluster, and with activations that are slow to compute, sums overwrite the operands, and a block has one tile. The same holds for
 * SHARES > 1: that many sets of groups, each of which takes every SHARES-th k-step, so that tensor cores are busy while one set executes the
 * instructions between its k-steps; their sums are added in shared memory.
 *
 * TMA rounds pixels to tf32 as it loads them; weights were rounded when they were prepacked. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_TMA_CUH

#include "calculators/cuda/conv2d/halo_tma_load.cuh"
#include "calculators/cuda/conv2d/halo_tma_split_k.cuh"
#include "calculators/cuda/wgmma.cuh"

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int RINGS, int STAGES, int LINES, bool THROUGH,
          int SHARES = 1>
struct halo_tma_product : halo_tma_split_k<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, THROUGH, SHARES> {
    using results = halo_tma_split_k<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, LINES, THROUGH, SHARES>;
    using loader = halo_tma_load<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, STAGES, LINES, SHARES>;
    using block = typename results::block;
    using sums = typename results::sums;
    using barriers = typename loader::barriers;
    using ring = typename loader::ring;
    using results::GROUPS, results::WORKERS, results::WARPS, results::THREADS, results::TILE;
    using results::ROW, results::STEP, results::PART, results::LEAVING;
    static_assert(RINGS == 1 || (RINGS == 2 && GROUPS == 2), "a group that is ahead has a ring of its own");
    static_assert(SHARES == 1 || (RINGS == 1 && STAGES > SHARES),
                  "a share keeps a step's weights until its next one's are there");

    /* With two groups the first leads by `lead` k-steps: it arrives here once it has done so many, and the second waits for that. */
    static __device__ __forceinline__ void arrive_ahead()
    {
        asm volatile("barrier.arrive 14, %0;" ::"n"(WORKERS) : "memory");
    }
    static __device__ __forceinline__ void await_ahead()
    {
        asm volatile("barrier.sync 14, %0;" ::"n"(WORKERS) : "memory");
    }

    /* ---- multiplying ---- */

    /* A warp's position in the rings of weights and patches. */
    struct position {
        int stage, phase, slot, turn;
    };

    /* Release a k-step's weights, and the patch after its last tap. */
    static __device__ __forceinline__ void release(barriers *bar, ring *ring, int stage, int slot, bool patch)
    {
        if (threadIdx.x % 32 != 0) return;
        barrier_arrive(&ring->empty[stage]);
        if (patch) barrier_arrive(&bar->patch_empty[slot]);
    }

    static __device__ __forceinline__ void advance_patch(const cuda_halo &p, position &at)
    {
        if (++at.slot == p.patches) {
            at.slot = 0;
            at.turn++;
        }
    }

    /* Compute every SHARES-th k-step of a tile, from `share` on. Every share uses every patch (windows have at least SHARES
     * taps), except perhaps the first one, where the block begins after that patch's first tap. N: pixels of this group. */
    template <int N = PIXELS>
    static __device__ __forceinline__ void multiply(const cuda_halo &p, const block &b, float (&sum)[N / 8][4],
                                                    position &at, int share, uint32_t filters, uint32_t patches,
                                                    const int *tap_at, barriers *bar, ring *ring, int lead)
    {
        const int group_bytes = THROUGH || p.tile_down == 1 ? 8 * ROW : p.patch_across * ROW;
        int tap = b.tap + share, stage_before = 0, slot_before = 0;
        bool fresh = true, over = false;   /* first k-step of a patch; the one before was its patch's last */
        if (SHARES > 1 && tap >= p.taps) { /* only other shares use the first patch */
            barrier_await(&bar->patch_full[at.slot], at.turn & 1);
            if (threadIdx.x % 32 == 0) barrier_arrive(&bar->patch_empty[at.slot]);
            tap -= p.taps;
            advance_patch(p, at);
        }
#pragma unroll 1
        for (int number = b.first + share; number < b.last; number += SHARES) {
            if (fresh) barrier_await(&bar->patch_full[at.slot], at.turn & 1);
            uint64_t pixels = wgmma_rows(patches + at.slot * p.patch_bytes + tap_at[tap] * ROW, group_bytes);
            uint64_t rows = wgmma_operand(filters + at.stage * STEP, ROW);
            barrier_await(&ring->full[at.stage], at.phase);
            wgmma_begin();
#pragma unroll
            for (int inner = 0; inner < 4; inner++)
                wgmma_product<SDLF_MATH_TF32, N>::run(sum, rows + inner * 2, pixels + inner * 2);
            wgmma_commit();
            wgmma_await<1>();
            if (number >= b.first + SHARES) release(bar, ring, stage_before, slot_before, over);
            if (RINGS > 1 && --lead == 0) arrive_ahead();
            stage_before = at.stage;
            slot_before = at.slot;
            at.stage += SHARES;
            if (at.stage >= STAGES) {
                at.stage -= STAGES;
                at.phase ^= 1;
            }
            tap += SHARES;
            over = fresh = tap >= p.taps;
            if (over) tap -= p.taps;
            if (over || number == b.last - 1)
                advance_patch(p, at); /* a tile ends with its patch, whether or not all taps were used */
        }
        wgmma_await<0>();
        if (SHARES == 1)
            release(bar, ring, stage_before, slot_before,
                    true); /* shares have one tile, so nothing replaces their operands */
    }

    /* ---- the block ---- */

    static __device__ void run(const cuda_halo &p, const CUtensorMap *x)
    {
        extern __shared__ __align__(1024) char memory[];
        char *shared = memory + (1024 - halo_address(memory) % 1024) % 1024;
        const int product = RINGS * STAGES * STEP + p.patches * p.patch_bytes;
        const uint32_t filters = halo_address(shared), patches = filters + RINGS * STAGES * STEP;
        const int work = p.direct ? product + GROUPS * LEAVING * 4 : max(product, SHARES * TILE * PART * 4);
        float *leaving = reinterpret_cast<float *>(shared + product);
        barriers *bar = reinterpret_cast<barriers *>(shared + work);
        int *tap_at = reinterpret_cast<int *>(bar + 1);
        /* The shuffle tells the compiler that this is the same in all lanes, so that what depends on it is kept in uniform registers. */
        const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
        const int group = warp / 4 % GROUPS; /* within its share */
        const unsigned units = static_cast<unsigned>(p.images * p.tiles_down * p.tiles_across * p.tiles_filters) *
                               static_cast<unsigned>(p.splits);
        if (warp < WARPS) {
            loader::make_taps(p, tap_at);
            barrier_of_block<true>();
            if (SHARES > 1) even_barriers<false>();
        } else {
            loader::make_barriers(p, bar, warp - WARPS); /* 0: patches; then the weight rings */
            barrier_of_block<false>();
        }
        if (warp == WARPS) {
            if (p.ahead_bytes > 0 && threadIdx.x % 32 == 0)
                prefetch_share(p.ahead, p.ahead_bytes, blockIdx.x, gridDim.x);
            loader::load_patches(p, x, patches, bar, units);
        } else if (warp > WARPS) {
            const int number = warp - WARPS - 1;
            if (p.fresh) wait_on_dependent_grids();
            loader::load_weights(p, shared + number * STAGES * STEP, &bar->weights[number], number * 64, units);
        } else {
            const block b(p, blockIdx.x);
            const int share = SHARES > 1 ? warp / (WARPS / SHARES) : 0;
            position at = {share, 0, 0, 0};
            ring *ring = &bar->weights[RINGS > 1 ? group : 0];
            const uint32_t rows = filters + (RINGS > 1 ? group * STAGES * STEP : group / PIXEL_GROUPS * 64 * ROW);
            const uint32_t pixels = patches + group % PIXEL_GROUPS * (p.tile_down == 1 ? PIXELS : 8) * ROW;
            wait_on_dependent_grids();
            int number = 0, lead = RINGS > 1 ? min(p.lead, min(b.last - b.first, p.patches * p.taps)) : 0;
            if (group == 1 && lead > 0) {
                await_ahead();
                lead = 0;
            }
            for (unsigned unit = blockIdx.x; unit < units; unit += gridDim.x, number++) {
                sums sum = {};
                multiply(p, b, sum, at, share, rows, pixels, tap_at, bar, ring, lead);
                lead = 0;
                if (SHARES == 1 && p.direct) {
                    const int4 tile_at = bar->tile[number % loader::TILES];
                    if (p.pools)
                        results::store_pooled(p, tile_at, sum, leaving + group * LEAVING, group);
                    else
                        results::store_results(p, tile_at, sum, leaving + group * LEAVING, group);
                } else { /* the block's only tile */
                    halo_await_reads<THREADS>();
                    results::put_share(p, sum, reinterpret_cast<float *>(shared), share, group);
                }
            }
        }
        if (p.direct) return;
        __syncwarp();
        if (warp >= WARPS) {
            if (SHARES > 1) even_barriers<true>();
            for (int i = 0; i < (p.splits > 1 ? SHARES : 1); i++) halo_await_reads<THREADS>();
        }
        cluster_sync();            /* all partial sums are there; without split-K a block is a cluster of one */
        wait_on_dependent_grids(); /* for the producer warps */
        const block b(p, blockIdx.x);
        float *part = reinterpret_cast<float *>(shared);
        if (p.pools)
            results::add_pooled_parts(p, b, part);
        else
            results::reduce_splits(p, b, part);
        __syncwarp();
        if (p.splits > 1) cluster_sync(); /* others may still read from this block */
    }

  private:
    /* Waits for barriers and tap table. Producer warps only arrive: they do not use the table. */
    template <bool WAITS> static __device__ __forceinline__ void barrier_of_block()
    {
        if (WAITS)
            asm volatile("barrier.sync 0, %0;" ::"n"(THREADS) : "memory");
        else
            asm volatile("barrier.arrive 0, %0;" ::"n"(THREADS) : "memory");
    }

    /* The reverse, at the end: producers wait, the others have long arrived. So all warps pass equally many barriers
     * before they read each other's sums, from which race checkers derive the order of accesses. */
    template <bool WAITS> static __device__ __forceinline__ void even_barriers()
    {
        if (WAITS)
            asm volatile("barrier.sync 14, %0;" ::"n"(THREADS) : "memory");
        else
            asm volatile("barrier.arrive 14, %0;" ::"n"(THREADS) : "memory");
    }
};

template <typename PRODUCT, int BLOCKS>
static __global__ void __launch_bounds__(PRODUCT::THREADS, BLOCKS)
    halo_tma_kernel(const __grid_constant__ cuda_halo p, const __grid_constant__ CUtensorMap x)
{
    PRODUCT::run(p, &x);
}

#endif
