/* SPDX-License-Identifier: MIT */
/* A panel of the channels between the first two convolutions of an inverted residual block, NHWC: expanded and filtered
 * row by row, so that the intermediate stays in the first-level cache. See inverted_panel.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_INVERTED_PANEL_H
#define SDLF_CALCULATORS_CPU_KERNELS_INVERTED_PANEL_H

#include "calculators/cpu/kernels/convolution.h"

/* The maximum rows of a window; the value of `made` if no line is kept. */
enum { INVERTED_MOST_LINES = 32, INVERTED_NONE_MADE = -1 };

/* Shared by all tasks. */
typedef struct inverted_block {
    convolution v; /* the depthwise convolution */
    int64_t c;     /* channels of x; 0: no expansion, x is the depthwise input */
    const element *packed;
    sdlf_activation expanded, filtered;
    int64_t vectors, panels; /* of the channels, and the number of panels that share them */
    int64_t lines, columns;  /* of an expanded image that are kept: as many as one row of outputs reads */
    int64_t left, inside;    /* columns before the image; columns inside it */
} inverted_block;

/* v: the depthwise convolution. c: see inverted_block. */
inverted_block inverted_block_cpu(const convolution *v, int64_t c);

/* Elements of the packed weights and biases, and packing them; a bias may be NULL. */
int64_t inverted_packed_size_cpu(const inverted_block *block);
void inverted_pack_cpu(element *packed, const inverted_block *block, const element *expand, const element *expand_bias,
                       const element *filters, const element *filter_bias);

/* Elements of one panel's kept lines, for the widest panel. They must be zero at first. */
int64_t inverted_kept_size_cpu(const inverted_block *block);

/* Computes rows [first, last) of one image's outputs, for one panel of channels; y starts at row `first`. `made` is the
 * first line of x that has not been expanded into the kept lines; returns its new value. */
int64_t inverted_panel_cpu(const inverted_block *block, int64_t panel, const element *x, element *kept, int64_t made,
                           int64_t first, int64_t last, element *y);

#endif
