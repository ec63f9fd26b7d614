/* SPDX-License-Identifier: MIT */
/* Expansion and depthwise filtering of lines, for a panel of channels of an inverted residual. See inverted_lines.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_INVERTED_LINES_H
#define SDLF_CALCULATORS_CPU_KERNELS_INVERTED_LINES_H

#include "calculators/cpu/kernels/inverted_panel.h"

enum { INVERTED_MOST_VECTORS = 3 }; /* of a panel */

/* A panel: its channels and their weights. */
typedef struct inverted_channels {
    const inverted_block *block;
    int64_t vectors, width;
    const element *expand, *expand_bias, *filters, *filter_bias;
    int64_t channel[INVERTED_MOST_VECTORS]; /* the first of each vector */
} inverted_channels;

/* Expands line h of x, into its slot in the ring of kept lines. */
void inverted_expand_line_cpu(const inverted_channels *panel, const element *x, int64_t h, element *kept);

/* Computes a row of depthwise outputs, to y; line: the input of each window row, from the first padding column on. */
void inverted_filter_line_cpu(const inverted_channels *panel, const element *const *line, element *y);

#endif
