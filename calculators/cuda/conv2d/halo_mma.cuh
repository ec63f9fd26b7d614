/* SPDX-License-Identifier: MIT */
/* Implicit GEMM with halo reuse by mma.sync, from compute capability 7.5 on: small tiles, for images of few pixels.
 *
 * A cp.async pipeline of STAGES stages: the weights of the next STAGES - 1 k-steps, and
 * the patches of their channels, are in flight while the tensor cores compute this
 * one. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_MMA_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_MMA_CUH

#include "calculators/cuda/conv2d/halo.cuh"

template <typename OPERAND, bool THIN, int PIXELS, int FILTERS, int WARP_PIXELS, int WARP_FILTERS, int STAGES>
struct halo_product : halo_tile<OPERAND, THIN, PIXELS, FILTERS, WARP_PIXELS, WARP_FILTERS> {
    using tile = halo_tile<OPERAND, THIN, PIXELS, FILTERS, WARP_PIXELS, WARP_FILTERS>;
    using block = typename tile::block;
    using sums = typename tile::sums;
    using tile::ACROSS, tile::DOWN, tile::OPERANDS16, tile::OF_LANE, tile::ROW, tile::STEP;
    static constexpr int THREADS = tile::WORKERS;
    static_assert(STEP % (16 * THREADS) == 0, "every thread loads as much of the weights");

    static __device__ __forceinline__ void load_weights(const cuda_halo &p, const block &b, char *weights, int step)
    {
        const char *from = p.w + (static_cast<int64_t>(step) * p.filters_padded + b.filter) * ROW;
        char *to = weights + (step - b.first) % STAGES * STEP;
#pragma unroll
        for (int i = 0; i < STEP / (16 * THREADS); i++) {
            int at = (static_cast<int>(threadIdx.x) + i * THREADS) * 16;
            copy_async(to + at, from + at, true);
        }
    }

    /* One k-step: tap `tap` of the patch, or, of thin images, taps `tap` .. `tap` + 7. */
    static __device__ __forceinline__ void multiply(sums &sum, const cuda_halo &p, const int (&place)[DOWN][OF_LANE],
                                                    uint32_t patch, uint32_t weights, const int *tap_at, int tap)
    {
        uint32_t from[DOWN][OF_LANE] = {}, a[tile::INNER][DOWN][4], b[tile::INNER][ACROSS][2];
        if (!THIN) tile::find_tap(place, from, patch, tap_at[tap]);
#pragma unroll
        for (int inner = 0; inner < tile::INNER; inner++) { /* loads first: none waits for an mma */
            tile::read_pixels(p, a[inner], place, from, patch, tap_at, tap, inner);
#pragma unroll
            for (int j = 0; j < ACROSS; j += 2) {
                uint32_t four[4];
                halo_read_matrices(four, (weights + j * 8 * ROW) ^ (inner << 5));
                b[inner][j][0] = four[0];
                b[inner][j][1] = four[1];
                b[inner][j + 1][0] = four[2];
                b[inner][j + 1][1] = four[3];
            }
        }
#pragma unroll
        for (int inner = 0; inner < tile::INNER; inner++) {
            tile::round_pixels(a[inner]);
#pragma unroll
            for (int i = 0; i < DOWN; i++) {
#pragma unroll
                for (int j = 0; j < ACROSS; j++) OPERAND::multiply(sum[i][j], a[inner][i], b[inner][j]);
            }
        }
    }

    static __device__ __forceinline__ void load_chunk(const cuda_halo &p, char *patches, const int *source, int chunk)
    {
        tile::template load_patch<THREADS>(p, patches + chunk % p.patches * p.patch_bytes, source, chunk,
                                           static_cast<int>(threadIdx.x));
    }

    static __device__ void run(const cuda_halo &p)
    {
        extern __shared__ __align__(128) char memory[];
        char *shared = memory + (128 - halo_address(memory) % 128) % 128;
        char *patches = shared, *weights = shared + p.patches * p.patch_bytes;
        int *source = reinterpret_cast<int *>(shared + tile::work(p, STAGES)), *tap_at = source + p.patch_pixels;
        const block b(p);
        const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
        if (p.fresh) wait_on_dependent_grids();
#pragma unroll
        for (int i = 0; i < STAGES - 1; i++) {
            if (b.first + i < b.last) load_weights(p, b, weights, b.first + i);
        }
        tile::template make_tables<THREADS>(p, b, source, tap_at);
        __syncthreads();
        if (!p.early) wait_on_dependent_grids();
        launch_dependent_grids();
        /* the chunk and tap of the k-step that is loaded next, and of the one that is computed */
        int taps = THIN ? p.steps : p.taps;
        int chunk = b.first / taps, tap = b.first % taps, next_chunk = chunk, next_tap = tap;
        bool fresh = true; /* the first k-step needs its patch whichever tap it begins with */
#pragma unroll
        for (int i = 0; i < STAGES - 1; i++) {
            if (b.first + i < b.last && (fresh || next_tap == 0)) load_chunk(p, patches, source, next_chunk);
            cp_async_commit();
            fresh = false;
            if (++next_tap == taps) {
                next_tap = 0;
                next_chunk++;
            }
        }
        int place[DOWN][OF_LANE];
        tile::find_places(p, place, warp / (FILTERS / WARP_FILTERS) * WARP_PIXELS);
        const int row = warp % (FILTERS / WARP_FILTERS) * WARP_FILTERS + lane / 16 * 8 + lane % 8;
        const int spread = OPERANDS16 ? row / 2 % 4 : row % 8;
        const uint32_t own = halo_address(weights) + row * ROW + ((lane / 8 % 2 ^ spread) << 4);
        const uint32_t patch = halo_address(patches);
        sums sum = {};
        int stage = 0;
        for (int step = b.first; step < b.last; step++) {
            cp_async_wait<STAGES - 2>();
            __syncthreads();
            if (step + STAGES - 1 < b.last) {
                load_weights(p, b, weights, step + STAGES - 1);
                if (next_tap == 0) load_chunk(p, patches, source, next_chunk);
            }
            cp_async_commit();
            if (++next_tap == taps) {
                next_tap = 0;
                next_chunk++;
            }
            multiply(sum, p, place, THIN ? patch : patch + chunk % p.patches * p.patch_bytes, own + stage * STEP,
                     tap_at, THIN ? tap * 8 : tap);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            if (++tap == taps) {
                tap = 0;
                chunk++;
            }
        }
        cp_async_wait<0>();
        if (p.direct) {
            tile::store(p, b, sum);
        } else {
            __syncthreads(); /* all warps have read the last k-step's operands */
            tile::store_partial_sums(sum, reinterpret_cast<float *>(shared));
            tile::template reduce_splits<THREADS>(p, b, reinterpret_cast<float *>(shared));
        }
        if (p.early) wait_on_dependent_grids(); /* whoever waits for this kernel relies on the one before, too */
    }
};

template <typename PRODUCT, int BLOCKS>
static __global__ void __launch_bounds__(PRODUCT::THREADS, BLOCKS) halo_kernel(const __grid_constant__ cuda_halo p)
{
    PRODUCT::run(p);
}

/* ---- launching: tiles in the order of cuda_halo_tiles ---- */

template <typename KERNEL>
static sdlf_status halo_launch(sdlf_calculator *base, KERNEL *kernel, int threads, const cuda_halo &problem,
                               const cuda_halo_launch &how)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cudaError_t error = cudaSuccess;
    if (how.shared > 48 << 10)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(how.shared));
    if (error != cudaSuccess) return cuda_check(error, "conv2d over a patch");
    launch_cluster(calculator, kernel, dim3(how.blocks), dim3(static_cast<unsigned>(threads)),
                   static_cast<int>(how.shared), dim3(static_cast<unsigned>(problem.splits)), problem);
    return cuda_check_launch("conv2d over a patch");
}

template <typename OPERAND, bool THIN, int PIXELS, int FILTERS, int WARP_PIXELS, int WARP_FILTERS, int STAGES,
          int BLOCKS>
static sdlf_status halo_launch_tile(sdlf_calculator *calculator, const cuda_halo &problem, const cuda_halo_launch &how)
{
    using product = halo_product<OPERAND, THIN, PIXELS, FILTERS, WARP_PIXELS, WARP_FILTERS, STAGES>;
    return halo_launch(calculator, halo_kernel<product, BLOCKS>, product::THREADS, problem, how);
}

template <typename OPERAND>
static sdlf_status halo_launch_mma(sdlf_calculator *calculator, const cuda_halo &p, const cuda_halo_launch &how)
{
    switch (how.tile - HALO_WARP_TILE) {
    case 0: return halo_launch_tile<OPERAND, false, 128, 64, 32, 64, 4, 2>(calculator, p, how);
    case 1: return halo_launch_tile<OPERAND, false, 64, 64, 32, 32, 4, 3>(calculator, p, how);
    case 2: return halo_launch_tile<OPERAND, false, 64, 32, 32, 16, 4, 3>(calculator, p, how);
    case 3: return halo_launch_tile<OPERAND, false, 32, 64, 16, 32, 6, 2>(calculator, p, how);
    case 4: return halo_launch_tile<OPERAND, false, 32, 64, 16, 32, 4, 3>(calculator, p, how);
    case 5: return halo_launch_tile<OPERAND, false, 32, 32, 16, 16, 4, 4>(calculator, p, how);
    default: return halo_launch_tile<OPERAND, false, 16, 64, 16, 16, 6, 3>(calculator, p, how);
    }
}

/* For images of up to HALO_THIN channels. */
template <typename OPERAND>
static sdlf_status halo_launch_thin(sdlf_calculator *calculator, const cuda_halo &p, const cuda_halo_launch &how)
{
    switch (how.tile - HALO_WARP_TILE) {
    case 2: return halo_launch_tile<OPERAND, true, 64, 32, 32, 16, 4, 3>(calculator, p, how);
    case 3: return halo_launch_tile<OPERAND, true, 32, 64, 16, 32, 6, 2>(calculator, p, how);
    default: return halo_launch_tile<OPERAND, true, 256, 64, 64, 32, 3, 1>(calculator, p, how);
    }
}

#endif
