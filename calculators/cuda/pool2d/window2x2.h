/* SPDX-License-Identifier: MIT */
/* Gradients of pooling with 2x2 windows, stride 2, no padding and no dilation, whose columns tile the planes: the most
 * common pooling. Each input belongs to one window at most. */
#ifndef SDLF_CALCULATORS_CUDA_POOL2D_WINDOW2X2_H
#define SDLF_CALCULATORS_CUDA_POOL2D_WINDOW2X2_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `in` has the shape of the input, `out` that of the output. Operands must be aligned to two elements. */
bool pool2d_window2x2_takes(const sdlf_operation *operation, const sdlf_tensor *in, const sdlf_tensor *out);
/* max_pool2d_backward or avg_pool2d_backward. */
sdlf_status pool2d_window2x2_backward_cuda(sdlf_calculator *calculator, const sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
