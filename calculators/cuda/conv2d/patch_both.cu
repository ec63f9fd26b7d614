/* SPDX-License-Identifier: MIT */
/* Convolution over a patch with products whose factors both lie in shared memory: built for compute capability 9.0a, and called on 9.0 alone. */
#include "calculators/cuda/conv2d/patch_both.cuh"
#include "calculators/cuda/conv2d/patch_launch.cuh"

template <typename FACTOR, int GROUPS, int PIXELS, int STAGES, int BRINGING, int DEPTH, int BLOCKS>
static sdlf_status launch_tile(sdlf_calculator *calculator, const cuda_patch &problem, const cuda_patch_launch &how)
{
    using product = patch_both_product<FACTOR, GROUPS, PIXELS, STAGES, BRINGING, DEPTH>;
    return patch_launch(calculator, patch_both_kernel<product, BLOCKS>, product::THREADS, problem, how);
}

template <typename FACTOR>
static sdlf_status launch(sdlf_calculator *calculator, const cuda_patch &p, const cuda_patch_launch &how)
{
    switch (how.tile - PATCH_BOTH_TILE) {
    case 0: return launch_tile<FACTOR, 1, 256, 6, 2, 1, 2>(calculator, p, how);
    case 1: return launch_tile<FACTOR, 1, 256, 16, 4, 2, 1>(calculator, p, how);
    case 2: return launch_tile<FACTOR, 2, 256, 12, 4, 2, 1>(calculator, p, how);
    case 3: return launch_tile<FACTOR, 1, 128, 12, 4, 2, 2>(calculator, p, how);
    case 4: return launch_tile<FACTOR, 1, 128, 6, 2, 1, 3>(calculator, p, how);
    case 5: return launch_tile<FACTOR, 2, 128, 8, 2, 1, 2>(calculator, p, how);
    default: return launch_tile<FACTOR, 2, 128, 12, 4, 2, 1>(calculator, p, how);
    }
}

extern "C" sdlf_status cuda_patch_both(sdlf_calculator *calculator, const cuda_patch *problem,
                                       const cuda_patch_launch *how)
{
    switch (cuda_calculator_from(calculator)->math) {
    case SDLF_MATH_FP16: return launch<patch_fp16>(calculator, *problem, *how);
    default: return launch<patch_bf16>(calculator, *problem, *how);
    }
}
