/* SPDX-License-Identifier: MIT */
/* The gradients of an NHWC convolution: x (N,H,W,C), dy (N,P,Q,K); w and dw are row-major, (K,C/G,R,S). */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NHWC_BACKWARD_H
#define SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NHWC_BACKWARD_H

#include "calculators/cpu/kernels/direct_conv2d.h"

/* dx = [residual +] the input gradient. Along each axis the stride or the dilation is 1. residual may be NULL. Weights
 * may be prepacked (size in elements); `packed` is NULL if they were not, otherwise backward->w is not read. */
bool conv2d_nhwc_input_takes_cpu(const convolution *v);
int64_t conv2d_nhwc_input_packed_size_cpu(const convolution *v);
void conv2d_nhwc_input_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution_backward *backward);
im2col_space conv2d_nhwc_input_space_cpu(const convolution *v, bool prepared);
void conv2d_nhwc_input_cpu(const cpu_calculator *cpu, const convolution_backward *backward, const element *residual,
                           const element *packed, element *scratch);

/* dw: any convolution, except depthwise ones with fewer channels than a vector has lanes. */
bool conv2d_nhwc_weights_takes_cpu(const convolution *v);
im2col_space conv2d_nhwc_weights_space_cpu(const convolution *v);
void conv2d_nhwc_weights_cpu(const cpu_calculator *cpu, const convolution_backward *backward, element *scratch);

/* db[k] = sum over n,p,q of dy */
void conv2d_nhwc_bias_cpu(const cpu_calculator *cpu, const convolution *v, const element *dy, element *db);

#endif
