/* SPDX-License-Identifier: MIT */
/* Lines of a panel of channels between the convolutions of an inverted residual block: expanded, and filtered. See inverted_lines.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_INVERTED_LINES_H
#define SDLF_CALCULATORS_CPU_KERNELS_INVERTED_LINES_H

#include "calculators/cpu/kernels/inverted_panel.h"

enum { INVERTED_MOST_VECTORS = 3 }; /* of a panel */

/* A panel: its channels, and their weights. */
typedef struct inverted_channels {
    const inverted_block *block;
    int64_t vectors, width;
    const element *expand, *expand_bias, *filters, *filter_bias;
    int64_t channel[INVERTED_MOST_VECTORS]; /* the first of each vector */
} inverted_channels;

/* Line h of x, into its place among the kept ones. */
void inverted_expand_line_cpu(const inverted_channels *panel, const element *x, int64_t h, element *kept);

/* A row of outputs, to y; line: what each row of the window reads, from the first column of the padding on. */
void inverted_filter_line_cpu(const inverted_channels *panel, const element *const *line, element *y);

#endif
