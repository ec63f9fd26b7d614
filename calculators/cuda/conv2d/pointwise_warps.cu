/* SPDX-License-Identifier: MIT */
/* The GEMM of a 1x1 convolution of row-major images: y[n,k,pixel] = clip(sum over c of w[k,c] x[n,c,pixel] + bias + residual).
 *
 * A warp computes GROUP filters of TILE pixels, linearised over all images, for some k-steps of 8 channels; it waits for no other warp until
 * its sums are complete. Elements of x are loaded from memory into registers, several channels ahead; weights are in shared memory, where
 * bulk copies load all that a block needs at once, before the kernel that computes x has ended. Under split-K the partial sums are added in
 * shared memory, in order.
 *
 * Loads x once for every group of filters and w once for every block; stores y once. */
#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/conv2d/pointwise_warps.cuh"
#include "calculators/cuda/launch.cuh"

/* The first k-step of a slice. */
[[maybe_unused]] static __device__ __forceinline__ int warps_first(const cuda_pointwise_warps &p, int slice)
{
    return static_cast<int>(static_cast<unsigned>(slice * p.steps) / static_cast<unsigned>(p.slices));
}

/* A quad, or its i-th element. */
template <int KEPT> static __device__ __forceinline__ vec<float, KEPT> warps_results(const float4 &four, int i)
{
    if constexpr (KEPT == 4)
        return {{four.x, four.y, four.z, four.w}};
    else
        return {{i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w}};
}

/* Store the results of one warp: its own sums, or its share of the sums over all slices. */
template <typename F>
static __device__ __forceinline__ void warps_epilogue(const F &f, float4 *parts, const warps_problem &g, int slice,
                                                      int group, int tile)
{
    const cuda_pointwise_warps &p = g.p;
    const int lane = static_cast<int>(threadIdx.x) % 32, first = group * F::GROUP + F::lane_filter();
    if (p.slices == 1) {
        warps_spot spot[F::SPOTS];
#pragma unroll
        for (int s = 0; s < F::SPOTS; s++) spot[s] = warps_spot_of(g, F::pixel_of(tile, s), first);
#pragma unroll
        for (int u = 0; u < F::UNITS; u++) {
            const float4 four = f.quad(u);
#pragma unroll
            for (int i = 0; i < 4 / F::KEPT; i++) {
                const int filter = F::filter_of(u);
                const warps_spot &at = spot[F::spot_of(u, i)];
                if (at.inside && first + filter < p.filters)
                    warps_keep<F::KEPT>(p, at.to + filter * p.area, first + filter, warps_results<F::KEPT>(four, i));
            }
        }
        return;
    }
    __syncthreads(); /* all warps have read their weights, which the sums overwrite */
    float4 *own = parts + (static_cast<int>(threadIdx.x) / 32 - slice) * F::UNITS * 32 + lane;
#pragma unroll
    for (int u = 0; u < F::UNITS; u++) own[(slice * F::UNITS + u) * 32] = f.quad(u);
    __syncthreads();
#pragma unroll 1
    for (int u = slice; u < F::UNITS; u += p.slices) {
        float4 all = own[u * 32];
        for (int other = 1; other < p.slices; other++) all = plus(all, own[(other * F::UNITS + u) * 32]);
#pragma unroll
        for (int i = 0; i < 4 / F::KEPT; i++) {
            const int filter = F::filter_of(u);
            const warps_spot at = warps_spot_of(g, F::pixel_of(tile, F::spot_of(u, i)), first + filter);
            if (at.inside && first + filter < p.filters)
                warps_keep<F::KEPT>(p, at.to, first + filter, warps_results<F::KEPT>(all, i));
        }
    }
}

template <typename F>
static __global__ void __launch_bounds__(F::THREADS, F::RESIDENT)
    pointwise_warps(const __grid_constant__ warps_problem g)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) char memory[];
    uint64_t *barriers = reinterpret_cast<uint64_t *>(memory);
    float *shared = reinterpret_cast<float *>(memory + WARPS_BARRIERS);
    constexpr int STEP = F::GROUP * WARPS_CHANNELS; /* elements of w */
    static_assert(2 * WARPS_MOST * sizeof(uint64_t) <= WARPS_BARRIERS && WARPS_BARRIERS % 128 == 0, "barriers");
    const cuda_pointwise_warps &p = g.p;
    const int warp = static_cast<int>(threadIdx.x) / 32, slice = warp % p.slices, group = static_cast<int>(blockIdx.y);
    const int tile = static_cast<int>(blockIdx.x) * p.tiles + warp / p.slices;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * p.slices; i++) barrier_init(barriers + i, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    launch_dependent_grids();
    if (p.fresh) wait_on_dependent_grids();
    const int own = warps_first(p, slice), end = warps_first(p, slice + 1), steps = end - own;
    warps_part part = {shared + own * STEP, own, end, F::HALVES ? (steps + 1) / 2 : steps, barriers + 2 * slice};
    if (warp < p.slices && threadIdx.x % 32 == 0) { /* the warps of the first tile load the weights for all */
        const float *from = p.w + (static_cast<int64_t>(group) * p.steps + own) * STEP;
        const int early = part.early * STEP, late = (steps - part.early) * STEP;
        copy_bulk(shared + own * STEP, from, early * 4, part.barrier);
        if (late > 0) copy_bulk(shared + own * STEP + early, from + early, late * 4, part.barrier + 1);
    }
    if (!p.fresh) wait_on_dependent_grids();
    F f;
    f.run(g, part, tile);
    warps_epilogue(f, reinterpret_cast<float4 *>(shared), g, slice, group, tile);
#endif
}

template <typename F> static sdlf_status warps_launch(const cuda_calculator *calculator, const cuda_pointwise_warps &p)
{
    warps_problem g;
    g.p = p;
    g.area = divider<int32_t>(p.area);
    const int tiles = (p.pixels + F::TILE - 1) / F::TILE, blocks = (tiles + p.tiles - 1) / p.tiles;
    sdlf_status status = allow_shared(pointwise_warps<F>, p.shared);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, pointwise_warps<F>,
                      dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(p.groups)),
                      dim3(static_cast<unsigned>(32 * p.slices * p.tiles)), static_cast<int>(p.shared), g);
    return cuda_check_launch("conv2d, pointwise by warps");
}

/* Prepack: one thread an element, group by group, 0 past the last filter. */
template <typename F> static __global__ void warps_make_ready(cuda_pointwise_warps p, const float *w, float *to)
{
    const int64_t each = static_cast<int64_t>(p.steps) * WARPS_CHANNELS * F::GROUP;
    for (int64_t e = grid_first(); e < p.groups * each; e += grid_step()) {
        int filter, channel;
        F::place(static_cast<int>(e % each), filter, channel);
        filter += static_cast<int>(e / each) * F::GROUP;
        to[e] = filter < p.filters ? w[static_cast<int64_t>(filter) * p.channels + channel] : 0;
    }
}

enum { PREPARE_THREADS = 256 };

/* Call function(tile) with the tile of that number in cuda_pointwise_warps_tiles. */
template <typename Function> static sdlf_status with_tile(int tile, Function function)
{
    switch (tile) {
    case 0: return function(warps_fma<1, 8, 2, 4, WARPS_AREA, 12, 1>());
    case 1: return function(warps_fma<1, 8, 4, 2, WARPS_AREA, 8, 1>());
    case 2: return function(warps_fma<4, 2, 3, 2, 0, 4, 3>());
    case 3: return function(warps_fma<4, 2, 2, 2, 0, 8, 2>());
    case 4: return function(warps_fma<4, 2, 4, 2, 0, 8, 1>());
    default: return function(warps_fma<4, 2, 3, 4, 0, 4, 3>());
    }
}

extern "C" sdlf_status cuda_pointwise_warps_run(sdlf_calculator *base, const cuda_pointwise_warps *problem, int tile)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    return with_tile(tile, [&](auto operands) { return warps_launch<decltype(operands)>(calculator, *problem); });
}

extern "C" sdlf_status cuda_pointwise_warps_prepare(sdlf_calculator *base, const cuda_pointwise_warps *problem,
                                                    int tile, const float *w, void *to)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    return with_tile(tile, [&](auto operands) {
        using F = decltype(operands);
        const int64_t count = static_cast<int64_t>(problem->groups) * problem->steps * WARPS_CHANNELS * F::GROUP;
        warps_make_ready<F>
            <<<cuda_blocks(calculator, count, PREPARE_THREADS), PREPARE_THREADS, 0, calculator->stream>>>(
                *problem, w, static_cast<float *>(to));
        return cuda_check_launch("conv2d, pointwise by warps, weights");
    });
}
