/* SPDX-License-Identifier: MIT */
/* How the gradient by the weights is cut into tasks and put together, channels last; what conv2d_nhwc_weights.c and winograd_weights.c
 * share.
 *
 * A task adds up one share of the output pixels, for one part of a group's filters, into sums of its own. How many shares and parts there
 * are follows from the shapes; the sums of all shares are added in order when dw is written. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_WEIGHTS_NHWC_H
#define SDLF_CALCULATORS_CPU_KERNELS_WEIGHTS_NHWC_H

#include "calculators/cpu/kernels/direct_conv2d.h"

typedef struct weights_nhwc {
    const convolution_backward *backward;
    int64_t shares, parts; /* of what is added up; of a group's filters, whole vectors each */
    int64_t vectors;       /* of a group's filters */
    int64_t sums_size;     /* of a share of a group: [what is summed][channel][filter, in whole vectors] */
    element *sums;         /* [group][share] */
    element *scratch;      /* of each thread */
    int64_t scratch_size;
} weights_nhwc;

/* `units`: what can be shared; `each`: elements of the sums of a channel and a filter. */
weights_nhwc weights_nhwc_of_cpu(const convolution *v, int64_t units, int64_t each);

/* The first vector of filters of part `index`; of part `parts`, the number of all. */
static inline int64_t weights_nhwc_start(const weights_nhwc *all, int64_t index)
{
    return index * all->vectors / all->parts;
}

/* c (rows, count) = [c +] a^T b over k rows: a's are a_step apart, b's b_step, c's c_row. c and b have whole vectors of columns. */
static inline void weights_nhwc_add(element *c, int64_t c_row, const element *a, int64_t a_step, const element *b,
                                    int64_t b_step, int64_t rows, int64_t count, int64_t k, bool accumulate)
{
    product part = {.m = rows,
                    .n = count,
                    .k = k,
                    .alpha = 1,
                    .accumulate = accumulate,
                    .padded = true,
                    .a = a,
                    .b = b,
                    .c = c,
                    .a_row = 1,
                    .a_step = a_step,
                    .b_step = b_step,
                    .b_column = 1,
                    .c_row = c_row};
    product_compute_cpu(&part, NULL);
}

/* ---- the ways that have a file of their own: how it is cut, a task of sums, a task that writes dw ---- */

/* 3x3 windows by F(2x2,3x3): 16 products instead of 36. */
bool winograd_weights_takes_cpu(const convolution *v);
weights_nhwc winograd_weights_of_cpu(const convolution *v);
void winograd_weights_share_cpu(void *context, int64_t index, int thread);
/* All shares of one vector of filters of a group: into dw. */
void winograd_weights_write_cpu(void *context, int64_t index, int thread);

/* One filter a channel: sums are [tap][channel]. */
weights_nhwc depthwise_weights_of_cpu(const convolution *v);
void depthwise_weights_share_cpu(void *context, int64_t index, int thread);
void depthwise_weights_write_cpu(void *context, int64_t index, int thread);

#endif
