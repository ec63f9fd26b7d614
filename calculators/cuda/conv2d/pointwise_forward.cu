/* SPDX-License-Identifier: MIT */
/* The tiles of conv2d/pointwise.cuh, in float32 and float64. */
#include "calculators/cuda/conv2d/pointwise.cuh"

template <typename TILE>
static __global__ void __launch_bounds__(TILE::THREADS) pointwise_product(const __grid_constant__ cuda_pointwise p)
{
    TILE::run(p);
}

template <typename TILE> static sdlf_status launch(const cuda_calculator *calculator, const cuda_pointwise &p)
{
    unsigned blocks = static_cast<unsigned>(p.filter_blocks * p.pixel_blocks);
    sdlf_status status = allow_shared(pointwise_product<TILE>, TILE::SHARED);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, pointwise_product<TILE>, dim3(blocks), dim3(TILE::THREADS),
                      static_cast<int>(TILE::SHARED), p);
    return cuda_check_launch("conv2d, pointwise");
}

/* As cuda_pointwise_tiles has them. Where sums are few, several warps share one. Doubles have fewer stages. */
extern "C" sdlf_status cuda_pointwise_product(sdlf_calculator *base, const cuda_pointwise *problem, sdlf_dtype dtype,
                                              int tile)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (dtype == SDLF_FLOAT64) {
        switch (tile) {
        case 0:
        case 1: return launch<pointwise_tile<double, 32, 64, 4, 8, 4, 3>>(calculator, *problem);
        case 2: return launch<pointwise_tile<double, 16, 32, 4, 4, 8, 4>>(calculator, *problem);
        default: return launch<pointwise_tile<double, 8, 16, 4, 4, 32, 4>>(calculator, *problem);
        }
    }
    switch (tile) {
    case 0: return launch<pointwise_tile<float, 64, 128, 8, 8, 2, 4>>(calculator, *problem);
    case 1: return launch<pointwise_tile<float, 32, 64, 4, 8, 4, 4>>(calculator, *problem);
    case 2: return launch<pointwise_tile<float, 16, 32, 4, 4, 8, 6>>(calculator, *problem);
    default: return launch<pointwise_tile<float, 8, 16, 4, 4, 32, 6>>(calculator, *problem);
    }
}
