/* SPDX-License-Identifier: MIT */
/* Convolution over a patch in tf32. */
#include "calculators/cuda/conv2d/patch_mma.cuh"

extern "C" sdlf_status cuda_patch_tf32(sdlf_calculator *calculator, const cuda_patch *problem,
                                       const cuda_patch_launch *how)
{
    return how->thin ? patch_launch_thin<patch_tf32>(calculator, *problem, *how)
                     : patch_launch_mma<patch_tf32>(calculator, *problem, *how);
}
