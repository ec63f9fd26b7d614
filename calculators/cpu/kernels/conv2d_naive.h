/* SPDX-License-Identifier: MIT */
/* The convolution as its formula reads: the first rung of the ladder of docs/guides/convolution-algorithms.md, there to be compared with. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NAIVE_H
#define SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NAIVE_H

#include "calculators/cpu/kernels/im2col.h"

/* Takes any convolution, and needs no scratch space. */
void conv2d_naive_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward);

#endif
