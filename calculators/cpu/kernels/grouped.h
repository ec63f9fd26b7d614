/* SPDX-License-Identifier: MIT */
/* Convolution of groups of few channels, forward, channels last: vectors run over filters, and no lane multiplies by zero.
 *
 * Two shapes of groups fit vectors. Either a vector holds whole groups of as many filters as channels (2, 4, 8): it reads the pixel's
 * channels in place, and the channels of each group are rotated from one multiply-add to the next. Or a group's filters fill whole
 * vectors: each channel is broadcast. Weights are laid out as [vector of filters][r][s][step][filter of the vector]. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GROUPED_H
#define SDLF_CALCULATORS_CPU_KERNELS_GROUPED_H

#include "calculators/cpu/kernels/implicit.h"

/* Can it be done here, and faster than by an implicit product? Windows of any size, stride and dilation. */
bool grouped_takes_cpu(const convolution *v);

/* Elements of laid out weights, and laying them out. */
int64_t grouped_packed_size_cpu(const convolution *v);
void grouped_pack_cpu(element *packed, const convolution *v, const implicit_weights *w);

/* All activations are channels last. `packed` are the laid out weights, forward->w is not read. Scratch space: none. */
void grouped_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed);

#endif
