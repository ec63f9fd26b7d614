/* SPDX-License-Identifier: MIT */
/* Convolution over a patch with products of warpgroups: built for compute capability 9.0a, and called on 9.0 alone. */
#include "calculators/cuda/conv2d/patch_launch.cuh"
#include "calculators/cuda/conv2d/patch_wgmma.cuh"

template <typename FACTOR, int GROUPS, int FILTERS, int STAGES, int BLOCKS>
static sdlf_status launch_tile(sdlf_calculator *calculator, const cuda_patch &problem, const cuda_patch_launch &how)
{
    using product = patch_group_product<FACTOR, GROUPS, FILTERS, STAGES>;
    return patch_launch(calculator, patch_group_kernel<product, BLOCKS>, product::THREADS, problem, how);
}

template <typename FACTOR>
static sdlf_status launch(sdlf_calculator *calculator, const cuda_patch &p, const cuda_patch_launch &how)
{
    switch (how.tile) {
    case 0: return launch_tile<FACTOR, 2, 128, 4, 1>(calculator, p, how);
    case 1: return launch_tile<FACTOR, 4, 64, 4, 1>(calculator, p, how);
    case 2: return launch_tile<FACTOR, 1, 128, 4, 2>(calculator, p, how);
    case 3: return launch_tile<FACTOR, 1, 64, 6, 2>(calculator, p, how);
    case 4: return launch_tile<FACTOR, 2, 64, 6, 1>(calculator, p, how);
    default: return launch_tile<FACTOR, 1, 256, 3, 1>(calculator, p, how);
    }
}

extern "C" sdlf_status cuda_patch_groups(sdlf_calculator *calculator, const cuda_patch *problem,
                                         const cuda_patch_launch *how)
{
    switch (cuda_calculator_from(calculator)->math) {
    case SDLF_MATH_FP16: return launch<patch_fp16>(calculator, *problem, *how);
    case SDLF_MATH_BF16: return launch<patch_bf16>(calculator, *problem, *how);
    default: return launch<patch_tf32>(calculator, *problem, *how);
    }
}
