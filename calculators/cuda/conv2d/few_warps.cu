/* SPDX-License-Identifier: MIT */
/* First layers of row-major images on tensor cores: which, and their launch (conv2d/few_warps.cuh). */
#include "calculators/cuda/conv2d/few_warps.cuh"

/* In modes with tensor cores; results are stored 16 bytes at a time. */
extern "C" bool cuda_few_warps_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = reinterpret_cast<const cuda_calculator *>(base);
    if (op->kind != SDLF_CONV2D_FORWARD || op->out[0].dtype != SDLF_FLOAT32) return false;
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(op->out[0].data) | reinterpret_cast<uintptr_t>(optional<float>(op->in[3]));
    return places % 16 == 0 && few_warps_takes(calculator, cuda_conv2d_geometry(op), op->conv2d.activation);
}

extern "C" sdlf_status conv2d_few_warps_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const cuda_conv2d g = cuda_conv2d_geometry(op);
    const few_problem<float> p = few_problem_of<float>(op, g);
    if (g.window.stride[0] == 1)
        few_warps_launch<1>(calculator, p, g.batch);
    else
        few_warps_launch<2>(calculator, p, g.batch);
    return cuda_check_launch("conv2d, few channels, by warps");
}
