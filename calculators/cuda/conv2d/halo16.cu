/* SPDX-License-Identifier: MIT */
/* TMA-tiled implicit GEMM in 16 bits: launching. Built for compute capability 9.0a, called only on 9.0. */
#include "calculators/cuda/conv2d/halo16.cuh"

/* A tensor map of x whose box is 32 channels of what a tile's windows cover. False: the driver refuses. */
static bool make_map(CUtensorMap *map, const cuda_halo &p)
{
    const int rows = p.patch_pixels / p.patch_across;
    return make_image_map(map, {p.x, p.images, p.height, p.width, p.channels, {rows, p.patch_across}, {1, 1}, false});
}

template <typename OPERAND, int GROUPS, int PIXELS, int STAGES, int ROUNDING, int BLOCKS>
static sdlf_status launch_tile(sdlf_calculator *base, const cuda_halo &p, const cuda_halo16_launch &how)
{
    using product = halo16_product<OPERAND, GROUPS, PIXELS, STAGES, ROUNDING>;
    const cuda_calculator *calculator = cuda_calculator_from(base);
    auto kernel = halo16_kernel<product, BLOCKS>;
    CUtensorMap map = {};
    if (p.quads && !make_map(&map, p))
        return sdlf_fail(SDLF_ERROR_DEVICE, "conv2d over boxes: the driver cannot make a tensor map of the image");
    const dim3 blocks(static_cast<unsigned>(p.splits), static_cast<unsigned>(p.tiles_filters),
                      static_cast<unsigned>(p.images * p.tiles_down * p.tiles_across));
    int64_t shared = how.shared;
    if (cuda_halo_is_alone(&p)) shared = shared_alone(calculator, cuda_halo_blocks(&p), shared);
    sdlf_status status = allow_shared(kernel, shared);
    if (status == SDLF_OK) /* so that blocks of the next kernel fit beside these */
        status = cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                                 cudaSharedmemCarveoutMaxShared),
                            "shared memory");
    if (status != SDLF_OK) return status;
    launch_cluster(calculator, kernel, blocks, dim3(product::THREADS), static_cast<int>(shared),
                   dim3(static_cast<unsigned>(p.splits)), map, p, halo16_cut(p), how.pools);
    return cuda_check_launch("conv2d over boxes");
}

template <typename OPERAND>
static sdlf_status launch(sdlf_calculator *calculator, const cuda_halo &p, const cuda_halo16_launch &how)
{
    switch (how.tile) {
    case 0: return launch_tile<OPERAND, 1, 256, 2, 1, 2>(calculator, p, how);
    case 1: return launch_tile<OPERAND, 2, 256, 3, 3, 1>(calculator, p, how);
    case 2: return launch_tile<OPERAND, 1, 128, 4, 3, 2>(calculator, p, how);
    case 3: return launch_tile<OPERAND, 2, 128, 4, 3, 1>(calculator, p, how);
    case 4: return launch_tile<OPERAND, 2, 128, 2, 1, 2>(calculator, p, how);
    default: return launch_tile<OPERAND, 1, 128, 8, 3, 1>(calculator, p, how);
    }
}

extern "C" sdlf_status cuda_halo16_multiply(sdlf_calculator *calculator, const cuda_halo *problem,
                                            const cuda_halo16_launch *how)
{
    return cuda_calculator_from(calculator)->math == SDLF_MATH_FP16 ? launch<halo_fp16>(calculator, *problem, *how)
                                                                    : launch<halo_bf16>(calculator, *problem, *how);
}
