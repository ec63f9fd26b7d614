/* SPDX-License-Identifier: MIT */
/* Pooling, forward, channels last (pool2d/nhwc.cu). For C and for CUDA C. */
#ifndef SDLF_CALCULATORS_CUDA_POOL2D_NHWC_H
#define SDLF_CALCULATORS_CUDA_POOL2D_NHWC_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

sdlf_kernel pool2d_nhwc_cuda;            /* max_pool2d_forward and avg_pool2d_forward */
sdlf_kernel global_avg_pool2d_nhwc_cuda; /* global_avg_pool2d_forward */

#ifdef __cplusplus
}
#endif
#endif
