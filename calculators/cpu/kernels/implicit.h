/* SPDX-License-Identifier: MIT */
/* Convolution of activations that are channels last, as a product that is never written out: rows are output pixels, columns
 * filters, and the inner dimension runs over the window's positions and, at each, over the channels, which lie side by side.
 *
 * Weights are laid out once in panels of a few vectors of filters: [group][panel][r][s][c][filter of the panel], filters
 * padded with zeros to whole vectors. Pixels are read where they lie; a position outside of the image reads a row of zeros.
 * With few channels these runs would be short: then the image is copied with its padding around it, each group's channels for themselves,
 * and a row of the window is one run (implicit_rows.h). Groups of few filters are taken together (implicit_panels.h). */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_H
#define SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_H

#include "calculators/cpu/kernels/im2col.h"

/* Windows of at most 128 runs. */
bool implicit_takes_cpu(const convolution *v);

/* With x row-major? Where a copy of it is made anyway. */
bool implicit_takes_row_major_cpu(const convolution *v);

/* Do groups of few filters fill most of a vector together? */
bool implicit_fills_cpu(const convolution *v);

/* Where weights lie: elements from one group, filter, channel, and row and column of the window to the next. */
typedef struct implicit_weights {
    const element *w;
    int64_t group, filter, channel, row, column;
} implicit_weights;

/* Row-major ones, (G K,C,R,S). */
static inline implicit_weights implicit_weights_of(const convolution *v, const element *w)
{
    return (implicit_weights){w, v->k * v->taps, v->taps, v->r_s, v->s, 1};
}

/* Elements of laid out weights, and laying them out. */
int64_t implicit_packed_size_cpu(const convolution *v);
void implicit_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const implicit_weights *w);

/* The forward pass; residual and y are channels last, and so is x, unless it is row_major. `packed` are the laid out weights,
 * forward->w is not read. Scratch space in elements, shared by all threads. */
int64_t implicit_scratch_size_cpu(const convolution *v, bool row_major);
void implicit_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed,
                          element *scratch, bool row_major);

#endif
