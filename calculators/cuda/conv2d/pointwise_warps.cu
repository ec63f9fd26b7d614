/* SPDX-License-Identifier: MIT */
/* 1x1 convolutions by warps that bring what they multiply themselves: the tiles (conv2d/pointwise_warps.cuh). */
#include "calculators/cuda/conv2d/pointwise_warps.cuh"

#include <type_traits>

enum { PREPARE_THREADS = 256 };

/* Call function(tile) with the tile of that number, as cuda_pointwise_warps_tiles has them. */
template <typename Function> static sdlf_status with_tile(int tile, Function function)
{
    switch (tile) {
    case 0: return function(warps_fma<1, 8, 2, 4, WARPS_AREA, 12, 1>());
    case 1: return function(warps_fma<1, 8, 4, 2, WARPS_AREA, 8, 1>());
    case 2: return function(warps_fma<4, 2, 3, 2, 0, 4, 3>());
    case 3: return function(warps_fma<4, 2, 2, 2, 0, 8, 2>());
    case 4: return function(warps_fma<4, 2, 4, 2, 0, 8, 1>());
    case 5: return function(warps_fma<4, 2, 3, 4, 0, 4, 3>());
    case 6: return function(warps_mma<4, 1, 1, 4, 0, 8, 3>());
    case 7: return function(warps_mma<4, 1, 2, 4, 0, 8, 2>());
    case 8: return function(warps_mma<2, 3, 2, 2, 0, 14, 1>());
    case 9: return function(warps_mma<2, 3, 3, 2, 0, 12, 1>());
    default: return function(warps_mma<1, 8, 2, 2, WARPS_AREA, 12, 1>());
    }
}

extern "C" sdlf_status cuda_pointwise_warps_run(sdlf_calculator *base, const cuda_pointwise_warps *problem, int tile)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    return with_tile(tile, [&](auto factors) { return warps_launch<decltype(factors)>(calculator, *problem); });
}

extern "C" sdlf_status cuda_pointwise_warps_prepare(sdlf_calculator *base, const cuda_pointwise_warps *problem,
                                                    int tile, const float *w, void *to)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    return with_tile(tile, [&](auto factors) {
        using F = decltype(factors);
        const int64_t count = static_cast<int64_t>(problem->groups) * problem->steps * WARPS_CHANNELS * F::GROUP;
        warps_make_ready<F>
            <<<cuda_blocks(calculator, count, PREPARE_THREADS), PREPARE_THREADS, 0, calculator->stream>>>(
                *problem, w, static_cast<float *>(to));
        return cuda_check_launch("conv2d, pointwise by warps, weights");
    });
}
