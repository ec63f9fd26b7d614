/* SPDX-License-Identifier: MIT */
/* Stem convolution, the first of a network: few channels of a row-major (NCHW) image, NHWC outputs. See stem.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_STEM_H
#define SDLF_CALCULATORS_CPU_KERNELS_STEM_H

#include "calculators/cpu/kernels/im2col.h"

/* Supports few channels, one group, at least LANES filters, windows of any size with a horizontal stride of 1 or 2. */
bool stem_takes_cpu(const convolution *v);

/* Packs weights: as many elements as for implicit GEMM, in another order. */
void stem_pack_cpu(element *packed, const convolution *v, const element *w);

/* Scratch elements of each thread; the forward pass. x is row-major, residual and y NHWC; forward->w is not read. */
int64_t stem_scratch_size_cpu(const convolution *v);
void stem_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed,
                      element *scratch);

#endif
