/* SPDX-License-Identifier: MIT */
/* The mainloop of all GEMMs: a block computes tiles BM x BN of c = a b, with k-steps of 128 bytes of the reduction. A producer warp loads tiles of
 * both operands by TMA into a ring of stages; two consumer warpgroups multiply them by wgmma as they arrive, and then run the epilogue. If both
 * operands are MN-major in tf32, which wgmma does not support, they are multiplied by mma.sync (engine/mma_tf32.cuh), by eight warps that also
 * issue the loads. Two blocks share a multiprocessor, so that one's epilogue overlaps the other's mainloop. Compute capability 9.0a.
 *
 * The Work template parameter defines what is loaded and where results go:
 *   Element, BM, BN, CHUNK_A, CHUNK_B, MN_A, MN_B, STAGES    types and constants; see wgmma16.cuh. BM is 64 or 128
 *   Params                                                    the kernel's parameter; tensor maps first
 *   Place                                                     a tile's coordinates; Place.steps k-steps
 * and, for engine_product, which computes one tile per block:
 *   place(params)                                             the block's tile
 *   prefetch(params)                                          prefetches its tensor maps
 *   PARTS, Part, part(params, place, number)                  loads per k-step, and the state of each that all k-steps share
 *   load(params, place, part, number, step, a, b, barrier)    issues one load: all add up to STAGE_BYTES, absent elements as 0
 *   finish(params, place, sums, thread)                       the epilogue of ENGINE_CONSUMERS threads; row r of the tile's sums is at
 *                                                             sums + r (BN + ENGINE_PAD), float32, in shared memory */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_MAINLOOP_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_MAINLOOP_CUH

#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/engine/mma_tf32.cuh"
#include "calculators/cuda/engine/wgmma16.cuh"
#include "calculators/cuda/tma.cuh"

enum { K_BYTES = 128, ENGINE_PAD = 8, ENGINE_CONSUMERS = 256 };

/* Stores a warpgroup's accumulator fragments (wgmma.cuh), 8 EIGHTS columns, as rows of `line` floats, starting at its first row. */
template <int EIGHTS>
static __device__ __forceinline__ void store_fragments(float *sums, int line, const float (&c)[EIGHTS][4])
{
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float *to = sums + (static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4) * line + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
        *reinterpret_cast<float2 *>(to + 8 * j) = make_float2(c[j][0], c[j][1]);
        *reinterpret_cast<float2 *>(to + 8 * line + 8 * j) = make_float2(c[j][2], c[j][3]);
    }
}

template <typename Work> struct engine_sizes {
    static constexpr int A_BYTES = Work::BM * K_BYTES, B_BYTES = Work::BN * K_BYTES;
    static constexpr int STAGE_BYTES = A_BYTES + B_BYTES, RING_BYTES = Work::STAGES * STAGE_BYTES;
    static constexpr int SUM_BYTES = Work::BM * (Work::BN + ENGINE_PAD) * 4;
    static constexpr int SHARED = (RING_BYTES > SUM_BYTES ? RING_BYTES : SUM_BYTES) + 1024; /* 1024: for alignment */
    static constexpr bool BY_MMA = sizeof(typename Work::Element) == 4 && Work::MN_A;
    static constexpr int THREADS = ENGINE_CONSUMERS + (BY_MMA ? 0 : 32);
};

/* The descriptor of an operand's rows (of M or N) from `row` on, for the part-th 32 bytes of the k-step. `rows`: rows of the tile. */
template <typename T, int CHUNK, int MN_MAJOR>
static __device__ __forceinline__ uint64_t operand_descriptor(uint32_t tile, int rows, int row, int part)
{
    constexpr int ROW = CHUNK * static_cast<int>(sizeof(T));
    if (MN_MAJOR) { /* [rows / CHUNK][64 of K][CHUNK] */
        constexpr int CHUNK_BYTES = K_BYTES / static_cast<int>(sizeof(T)) * ROW;
        return smem_descriptor<ROW>(tile + row / CHUNK * CHUNK_BYTES + part * 16 * ROW, CHUNK_BYTES);
    }
    /* [K / CHUNK][rows][CHUNK] */
    const int chunk = part * 32 / ROW, within = part * 32 % ROW;
    return smem_descriptor<ROW>(tile + (chunk * rows + row) * ROW + within, 16);
}

/* The full and empty barriers of a block's pipeline stages in shared memory. */
template <typename Work> struct engine_barriers {
    uint64_t full[Work::STAGES], empty[Work::STAGES];

    __device__ __forceinline__ void init()
    {
        if (threadIdx.x == 0) {
            for (int s = 0; s < Work::STAGES; s++) {
                barrier_init(&full[s], 1);
                barrier_init(&empty[s], ENGINE_CONSUMERS / 32);
            }
            fence_mbarrier_init();
        }
        __syncthreads();
    }
};

/* A producer's or a consumer's position in the ring. */
template <typename Work> struct engine_ring {
    static constexpr int STAGE_BYTES = engine_sizes<Work>::STAGE_BYTES;
    engine_barriers<Work> *barriers;
    uint32_t start;
    int stage, parity;

    __device__ __forceinline__ uint32_t tile_a() const
    {
        return start + stage * engine_sizes<Work>::STAGE_BYTES;
    }
    __device__ __forceinline__ void advance()
    {
        if (++stage < Work::STAGES) return;
        stage = 0;
        parity ^= 1;
    }
    __device__ __forceinline__ void release(int of_stage) const
    {
        if (threadIdx.x % 32 == 0) barrier_arrive(&barriers->empty[of_stage]);
    }

    /* For consumer warps: wait until the stage is loaded; release it after reading. */
    __device__ __forceinline__ void consumer_wait() const
    {
        barrier_await(&barriers->full[stage], parity);
    }
    __device__ __forceinline__ void consumer_release()
    {
        __syncwarp();
        release(stage);
        advance();
    }

    /* For one thread: wait until the stage is empty. Returns its full barrier. */
    __device__ __forceinline__ uint32_t producer_wait() const
    {
        barrier_await(&barriers->empty[stage], parity);
        return static_cast<uint32_t>(__cvta_generic_to_shared(&barriers->full[stage]));
    }
    /* The same, then arrive with `bytes` expected. */
    __device__ __forceinline__ uint32_t producer_acquire(int bytes) const
    {
        const uint32_t barrier = producer_wait();
        tma_expect(barrier, bytes);
        return barrier;
    }

    /* For a warpgroup: c = its rows and columns of a b. parts: number of PARTS-ths of a k-step in all k-steps; the last one may be partial. */
    template <int COLUMNS, int PARTS = 1>
    __device__ __forceinline__ void multiply(int steps, int row, int column, float (&c)[COLUMNS / 8][4], int parts = 0)
    {
        using Element = typename Work::Element;
        constexpr int PART_BYTES = K_BYTES / PARTS;
        wgmma_clear(c);
        int before = -1;
        for (int step = 0; step < steps; step++, advance()) {
            const uint32_t a = tile_a(), b = a + engine_sizes<Work>::A_BYTES;
            barrier_await(&barriers->full[stage], parity);
            wgmma_begin();
#pragma unroll
            for (int k = 0; k < K_BYTES / 32; k++) {
                if (PARTS > 1 && k * 32 / PART_BYTES >= parts - step * PARTS) break;
                wgmma16<Element, COLUMNS, Work::MN_A, Work::MN_B>::run(
                    c, operand_descriptor<Element, Work::CHUNK_A, Work::MN_A>(a, Work::BM, row, k),
                    operand_descriptor<Element, Work::CHUNK_B, Work::MN_B>(b, Work::BN, column, k));
            }
            wgmma_commit();
            wgmma_await<1>();
            if (before >= 0) release(before);
            before = stage;
        }
        wgmma_await<0>();
        if (before >= 0) release(before);
    }
};

/* The address in dynamic shared memory where the ring begins. */
static __device__ __forceinline__ uint32_t ring_start(const void *dynamic_shared)
{
    return (static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared)) + 1023) / 1024 * 1024;
}

/* A warp's share of the loads, issued by one of its threads: loads `first`, `first` + EVERY and so on. */
template <typename Work, int EVERY> struct product_loads {
    static constexpr int MOST = (Work::PARTS + EVERY - 1) / EVERY;
    typename Work::Part parts[MOST];
    engine_ring<Work> ring; /* its parity begins with 1: in the first round every stage is empty */
    int first, step;

    __device__ __forceinline__ product_loads(const typename Work::Params &p, const typename Work::Place &at,
                                             const engine_ring<Work> &of, int number)
        : ring{of.barriers, of.start, 0, 1}, first(number), step(0)
    {
#pragma unroll
        for (int i = 0; i < MOST; i++) parts[i] = Work::part(p, at, first + i * EVERY);
    }

    __device__ __forceinline__ void queue(const typename Work::Params &p, const typename Work::Place &at)
    {
        const uint32_t a = ring.tile_a(), b = a + engine_sizes<Work>::A_BYTES;
        const uint32_t barrier = ring.producer_wait();
        if (first == 0) tma_expect(barrier, engine_sizes<Work>::STAGE_BYTES);
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            const int number = first + i * EVERY;
            if (number < Work::PARTS) Work::load(p, at, parts[i], number, step, a, b, barrier);
        }
        ring.advance();
        step++;
    }
};

/* mma.sync by all warps, which leaves no registers for a producer warp: each warp issues a part of the loads, up to STAGES - 1 k-steps ahead. */
template <typename Work>
static __device__ __forceinline__ void product_by_mma(const typename Work::Params &p, const typename Work::Place &at,
                                                      engine_ring<Work> ring, float *sums)
{
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const bool loads = threadIdx.x % 32 == 0 && warp < Work::PARTS;
    product_loads<Work, ENGINE_CONSUMERS / 32> ahead(p, at, ring, warp);
    if (loads) {
        while (ahead.step < Work::STAGES - 1 && ahead.step < at.steps) ahead.queue(p, at);
    }
    mma_tile<Work::BM, Work::CHUNK_B> tile(warp);
    for (int step = 0; step < at.steps; step++) {
        if (loads && ahead.step < at.steps) ahead.queue(p, at);
        __syncwarp();
        const uint32_t a = ring.tile_a();
        ring.consumer_wait();
        tile.multiply(a, a + engine_sizes<Work>::A_BYTES);
        ring.consumer_release();
    }
    __syncthreads(); /* all stages have been consumed, so the ring's memory can be reused */
    tile.store(sums, Work::BN + ENGINE_PAD);
}

/* wgmma by two warpgroups, on what a producer warp loads. */
template <typename Work>
static __device__ __forceinline__ void product_by_wgmma(const typename Work::Place &at, engine_ring<Work> ring,
                                                        float *sums)
{
    /* two column halves if the tile has only 64 rows */
    constexpr int WN = Work::BM == 64 ? Work::BN / 2 : Work::BN, LINE = Work::BN + ENGINE_PAD;
    const int group = static_cast<int>(threadIdx.x) / 128;
    const int row = Work::BM == 128 ? 64 * group : 0, column = Work::BM == 64 ? WN * group : 0;
    float c[WN / 8][4];
    ring.template multiply<WN>(at.steps, row, column, c);
    barrier_of_threads(ENGINE_CONSUMERS);
    store_fragments(sums + row * LINE + column, LINE, c);
}

/* One tile per block; its accumulators are passed to the epilogue through shared memory. */
template <typename Work>
static __global__ void __launch_bounds__(engine_sizes<Work>::THREADS, 2)
    engine_product(const __grid_constant__ typename Work::Params p)
{
#ifdef SDLF_HAS_WGMMA
    extern __shared__ uint8_t unaligned[];
    __shared__ engine_barriers<Work> barriers;
    if (threadIdx.x == 0) Work::prefetch(p);
    barriers.init();
    wait_and_launch_dependent_grids();
    const int thread = static_cast<int>(threadIdx.x);
    const typename Work::Place at = Work::place(p);
    engine_ring<Work> ring = {&barriers, ring_start(unaligned), 0, 0};
    float *sums = reinterpret_cast<float *>(unaligned +
                                            (ring.start - static_cast<uint32_t>(__cvta_generic_to_shared(unaligned))));
    if constexpr (engine_sizes<Work>::BY_MMA) {
        product_by_mma<Work>(p, at, ring, sums);
    } else {
        if (thread >= ENGINE_CONSUMERS) {
            if (thread != ENGINE_CONSUMERS) return;
            product_loads<Work, 1> all(p, at, ring, 0);
            while (all.step < at.steps) all.queue(p, at);
            return;
        }
        product_by_wgmma<Work>(at, ring, sums);
    }
    barrier_of_threads(ENGINE_CONSUMERS);
    Work::finish(p, at, sums, thread);
#endif
}

/* Launch a kernel of the engine with `blocks` blocks, in clusters of `cluster`. */
template <typename Work>
static sdlf_status engine_launch(const cuda_calculator *calculator, void (*kernel)(typename Work::Params),
                                 int64_t blocks, const typename Work::Params &params, const char *what, int cluster = 1)
{
    constexpr int SHARED = engine_sizes<Work>::SHARED;
    sdlf_status status = allow_shared(kernel, SHARED);
    if (status != SDLF_OK) return status;
    launch_cluster(calculator, kernel, dim3(static_cast<unsigned>(blocks)), dim3(engine_sizes<Work>::THREADS), SHARED,
                   dim3(static_cast<unsigned>(cluster)), params);
    return cuda_check_launch(what);
}

#endif
