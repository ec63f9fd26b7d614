/* SPDX-License-Identifier: MIT */
/* conv2d_forward of NHWC activations. The weights are repacked: once if the plan prepacks them, otherwise at every run,
 * into scratch space. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NHWC_H
#define SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NHWC_H

#include "calculators/cpu/kernels/implicit.h"

/* True if the operation is computed as NHWC. With one channel or one pixel, activations are NCHW and NHWC at once; then
 * prepacked weights or the algorithm's name decide. */
bool conv2d_is_nhwc_cpu(const sdlf_operation *operation);

/* True if NHWC is the faster layout. Vectors run over filters. If these do not fill a vector, NCHW is faster, unless
 * im2col is expensive: with many channels, or with strides, where elements are gathered one by one. For depthwise
 * convolutions vectors run over channels, if there are enough. docs/guides/convolution-algorithms.md has figures. */
bool conv2d_nhwc_pays_cpu(const convolution *v);

/* What "auto" selects for an NHWC operation: Winograd F(2x2,3x3), or implicit GEMM, a name that also stands for the
 * depthwise kernels. */
int conv2d_nhwc_automatic_cpu(const sdlf_operation *operation, const convolution *v);

bool conv2d_nhwc_supports_cpu(const sdlf_operation *operation, const convolution *v);

/* The size of the prepacked weights, in elements (0: not supported), and prepacking them. */
int64_t conv2d_nhwc_prepared_size_cpu(const sdlf_operation *operation, const convolution *v);
void conv2d_nhwc_prepare_cpu(const cpu_calculator *cpu, const sdlf_operation *operation, const convolution *v);

/* The size of the scratch space, in elements, and the forward pass. */
im2col_space conv2d_nhwc_space_cpu(const sdlf_operation *operation, const convolution *v);
void conv2d_nhwc_forward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation,
                             const convolution_forward *forward);

/* The algorithm that "auto" selects for a convolution with NHWC activations: whether it is supported, elements of the
 * prepacked weights, prepacking, scratch space, and the forward pass; `packed` is NULL if the weights were not
 * prepacked. Implicit GEMM and grouped kernels read weights with any strides; the others need row-major weights. */
bool conv2d_nhwc_takes_cpu(const convolution *v);
int64_t conv2d_nhwc_automatic_size_cpu(const convolution *v);
void conv2d_nhwc_automatic_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v,
                                    const implicit_weights *w);
im2col_space conv2d_nhwc_automatic_space_cpu(const convolution *v, bool prepared);
void conv2d_nhwc_automatic_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward,
                                       const element *packed, const implicit_weights *w, element *scratch);

#endif
