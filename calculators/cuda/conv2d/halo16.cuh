/* SPDX-License-Identifier: MIT */
/* TMA-tiled implicit GEMM in fp16 and bf16: the kernel of conv2d/halo16.h, for compute capability 9.0a.
 *
 * Operands are swapped (conv2d/halo16_tile.cuh): the rows (M) of the GEMM are filters, 64 for each of GROUPS warpgroups, its columns (N) are
 * the tile's pixels, and WGMMA reads both operands from shared memory. 8 neighbouring pixels of a line are 8 consecutive rows of 128 bytes
 * of the box; the 8 of the next line begin one line of the box later. A tap is the same with another first row. A k-step is a line of a
 * window: 3 taps of 32 channels.
 *
 * One thread issues the TMA copies of weights, k-step by k-step, and of boxes, chunk by chunk of 32 channels, as far ahead as there are free
 * stages; another loads the first boxes, which the block waits for. ROUNDING warps round each box to 16 bits in place; for the first one the
 * multiplying warps help. mbarriers say what is full and what is empty; the mainloop has no block-wide barrier. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO16_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO16_CUH

#include "calculators/cuda/conv2d/halo16_epilogue.cuh"
#include "calculators/cuda/tma.cuh"

/* ---- the product ---- */

template <typename OPERAND, int GROUPS, int PIXELS, int STAGES, int ROUNDING>
struct halo16_product : halo16_epilogue<OPERAND, GROUPS, PIXELS, STAGES, ROUNDING> {
    using results = halo16_epilogue<OPERAND, GROUPS, PIXELS, STAGES, ROUNDING>;
    using both = typename results::both;
    using block = typename results::block;
    using sums = typename results::sums;
    using results::INNER, results::ROW, results::STEP, results::PLACE, results::PART;
    using results::LINE, results::ROUNDERS, results::THREADS, results::WORKERS, results::WARPS;

    struct barriers {
        uint64_t weights_full[STAGES], weights_empty[STAGES];
        uint64_t box_there[HALO16_MOST], box_full[HALO16_MOST], box_empty[HALO16_MOST];
    };

    /* ---- loading, by one thread ---- */

    static __device__ __forceinline__ void load_weights(const cuda_halo &p, const block &b, uint32_t to, int step,
                                                        uint64_t *full)
    {
        const int64_t tap = static_cast<int64_t>(p.filters_padded) * ROW;
        const char *from = p.w + step * HALO16_TAPS * tap + b.filter * ROW;
        tma_expect(halo_address(full), LINE);
#pragma unroll
        for (int i = 0; i < HALO16_TAPS; i++) copy_bulk_to(to + i * STEP, from + i * tap, STEP, full);
    }

    /* Load a chunk's box element by element, from an image that is not aligned for TMA. */
    static __device__ __noinline__ void load_slowly(const cuda_halo &p, const block &b, uint32_t to, uint64_t *there,
                                                    int chunk)
    {
        for (int i = 0; i < p.patch_pixels * HALO_CHANNELS; i++) {
            int place = i / HALO_CHANNELS, number = i % HALO_CHANNELS, channel = chunk * HALO_CHANNELS + number;
            int h = b.row - p.padding[0] + place / p.patch_across, w = b.column - p.padding[1] + place % p.patch_across;
            bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(p.height) && channel < p.channels &&
                          static_cast<unsigned>(w) < static_cast<unsigned>(p.width) && b.image < p.images;
            float value = 0;
            if (inside)
                value = p.x[((static_cast<int64_t>(b.image) * p.height + h) * p.width + w) * p.channels + channel];
            asm volatile(
                "st.shared.f32 [%0], %1;" ::"r"(both::chunk_of(to + place * PLACE, number / 4) + number % 4 * 4),
                "f"(value)
                : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        barrier_arrive(there);
    }

    static __device__ __forceinline__ void load_box(const cuda_halo &p, const block &b, const CUtensorMap *map,
                                                    uint32_t to, uint64_t *there, int chunk)
    {
        if (!p.quads) return load_slowly(p, b, to, there, chunk);
        tma_expect(halo_address(there), p.patch_pixels * PLACE);
        tma_load_image(to, map, {chunk * HALO_CHANNELS, b.column - p.padding[1], b.row - p.padding[0], b.image},
                       halo_address(there));
    }

    /* Load as many boxes as fit, once the outputs of earlier kernels are complete. A block waits longest for this, so
     * the thread that does it does nothing else before. */
    static __device__ __forceinline__ void load_first(const cuda_halo &p, const block &b, const CUtensorMap *map,
                                                      uint32_t boxes, barriers *bar)
    {
        wait_on_dependent_grids();
        if (p.ahead_bytes == 0) launch_dependent_grids();
        const int most = min(b.chunks - b.chunk, p.patches);
        for (int i = 0; i < most; i++) load_box(p, b, map, boxes + i * p.patch_bytes, &bar->box_there[i], b.chunk + i);
    }

    /* Load the weights of the first STAGES k-steps. */
    static __device__ __forceinline__ void load_early(const cuda_halo &p, const block &b, uint32_t weights,
                                                      barriers *bar)
    {
        for (int step = b.first; step < b.last && step < b.first + STAGES; step++)
            load_weights(p, b, weights + (step - b.first) * LINE, step, &bar->weights_full[step - b.first]);
        if (p.ahead_bytes > 0)
            prefetch_share(p.ahead, p.ahead_bytes, blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z),
                           gridDim.x * gridDim.y * gridDim.z);
        wait_on_dependent_grids(); /* for the boxes after the first ones */
    }

    /* Then load what has a free stage first: the weights of a k-step once the k-step STAGES before it is over, a box
     * once the last k-step of the box that it replaces is over. */
    static __device__ __forceinline__ void load(const cuda_halo &p, const block &b, const CUtensorMap *map,
                                                uint32_t weights, uint32_t boxes, barriers *bar)
    {
        int chunk = min(b.chunk + p.patches, b.chunks), slot = 0, box_phase = 0;
        int step = min(b.first + STAGES, b.last), stage = 0, phase = 0;
        while (step < b.last || chunk < b.chunks) {
            int over = (chunk - p.patches + 1) * b.lines - 1;
            if (chunk < b.chunks && (step == b.last || over <= step - STAGES || chunk * b.lines <= step)) {
                barrier_await(&bar->box_empty[slot], box_phase);
                load_box(p, b, map, boxes + slot * p.patch_bytes, &bar->box_there[slot], chunk);
                chunk++;
                if (++slot == p.patches) {
                    slot = 0;
                    box_phase ^= 1;
                }
                continue;
            }
            barrier_await(&bar->weights_empty[stage], phase);
            load_weights(p, b, weights + stage * LINE, step, &bar->weights_full[stage]);
            step++;
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        }
    }

    /* The rounding warps' loop over boxes; the first box is already rounded. */
    static __device__ __forceinline__ void round_boxes(const cuda_halo &p, const block &b, uint32_t boxes,
                                                       barriers *bar, int thread)
    {
        int slot = 0, phase = 0;
        for (int i = b.chunk; i < b.chunks; i++) {
            if (i > b.chunk) {
                barrier_await(&bar->box_there[slot], phase);
                both::template round_patch<ROUNDING>(p, boxes + slot * p.patch_bytes, thread);
            }
            __syncwarp();
            if (thread % 32 == 0) barrier_arrive(&bar->box_full[slot]);
            if (++slot == p.patches) {
                slot = 0;
                phase ^= 1;
            }
        }
    }

    /* ---- multiplying ---- */

    static __device__ __forceinline__ void multiply(const cuda_halo &p, const block &b, sums &sum, uint32_t weights,
                                                    uint32_t boxes, barriers *bar)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 128;
        const int group_bytes = p.tile_log == 3 ? p.patch_across * PLACE : 8 * PLACE;
        const uint32_t filters = weights + group * 64 * ROW, line_bytes = p.patch_across * PLACE;
        int line = b.line, slot = 0, turn = 0, stage = 0, phase = 0;
        int line_done = line, slot_done = 0, stage_done = 0; /* of the k-step released next */
        bool fresh = false;                                  /* the first box is already there */
        auto release = [&] {
            if (lane == 0) {
                barrier_arrive(&bar->weights_empty[stage_done]);
                if (line_done == b.lines - 1) barrier_arrive(&bar->box_empty[slot_done]);
            }
            if (++stage_done == STAGES) stage_done = 0;
            if (++line_done == b.lines) {
                line_done = 0;
                if (++slot_done == p.patches) slot_done = 0;
            }
        };
#pragma unroll 1
        for (int step = b.first; step < b.last; step++) {
            if (fresh) barrier_await(&bar->box_full[slot], turn & 1);
            uint64_t pixels = wgmma_rows(boxes + slot * p.patch_bytes + line * line_bytes, group_bytes);
            uint64_t rows = wgmma_operand(filters + stage * LINE, ROW);
            barrier_await(&bar->weights_full[stage], phase);
            wgmma_begin();
#pragma unroll
            for (int tap = 0; tap < HALO16_TAPS; tap++) {
#pragma unroll
                for (int inner = 0; inner < INNER; inner++)
                    wgmma_product<OPERAND::MATH, PIXELS>::run(sum, rows + tap * (STEP >> 4) + inner * 2,
                                                              pixels + tap * (PLACE >> 4) + inner * 2);
            }
            wgmma_commit();
            wgmma_await<1>();
            if (step > b.first) release();
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
            fresh = ++line == b.lines;
            if (fresh) {
                line = 0;
                if (++slot == p.patches) {
                    slot = 0;
                    turn++;
                }
            }
        }
        wgmma_await<0>();
    }

    /* ---- the block ---- */

    /* By one warp. */
    static __device__ __forceinline__ void make_barriers(const cuda_halo &p, barriers *bar, int lane)
    {
        if (lane < STAGES) {
            barrier_init(&bar->weights_full[lane], 1);
            barrier_init(&bar->weights_empty[lane], WARPS);
        }
        if (lane < p.patches) {
            barrier_init(&bar->box_there[lane], 1);
            barrier_init(&bar->box_full[lane], ROUNDING);
            barrier_init(&bar->box_empty[lane], WARPS);
        }
        fence_mbarrier_init();
    }

    /* For all threads, which get here on two paths: barrier.sync, unlike bar.sync, may be another instruction in each of them. */
    static __device__ __forceinline__ void await_all()
    {
        asm volatile("barrier.sync 14, %0;" ::"n"(THREADS) : "memory");
    }

    static __device__ void run(const cuda_halo &p, const halo16_cut &cut, const CUtensorMap *map, bool pools)
    {
        extern __shared__ __align__(1024) char memory[];
        char *shared = memory + (1024 - halo_address(memory) % 1024) % 1024;
        const uint32_t weights = halo_address(shared), boxes = weights + STAGES * LINE;
        const int product = STAGES * LINE + p.patches * p.patch_bytes, results = PIXELS * PART * 4;
        barriers *bar = reinterpret_cast<barriers *>(shared + max(product, results));
        const block b(p, cut);
        const int thread = static_cast<int>(threadIdx.x), helper = thread - WORKERS - ROUNDERS;
        if (p.fresh) wait_on_dependent_grids();
        if (helper >= 0) make_barriers(p, bar, helper);
        if (helper == 0) tma_prefetch(map);
        __syncthreads();
        if (helper >= 0) { /* takes part in all barriers that the others use */
            if (helper == 0) load_early(p, b, weights, bar);
            __syncwarp();
            await_all();
            if (helper == 0) load(p, b, map, weights, boxes, bar);
            __syncwarp();
            halo_await_reads<THREADS>();
        } else {
            if (thread == WORKERS) load_first(p, b, map, boxes, bar);
            __syncwarp();
            barrier_await(&bar->box_there[0], 0);
            both::template round_patch<WARPS + ROUNDING>(p, boxes, thread);
            await_all();
            if (thread < WORKERS) {
                sums sum = {};
                multiply(p, b, sum, weights, boxes, bar);
                halo_await_reads<THREADS>();
                both::store_partial_sums(sum, reinterpret_cast<float *>(shared));
            } else {
                round_boxes(p, b, boxes, bar, thread - WORKERS);
                halo_await_reads<THREADS>();
            }
        }
        __syncwarp();
        wait_on_dependent_grids(); /* for the residual */
        if (p.splits > 1)
            cluster_sync();
        else
            __syncthreads();
        results::store(p, b, reinterpret_cast<const float *>(shared), pools);
        __syncwarp();
        if (p.splits > 1) { /* others may still read from this block */
            arrive_having_read();
            wait_for_cluster();
        }
    }
};

template <typename PRODUCT, int BLOCKS>
static __global__ void __launch_bounds__(PRODUCT::THREADS, BLOCKS)
    halo16_kernel(const __grid_constant__ CUtensorMap map, const __grid_constant__ cuda_halo p,
                  const __grid_constant__ halo16_cut cut, bool pools)
{
    PRODUCT::run(p, cut, &map, pools);
}

#endif
