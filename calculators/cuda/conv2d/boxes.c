/* SPDX-License-Identifier: MIT */
/* Convolution over boxes: what it takes, running. */
#include "calculators/cuda/conv2d/boxes.h"

#include "calculators/cuda/gemm/factors.h"

bool cuda_boxes_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
#ifdef SDLF_HAVE_WGMMA
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    if (calculator->capability != 90 || !cuda_patch_takes(base, op)) return false;
    const sdlf_window2d *window = &op->conv2d.window;
    for (int i = 0; i < 2; i++) {
        if (window->stride[i] != 1 || window->dilation[i] != 1) return false;
    }
    int64_t channels = op->in[0].shape.dim[1];
    if (window->size[1] != BOXES_TAPS || channels <= PATCH_THIN || channels % 4 != 0) return false;
    if (!cuda_has_half_factors(calculator->math)) return false;
    cuda_patch p = cuda_patch_problem(op);
    cuda_boxes_launch how;
    return cuda_boxes_choose(calculator, &p, &how);
#else
    (void)base;
    (void)op;
    return false;
#endif
}

sdlf_status cuda_boxes_run(sdlf_calculator *base, const sdlf_operation *op, bool pools, int plane)
{
#ifdef SDLF_HAVE_WGMMA
    cuda_patch p = cuda_patch_operands(op);
    p.plane = plane;
    cuda_boxes_launch how;
    if (!cuda_boxes_choose(cuda_calculator_from(base), &p, &how))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "conv2d over boxes: no tile fits");
    how.pools = pools;
    sdlf_status status = SDLF_OK;
    if (p.fresh) status = cuda_patch_prepare(base, &p, op->in[1].data, op->workspace.data, false);
    return status == SDLF_OK ? cuda_boxes_multiply(base, &p, &how) : status;
#else
    (void)base;
    (void)op;
    (void)pools;
    (void)plane;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "conv2d over boxes: not in this build");
#endif
}

sdlf_status conv2d_boxes_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    return cuda_boxes_run(base, op, false, 0);
}
