/* SPDX-License-Identifier: MIT */
/* Implicit GEMM in tf32. */
#include "calculators/cuda/conv2d/implicit_tensor.cuh"

extern "C" sdlf_status cuda_implicit_tf32(sdlf_calculator *base, const cuda_implicit *problem, int tile)
{
    cudaStream_t stream = cuda_stream(base);
    if (problem->weights)
        implicit_launch_tensor<implicit_tf32, true>(stream, *problem, tile);
    else
        implicit_launch_tensor<implicit_tf32, false>(stream, *problem, tile);
    return cuda_check_launch("conv2d, implicit GEMM in tf32");
}
