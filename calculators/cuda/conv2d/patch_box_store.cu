/* SPDX-License-Identifier: MIT */
/* Convolution over boxes whose results leave as boxes: built for compute capability 9.0a, and called on 9.0 alone. */
#include "calculators/cuda/conv2d/patch_box_wide.cuh"

#include "calculators/cuda/conv2d/patch_box_map.cuh"
#include "calculators/cuda/conv2d/patch_launch.cuh"

/* A map of y or what is added to it, a box of which is 32 filters of a group's part of a tile. */
static bool make_map(CUtensorMap *map, const cuda_patch &p, const float *data, int pixels, bool through)
{
    const int by = p.pools ? 2 : 1;
    box_shape y = {data, p.images, p.out_height / by, p.out_width / by, p.filters, {1, pixels}, {1, 1}, false};
    if (p.tile_down > 1) {
        y.size[0] = p.tile_down / by;
        y.size[1] = through ? p.patch_across : 8 / by;
    }
    return make_box_map(map, y);
}

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int STAGES, bool THROUGH>
static sdlf_status launch_tile(sdlf_calculator *base, const cuda_patch &p, const cuda_patch_launch &how)
{
    using product = patch_box_stored<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, STAGES, THROUGH>;
    const cuda_calculator *calculator = cuda_calculator_from(base);
    auto kernel = patch_box_store_kernel<product>;
    CUtensorMap x = {}, y = {}, residual = {};
    if ((p.quads && !patch_box_map(&x, p, PIXELS)) || !make_map(&y, p, p.y, PIXELS, THROUGH) ||
        (p.residual != nullptr && !make_map(&residual, p, p.residual, PIXELS, THROUGH)))
        return sdlf_fail(SDLF_ERROR_DEVICE, "conv2d over a patch: the driver makes no map of an operand");
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(how.shared));
    if (error != cudaSuccess) return cuda_check(error, "conv2d over a patch");
    unsigned most = static_cast<unsigned>(calculator->multiprocessors);
    launch_cluster(calculator, kernel, dim3(how.blocks < most ? how.blocks : most), dim3(product::THREADS),
                   static_cast<int>(how.shared), dim3(1), p, x, y, residual);
    return cuda_check_launch("conv2d over a patch");
}

static sdlf_status launch_wide(sdlf_calculator *base, const cuda_patch &p, const cuda_patch_launch &how)
{
    constexpr int FIRST = PATCH_FIRST, SECOND = 200;
    using product = patch_box_wide<FIRST, SECOND, 6>;
    const cuda_calculator *calculator = cuda_calculator_from(base);
    auto kernel = patch_box_wide_kernel<product>;
    CUtensorMap x = {};
    patch_wide_maps maps = {};
    const int pitch = p.patch_across, lines = FIRST / pitch, rest = FIRST % pitch;
    const int sizes[4][2] = {{lines, pitch}, {1, rest}, {1, pitch - rest}, {p.tile_down - lines - 1, pitch}};
    bool made = patch_box_map(&x, p, FIRST);
    for (int i = 0; i < 4 && made; i++)
        made = make_box_map(
            &maps.y[i],
            {p.y, p.images, p.out_height, p.out_width, p.filters, {sizes[i][0], sizes[i][1]}, {1, 1}, false});
    if (!made) return sdlf_fail(SDLF_ERROR_DEVICE, "conv2d over a patch: the driver makes no map of an operand");
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(how.shared));
    if (error != cudaSuccess) return cuda_check(error, "conv2d over a patch");
    unsigned most = static_cast<unsigned>(calculator->multiprocessors);
    launch_cluster(calculator, kernel, dim3(how.blocks < most ? how.blocks : most), dim3(product::THREADS),
                   static_cast<int>(how.shared), dim3(1), p, x, maps);
    return cuda_check_launch("conv2d over a patch");
}

extern "C" sdlf_status cuda_patch_box_store(sdlf_calculator *calculator, const cuda_patch *problem,
                                            const cuda_patch_launch *how)
{
    const cuda_patch &p = *problem;
    switch (how->tile - PATCH_STORE_TILE) {
    case 0: return launch_tile<2, 1, 224, 5, false>(calculator, p, *how);
    case 1: return launch_tile<1, 2, 224, 4, false>(calculator, p, *how);
    case 2: return launch_tile<2, 1, 208, 6, true>(calculator, p, *how);
    case 3: return launch_tile<2, 1, 216, 6, true>(calculator, p, *how);
    default: return launch_wide(calculator, p, *how);
    }
}
