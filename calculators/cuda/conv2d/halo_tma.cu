/* SPDX-License-Identifier: MIT */
/* TMA-tiled implicit GEMM in tf32, with plain and with TMA stores: launching. Built for compute capability 9.0a, and
 * called only on 9.0. */
#include "calculators/cuda/conv2d/halo_tma_store.cuh"
#include "calculators/cuda/tma.cuh"

/* A tensor map of x whose box is the part of the patch for one remainder by the strides, or a group's part of a row. False: the driver refuses. */
static bool halo_tma_map(CUtensorMap *map, const cuda_halo &p, int group_pixels)
{
    image_shape x = {p.x, p.images, p.height, p.width, p.channels, {1, group_pixels}, {1, 1}, true};
    for (int i = 0; i < 2 && p.tile_down > 1; i++) {
        x.stride[i] = p.source_step[i] * p.pixel_step[i];
        x.size[i] = (i == 0 ? p.patch_down : p.patch_across) * x.stride[i];
    }
    return make_image_map(map, x);
}

/* Blocks that are alone on a multiprocessor have registers for another producer warp, which fills a weight ring for the second group. */
template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int STAGES, int LINES, int BLOCKS, bool THROUGH = false,
          int SHARES = 1>
static sdlf_status launch_tile(sdlf_calculator *base, const cuda_halo &p, const cuda_halo_launch &how)
{
    constexpr int RINGS = FILTER_GROUPS == 2 && BLOCKS == 1 ? 2 : 1;
    using product = halo_tma_product<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, RINGS, STAGES, LINES, THROUGH, SHARES>;
    const cuda_calculator *calculator = cuda_calculator_from(base);
    auto kernel = halo_tma_kernel<product, BLOCKS>;
    CUtensorMap map = {};
    if (p.quads && !halo_tma_map(&map, p, PIXELS))
        return sdlf_fail(SDLF_ERROR_DEVICE, "conv2d over a patch: the driver cannot make a tensor map of the image");
    const int shared = static_cast<int>(shared_alone(calculator, how.blocks, how.shared));
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess) return cuda_check(error, "conv2d over a patch");
    unsigned most = static_cast<unsigned>(calculator->multiprocessors) * BLOCKS;
    unsigned blocks = p.direct && how.blocks > most ? most : how.blocks;
    launch_cluster(calculator, kernel, dim3(blocks), dim3(product::THREADS), shared,
                   dim3(static_cast<unsigned>(p.splits)), p, map);
    return cuda_check_launch("conv2d over a patch");
}

extern "C" sdlf_status cuda_halo_box(sdlf_calculator *calculator, const cuda_halo *problem, const cuda_halo_launch *how)
{
    const cuda_halo &p = *problem;
    switch (how->tile) {
    case 0: return launch_tile<2, 1, 256, 6, 4, 1>(calculator, p, *how);
    case 1: return launch_tile<1, 2, 256, 4, 4, 1>(calculator, p, *how);
    case 2: return launch_tile<2, 1, 224, 6, 4, 1>(calculator, p, *how);
    case 3: return launch_tile<1, 2, 224, 4, 4, 1>(calculator, p, *how);
    case 4: return launch_tile<1, 1, 224, 3, 2, 2>(calculator, p, *how);
    case 5: return launch_tile<2, 1, 128, 3, 2, 2>(calculator, p, *how);
    case 6: return launch_tile<1, 1, 128, 4, 2, 2>(calculator, p, *how);
    case 7: return launch_tile<2, 1, 128, 6, 4, 1>(calculator, p, *how);
    case 8: return launch_tile<2, 1, 112, 3, 2, 2>(calculator, p, *how);
    case 9: return launch_tile<2, 1, 208, 6, 2, 1, true>(calculator, p, *how);
    case 10: return launch_tile<2, 1, 216, 6, 3, 1, true>(calculator, p, *how);
    default: return launch_tile<1, 1, 112, 8, 2, 2, false, 2>(calculator, p, *how);
    }
}

/* ---- results that leave as boxes ---- */

/* A tensor map of y or of the residual whose box is 32 filters of a group's part of a tile. False: the driver refuses. */
static bool make_result_map(CUtensorMap *map, const cuda_halo &p, const float *data, int pixels, bool through)
{
    const int by = p.pools ? 2 : 1;
    image_shape y = {data, p.images, p.out_height / by, p.out_width / by, p.filters, {1, pixels}, {1, 1}, false};
    if (p.tile_down > 1) {
        y.size[0] = p.tile_down / by;
        y.size[1] = through ? p.patch_across : 8 / by;
    }
    return make_image_map(map, y);
}

template <int FILTER_GROUPS, int PIXEL_GROUPS, int PIXELS, int STAGES, bool THROUGH>
static sdlf_status launch_stored(sdlf_calculator *base, const cuda_halo &p, const cuda_halo_launch &how)
{
    using product = halo_tma_stored<FILTER_GROUPS, PIXEL_GROUPS, PIXELS, STAGES, THROUGH>;
    const cuda_calculator *calculator = cuda_calculator_from(base);
    auto kernel = halo_tma_store_kernel<product>;
    CUtensorMap x = {}, y = {}, residual = {};
    if ((p.quads && !halo_tma_map(&x, p, PIXELS)) || !make_result_map(&y, p, p.y, PIXELS, THROUGH) ||
        (p.residual != nullptr && !make_result_map(&residual, p, p.residual, PIXELS, THROUGH)))
        return sdlf_fail(SDLF_ERROR_DEVICE, "conv2d over a patch: the driver cannot make a tensor map of an operand");
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(how.shared));
    if (error != cudaSuccess) return cuda_check(error, "conv2d over a patch");
    unsigned most = static_cast<unsigned>(calculator->multiprocessors);
    launch_cluster(calculator, kernel, dim3(how.blocks < most ? how.blocks : most), dim3(product::THREADS),
                   static_cast<int>(how.shared), dim3(1), p, x, y, residual);
    return cuda_check_launch("conv2d over a patch");
}

extern "C" sdlf_status cuda_halo_box_store(sdlf_calculator *calculator, const cuda_halo *problem,
                                           const cuda_halo_launch *how)
{
    const cuda_halo &p = *problem;
    switch (how->tile - HALO_STORE_TILE) {
    case 0: return launch_stored<2, 1, 224, 5, false>(calculator, p, *how);
    case 1: return launch_stored<1, 2, 224, 4, false>(calculator, p, *how);
    case 2: return launch_stored<2, 1, 208, 6, true>(calculator, p, *how);
    default: return launch_stored<2, 1, 216, 6, true>(calculator, p, *how);
    }
}
