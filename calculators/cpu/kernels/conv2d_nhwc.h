/* SPDX-License-Identifier: MIT */
/* conv2d_forward of activations that are channels last. Its weights are laid out anew: when the plan makes them ready, or else
 * at every run, in scratch space. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NHWC_H
#define SDLF_CALCULATORS_CPU_KERNELS_CONV2D_NHWC_H

#include "calculators/cpu/kernels/implicit.h"

/* Is the operation to be taken as one? With one channel, or of one pixel, activations are row-major as well as channels last;
 * then weights that were prepacked say so, or the algorithm's name. */
bool conv2d_is_nhwc_cpu(const sdlf_operation *operation);

/* Is that the faster way? Vectors run over filters. Where these do not fill one, a row-major image has the advantage, unless its
 * patches are costly to make: of many channels, or with strides, where they are gathered number by number. Depthwise, vectors
 * run over channels, if there are enough. docs/guides/convolution-algorithms.md has figures. */
bool conv2d_nhwc_pays_cpu(const convolution *v);

/* What "auto" takes of an operation that is: Winograd's tiles of 2x2 or, under that name also where each filter reads one
 * channel, an implicit product. */
int conv2d_nhwc_automatic_cpu(const sdlf_operation *operation, const convolution *v);

bool conv2d_nhwc_supports_cpu(const sdlf_operation *operation, const convolution *v);

/* Weights prepacked, in elements (0: the operation is not taken), and making them so. */
int64_t conv2d_nhwc_prepared_size_cpu(const sdlf_operation *operation, const convolution *v);
void conv2d_nhwc_prepare_cpu(const cpu_calculator *cpu, const sdlf_operation *operation, const convolution *v);

/* Scratch space, in elements. */
im2col_space conv2d_nhwc_space_cpu(const sdlf_operation *operation, const convolution *v);
void conv2d_nhwc_forward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation,
                             const convolution_forward *forward);

/* What "auto" takes of a convolution all of whose activations are channels last, by itself: can it be done, elements of prepacked weights,
 * prepacking them, scratch space, and doing it; `packed` is NULL where they were not. Implicit products and groups of few channels
 * take weights that lie anywhere; others row-major ones. */
bool conv2d_nhwc_takes_cpu(const convolution *v);
int64_t conv2d_nhwc_automatic_size_cpu(const convolution *v);
void conv2d_nhwc_automatic_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v,
                                    const implicit_weights *w);
im2col_space conv2d_nhwc_automatic_space_cpu(const convolution *v, bool prepared);
void conv2d_nhwc_automatic_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward,
                                       const element *packed, const implicit_weights *w, element *scratch);

#endif
