/* SPDX-License-Identifier: MIT */
/* Grouped convolution with few channels a group, forward, NHWC: vectors run over filters; no lane multiplies by zero.
 *
 * Two group shapes fit vectors. Either a vector holds whole groups with as many filters as channels (2, 4, 8): it loads
 * a pixel's channels, and rotates those of each group between multiply-adds. Or a group's filters fill whole vectors:
 * each channel is broadcast. Weights are packed as [vector of filters][r][s][step][filter of the vector]. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GROUPED_H
#define SDLF_CALCULATORS_CPU_KERNELS_GROUPED_H

#include "calculators/cpu/kernels/implicit.h"

/* True if it is supported, and faster than implicit GEMM. Windows of any size, stride and dilation. */
bool grouped_takes_cpu(const convolution *v);

/* Elements of packed weights, and packing them. */
int64_t grouped_packed_size_cpu(const convolution *v);
void grouped_pack_cpu(element *packed, const convolution *v, const implicit_weights *w);

/* The forward pass; all activations are NHWC. `packed`: the packed weights; forward->w is not read. No scratch. */
void grouped_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed);

#endif
