/* SPDX-License-Identifier: MIT */
/* Convolution as plain loops: a baseline, and the first rung in docs/guides/convolution-algorithms.md. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NAIVE_H
#define SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NAIVE_H

#include "calculators/cpu/kernels/im2col.h"

/* Supports any convolution, and needs no scratch space. */
void conv2d_naive_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward);

#endif
