/* SPDX-License-Identifier: MIT */
/* A panel of the channels between the first two convolutions of an inverted residual block, channels last: expanded and filtered row by
 * row, so that what lies between stays in the first-level cache. See inverted_panel.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_INVERTED_PANEL_H
#define SDLF_CALCULATORS_CPU_KERNELS_INVERTED_PANEL_H

#include "calculators/cpu/kernels/convolution.h"

/* Rows of a window at most; what `made` is where no line was kept. */
enum { INVERTED_MOST_LINES = 32, INVERTED_NONE_MADE = -1 };

/* What all tasks share. */
typedef struct inverted_block {
    convolution v; /* the depthwise one */
    int64_t c;     /* channels of x; 0: what lies between is x */
    const element *packed;
    sdlf_activation expanded, filtered;
    int64_t vectors, panels; /* of the channels, and how many panels these are spread over */
    int64_t lines, columns;  /* of an expanded image that are kept: as many as a row of outputs reaches */
    int64_t left, inside;    /* of these columns: how many lie before the image, and how many in it */
} inverted_block;

/* v: the depthwise convolution. c: see there. */
inverted_block inverted_block_cpu(const convolution *v, int64_t c);

/* Elements of the laid out weights and biases, and laying them out; a bias may be NULL. */
int64_t inverted_packed_size_cpu(const inverted_block *block);
void inverted_pack_cpu(element *packed, const inverted_block *block, const element *expand, const element *expand_bias,
                       const element *filters, const element *filter_bias);

/* Elements that one panel keeps: lines of the widest one. They must begin with zeros. */
int64_t inverted_kept_size_cpu(const inverted_block *block);

/* Rows [first, last) of one image's outputs, channels of one panel: y begins with row `first`. `made` says which row of x the kept lines
 * lack, that is how far they came before; what is returned is how far they are now. */
int64_t inverted_panel_cpu(const inverted_block *block, int64_t panel, const element *x, element *kept, int64_t made,
                           int64_t first, int64_t last, element *y);

#endif
