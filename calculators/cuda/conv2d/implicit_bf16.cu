/* SPDX-License-Identifier: MIT */
/* Implicit GEMM in bfloat16. */
#include "calculators/cuda/conv2d/implicit_tensor.cuh"

extern "C" sdlf_status cuda_implicit_bf16(sdlf_calculator *base, const cuda_implicit *problem, int tile)
{
    cudaStream_t stream = cuda_stream(base);
    if (problem->weights)
        implicit_launch_tensor<implicit_bf16, true>(stream, *problem, tile);
    else
        implicit_launch_tensor<implicit_bf16, false>(stream, *problem, tile);
    return cuda_check_launch("conv2d, implicit GEMM in bfloat16");
}
