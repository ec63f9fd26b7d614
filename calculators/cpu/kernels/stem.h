/* SPDX-License-Identifier: MIT */
/* The convolution that a network begins with: few channels of a row-major image into outputs that are channels last. See stem.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_STEM_H
#define SDLF_CALCULATORS_CPU_KERNELS_STEM_H

#include "calculators/cpu/kernels/im2col.h"

/* Few channels, one group, a vector of filters at least, windows of any size one or two columns apart. */
bool stem_takes_cpu(const convolution *v);

/* Laying weights out: as many elements as for implicit GEMM, in another order. */
void stem_pack_cpu(element *packed, const convolution *v, const element *w);

/* Elements of scratch space of each thread; the forward pass. x is row-major, residual and y are channels last; forward->w is not read. */
int64_t stem_scratch_size_cpu(const convolution *v);
void stem_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed,
                      element *scratch);

#endif
