/* SPDX-License-Identifier: MIT */
/* The gradients of a convolution whose activations are channels last: x (N,H,W,C), dy (N,P,Q,K); w and dw are row-major, (K,C/G,R,S). */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NHWC_BACKWARD_H
#define SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NHWC_BACKWARD_H

#include "calculators/cpu/kernels/direct_conv2d.h"

/* dx = [residual +] the gradient by the input: strides and dilations of which one is 1 along each axis. residual may be NULL. Weights
 * may be prepacked; the packed size is in elements. `packed` is NULL where they were not; else backward->w is not read. */
bool conv2d_nhwc_input_takes_cpu(const convolution *v);
int64_t conv2d_nhwc_input_packed_size_cpu(const convolution *v);
void conv2d_nhwc_input_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution_backward *backward);
im2col_space conv2d_nhwc_input_space_cpu(const convolution *v, bool prepared);
void conv2d_nhwc_input_cpu(const cpu_calculator *cpu, const convolution_backward *backward, const element *residual,
                           const element *packed, element *scratch);

/* dw: any, but depthwise ones of fewer channels than a vector has lanes. */
bool conv2d_nhwc_weights_takes_cpu(const convolution *v);
im2col_space conv2d_nhwc_weights_space_cpu(const convolution *v);
void conv2d_nhwc_weights_cpu(const cpu_calculator *cpu, const convolution_backward *backward, element *scratch);

/* db[k] = sum over n,p,q of dy */
void conv2d_nhwc_bias_cpu(const cpu_calculator *cpu, const convolution *v, const element *dy, element *db);

#endif
