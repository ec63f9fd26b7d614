/* SPDX-License-Identifier: MIT */
/* Convolution of NHWC activations by implicit GEMM: the rows of the product are output pixels, the columns filters, and
 * the k dimension runs over the window's positions and, at each, over the contiguous channels.
 *
 * Weights are packed once into panels of a few vectors of filters: [group][panel][r][s][c][filter of the panel],
 * filters padded with zeros to whole vectors. Pixels are read in place; a position outside of the image reads a row of
 * zeros. With few channels these runs would be short: then the image is copied with its padding, one group at a time,
 * and a row of the window is one run (implicit_rows.h). Groups of few filters are merged (implicit_panels.h). */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_H
#define SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_H

#include "calculators/cpu/kernels/im2col.h"

/* Supports windows of at most 128 runs. */
bool implicit_takes_cpu(const convolution *v);

/* True if x may also be row-major (NCHW): the case if it is copied anyway. */
bool implicit_takes_row_major_cpu(const convolution *v);

/* True if merged groups of few filters fill most of a vector. */
bool implicit_fills_cpu(const convolution *v);

/* The strides of the weights, in elements: between groups, filters, channels, and rows and columns of the window. */
typedef struct implicit_weights {
    const element *w;
    int64_t group, filter, channel, row, column;
} implicit_weights;

/* The strides of row-major weights, (G K,C,R,S). */
static inline implicit_weights implicit_weights_of(const convolution *v, const element *w)
{
    return (implicit_weights){w, v->k * v->taps, v->taps, v->r_s, v->s, 1};
}

/* Elements of packed weights, and packing them. */
int64_t implicit_packed_size_cpu(const convolution *v);
void implicit_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const implicit_weights *w);

/* The forward pass; residual and y are NHWC, and so is x, unless it is row_major. `packed` holds the packed weights,
 * forward->w is not read. Scratch space in elements, shared by all threads. */
int64_t implicit_scratch_size_cpu(const convolution *v, bool row_major);
void implicit_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed,
                          element *scratch, bool row_major);

#endif
