/* SPDX-License-Identifier: MIT */
/* Convolution over a patch in tf32, with products of warpgroups whose two operands lie in shared memory, and patches that the TMA unit
 * loads there as boxes of x (tma.cuh): for compute capability 9.0a.
 *
 * Operands are swapped: the rows of the product are filters, 64 of each group, its columns are pixels. A tile is PIXEL_GROUPS times 8 pixels across
 * and PIXELS / 8 lines high, or, of convolutions that are products already, one row. 8 neighbouring pixels of a line are 8 rows of 128 bytes that
 * follow each other in the patch, the 8 of the next line come a line of the patch later: what a descriptor can say. A tap is the same with another
 * first row. Of strided windows, the patch holds the places of each remainder together, each a box of its own. THROUGH: a tile is whole lines of
 * the image, whose pixels are linearised, with a place that is no pixel behind each line (conv2d/halo_tiling.c); so that images whose width is no
 * multiple of 8 leave less of a tile empty.
 *
 * One warp has patches copied, another weights, as far ahead as there is room (conv2d/halo_tma_load.cuh). All other warps multiply. A block
 * makes one tile after the other, and while its results leave through a small part of shared memory, the next tile's operands arrive. Two groups of
 * 64 filters have a ring of weights each, where there are registers for the warp that fills it: the first group is some steps ahead, so that its
 * results leave while the second one multiplies, and the other way round. Where blocks of a cluster share a sum, and where activations are slow
 * to make, results take the place of the operands, and the block has one tile. So it is with SHARES > 1: that many times as many groups, each of
 * which takes every SHARES-th step, so that tensor cores are busy while a group's instructions between two steps run; their sums meet in shared
 * memory.
 *
 * TMA rounds pixels to tf32 on their way; weights were rounded when they were prepacked. */
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

    /* Of two groups the first begins `lead` steps before the second: the one arrives when it is so far, the other awaits that. */
    static __device__ __forceinline__ void arrive_ahead()
    {
        asm volatile("barrier.arrive 14, %0;" ::"n"(WORKERS) : "memory");
    }
    static __device__ __forceinline__ void await_ahead()
    {
        asm volatile("barrier.sync 14, %0;" ::"n"(WORKERS) : "memory");
    }

    /* ---- multiplying ---- */

    /* Where a warp is in the rings of weights and patches. */
    struct position {
        int stage, phase, slot, turn;
    };

    /* A step's weights, and the patch behind its last tap, are read no more. */
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

    /* Every SHARES-th step of a tile, from `share` on. Each share reads every patch, but where a block begins behind a patch's first tap: windows
     * have no fewer taps than there are shares. N: pixels of this group. */
    template <int N = PIXELS>
    static __device__ __forceinline__ void multiply(const cuda_halo &p, const block &b, float (&sum)[N / 8][4],
                                                    position &at, int share, uint32_t filters, uint32_t patches,
                                                    const int *tap_at, barriers *bar, ring *ring, int lead)
    {
        const int group_bytes = THROUGH || p.tile_down == 1 ? 8 * ROW : p.patch_across * ROW;
        int tap = b.tap + share, stage_before = 0, slot_before = 0;
        bool fresh = true, over = false;   /* a patch begins; the step before was its patch's last */
        if (SHARES > 1 && tap >= p.taps) { /* the first patch is other shares' alone */
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
                advance_patch(p, at); /* a tile ends with its patch, read to its last tap or not */
        }
        wgmma_await<0>();
        if (SHARES == 1)
            release(bar, ring, stage_before, slot_before,
                    true); /* shares have one tile: nothing comes in their place */
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
        /* The compiler, too, knows that it is the same in all lanes, and keeps what comes of it where a warp has a register once. */
        const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
        const int group = warp / 4 % GROUPS; /* of its share */
        const unsigned units = static_cast<unsigned>(p.images * p.tiles_down * p.tiles_across * p.tiles_filters) *
                               static_cast<unsigned>(p.splits);
        if (warp < WARPS) {
            loader::make_taps(p, tap_at);
            barrier_of_block<true>();
            if (SHARES > 1) even_barriers<false>();
        } else {
            loader::make_barriers(p, bar, warp - WARPS); /* 0: of patches; then of a ring */
            barrier_of_block<false>();
        }
        if (warp == WARPS) {
            if (p.ahead_bytes > 0 && threadIdx.x % 32 == 0)
                prefetch_share(p.ahead, p.ahead_bytes, blockIdx.x, gridDim.x);
            loader::load_patches(p, x, patches, bar, units);
        } else if (warp > WARPS) {
            const int number = warp - WARPS - 1;
            if (p.fresh) await_inputs();
            loader::load_weights(p, shared + number * STAGES * STEP, &bar->weights[number], number * 64, units);
        } else {
            const block b(p, blockIdx.x);
            const int share = SHARES > 1 ? warp / (WARPS / SHARES) : 0;
            position at = {share, 0, 0, 0};
            ring *ring = &bar->weights[RINGS > 1 ? group : 0];
            const uint32_t rows = filters + (RINGS > 1 ? group * STAGES * STEP : group / PIXEL_GROUPS * 64 * ROW);
            const uint32_t pixels = patches + group % PIXEL_GROUPS * (p.tile_down == 1 ? PIXELS : 8) * ROW;
            await_inputs();
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
        await_cluster(); /* all parts are there; a block that has a sum to itself is a cluster of one */
        await_inputs();  /* the warps that loaded operands */
        const block b(p, blockIdx.x);
        float *part = reinterpret_cast<float *>(shared);
        if (p.pools)
            results::add_pooled_parts(p, b, part);
        else
            results::add_parts(p, b, part);
        __syncwarp();
        if (p.splits > 1) await_cluster(); /* others may still read from this block */
    }

  private:
    /* Barriers and taps are made. Who loads does not wait for the taps. */
    template <bool WAITS> static __device__ __forceinline__ void barrier_of_block()
    {
        if (WAITS)
            asm volatile("barrier.sync 0, %0;" ::"n"(THREADS) : "memory");
        else
            asm volatile("barrier.arrive 0, %0;" ::"n"(THREADS) : "memory");
    }

    /* The other way round, long after: so all warps pass as many barriers before they read each other's sums, which is how race checkers tell what
     * comes after what. */
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
