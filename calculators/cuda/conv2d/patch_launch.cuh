/* SPDX-License-Identifier: MIT */
/* Launching a kernel of conv2d/patch_mma.cuh or conv2d/patch_box.cuh. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PATCH_LAUNCH_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PATCH_LAUNCH_CUH

#include "calculators/cuda/conv2d/patch.h"
#include "calculators/cuda/launch.cuh"

template <typename KERNEL>
static sdlf_status patch_launch(sdlf_calculator *base, KERNEL *kernel, int threads, const cuda_patch &problem,
                                const cuda_patch_launch &how)
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

#endif
