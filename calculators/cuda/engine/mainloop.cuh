/* The mainloop of all products in 16 bits: a block computes a tile BM x BN of c = a b, 64 of the reduction a k-step. A producer warp
 * loads tiles of both operands by TMA into a ring of stages; two consumer warpgroups multiply them (wgmma) as they come and then run the
 * epilogue. Two blocks share a multiprocessor, so that one's epilogue runs beside the other's mainloop. Compute capability 9.0a.
 *
 * What is loaded and where sums go is the Work's:
 *   Element, BM, BN, CHUNK_A, CHUNK_B, MN_A, MN_B, STAGES    types and constants; see wgmma16.cuh. BM is 64 or 128
 *   Params                                                    the kernel's parameter; tensor maps first
 *   Place, place(params)                                      which tile this block computes; Place.steps k-steps
 *   load(params, place, step, a, b, barrier)                  queue the loads of a k-step: STAGE_BYTES, absent elements as 0
 *   finish(params, place, sums, thread)                       the epilogue of CONSUMERS threads; row r of the tile's sums at
 *                                                             sums + r (BN + ENGINE_PAD), float32, in shared memory */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_MAINLOOP_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_MAINLOOP_CUH

#include "calculators/cuda/engine/tma.cuh"
#include "calculators/cuda/engine/wgmma16.cuh"

enum { ENGINE_K = 64, CONSUMERS = 256, ENGINE_THREADS = CONSUMERS + 32, ENGINE_PAD = 8 };

template <typename Work> struct engine_sizes {
    static constexpr int A_BYTES = Work::BM * ENGINE_K * 2, B_BYTES = Work::BN * ENGINE_K * 2;
    static constexpr int STAGE_BYTES = A_BYTES + B_BYTES, RING_BYTES = Work::STAGES * STAGE_BYTES;
    static constexpr int SUM_BYTES = Work::BM * (Work::BN + ENGINE_PAD) * 4;
    static constexpr int SHARED = (RING_BYTES > SUM_BYTES ? RING_BYTES : SUM_BYTES) + 1024; /* 1024: to align it */
    /* two warpgroups side by side where the tile has rows for one only */
    static constexpr int WN = Work::BM == 64 ? Work::BN / 2 : Work::BN;
};

/* The descriptor of an operand's rows (of M or N) from `row` on, for 16 of the k-step's reduction. `rows` are the tile's. */
template <int CHUNK, int MN_MAJOR>
static __device__ __forceinline__ uint64_t operand_descriptor(uint32_t tile, int rows, int row, int k16)
{
    if (MN_MAJOR) { /* [rows / CHUNK][ENGINE_K][CHUNK] */
        constexpr int CHUNK_BYTES = ENGINE_K * CHUNK * 2;
        return smem_descriptor<CHUNK>(tile + row / CHUNK * CHUNK_BYTES + k16 * 16 * CHUNK * 2, CHUNK_BYTES);
    }
    /* [ENGINE_K / CHUNK][rows][CHUNK] */
    const int chunk = k16 * 16 / CHUNK, within = k16 * 16 % CHUNK;
    return smem_descriptor<CHUNK>(tile + (chunk * rows + row) * CHUNK * 2 + within * 2, 16);
}

template <typename Work>
static __global__ void __launch_bounds__(ENGINE_THREADS, 2)
    engine_product(const __grid_constant__ typename Work::Params p)
{
#ifdef SDLF_HAS_WGMMA
    using sizes = engine_sizes<Work>;
    constexpr int STAGES = Work::STAGES, WN = sizes::WN;
    extern __shared__ uint8_t unaligned[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const uint32_t start = static_cast<uint32_t>(__cvta_generic_to_shared(unaligned));
    const uint32_t ring = (start + 1023) / 1024 * 1024;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], CONSUMERS / 32);
        }
        barriers_made();
    }
    __syncthreads();
    await_kernels();
    const typename Work::Place at = Work::place(p);
    if (warp == CONSUMERS / 32) {
        if (threadIdx.x % 32 != 0) return;
        int stage = 0, parity = 1; /* the first round finds every stage empty */
        for (int step = 0; step < at.steps; step++) {
            const uint32_t a = ring + stage * sizes::STAGE_BYTES, b = a + sizes::A_BYTES;
            const uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full[stage]));
            barrier_await(&empty[stage], parity);
            tma_expect(barrier, sizes::STAGE_BYTES);
            Work::load(p, at, step, a, b, barrier);
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
        return;
    }

    const int group = warp / 4, row = Work::BM == 128 ? 64 * group : 0, column = Work::BM == 64 ? WN * group : 0;
    float c[WN / 8][4];
#pragma unroll
    for (int j = 0; j < WN / 8; j++) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
    int stage = 0, parity = 0, before = 0;
    for (int step = 0; step < at.steps; step++) {
        const uint32_t a = ring + stage * sizes::STAGE_BYTES, b = a + sizes::A_BYTES;
        barrier_await(&full[stage], parity);
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < ENGINE_K / 16; k++)
            wgmma16<typename Work::Element, WN, Work::MN_A, Work::MN_B>::run(
                c, operand_descriptor<Work::CHUNK_A, Work::MN_A>(a, Work::BM, row, k),
                operand_descriptor<Work::CHUNK_B, Work::MN_B>(b, Work::BN, column, k));
        wgmma_commit();
        wgmma_await<1>();
        if (step > 0 && threadIdx.x % 32 == 0) barrier_arrive(&empty[before]);
        before = stage;
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    wgmma_await<0>();
    barrier_of_threads(CONSUMERS); /* the ring's memory is free: all that was loaded has been multiplied */

    float *sums = reinterpret_cast<float *>(unaligned + (ring - start));
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float *to = sums + (row + warp % 4 * 16 + lane / 4) * (Work::BN + ENGINE_PAD) + column + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < WN / 8; j++) {
        *reinterpret_cast<float2 *>(to + 8 * j) = make_float2(c[j][0], c[j][1]);
        *reinterpret_cast<float2 *>(to + 8 * (Work::BN + ENGINE_PAD) + 8 * j) = make_float2(c[j][2], c[j][3]);
    }
    barrier_of_threads(CONSUMERS);
    Work::finish(p, at, sums, static_cast<int>(threadIdx.x));
#endif
}

/* Launch `blocks` of them. */
template <typename Work>
static sdlf_status engine_launch(const cuda_calculator *calculator, int64_t blocks, const typename Work::Params &params,
                                 const char *what)
{
    constexpr int SHARED = engine_sizes<Work>::SHARED;
    sdlf_status status = allow_shared(engine_product<Work>, SHARED);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, engine_product<Work>, dim3(static_cast<unsigned>(blocks)), dim3(ENGINE_THREADS),
                      SHARED, params);
    return cuda_check_launch(what);
}

#endif
