/* SPDX-License-Identifier: MIT */
/* The partition of the NHWC weight gradient into tasks, and its reduction; for conv2d_nhwc_wgrad.c and
 * winograd_weights.c.
 *
 * A task accumulates one share of the output pixels, for one part of a group's filters, into its own partial sums. The
 * numbers of shares and parts follow from the shapes; the sums of all shares are added in order when dw is written. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_WEIGHTS_NHWC_H
#define SDLF_CALCULATORS_CPU_KERNELS_WEIGHTS_NHWC_H

#include "calculators/cpu/kernels/direct_conv2d.h"

typedef struct weights_nhwc {
    const convolution_backward *backward;
    int64_t shares, parts; /* of the reduction; of a group's filters, whole vectors each */
    int64_t vectors;       /* of a group's filters */
    int64_t sums_size;     /* of a share of a group: [unit][channel][filter, in whole vectors] */
    element *sums;         /* [group][share] */
    element *scratch;      /* of each thread */
    int64_t scratch_size;
} weights_nhwc;

/* `units`: what can be divided into shares; `each`: elements of the sums of a channel and a filter. */
weights_nhwc weights_nhwc_of_cpu(const convolution *v, int64_t units, int64_t each);

/* The first vector of filters of part `index`; for `index` = parts, the total number of vectors. */
static inline int64_t weights_nhwc_start(const weights_nhwc *all, int64_t index)
{
    return index * all->vectors / all->parts;
}

/* c (rows, count) = [c +] a^T b over k rows of a and b, with row strides a_step, b_step, c_row; whole vectors of columns. */
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

/* ---- separate algorithms: each has a partition, a task that sums, and a task that writes dw ---- */

/* 3x3 windows by F(2x2,3x3): 16 multiplications instead of 36. */
bool winograd_weights_takes_cpu(const convolution *v);
weights_nhwc winograd_weights_of_cpu(const convolution *v);
void winograd_weights_share_cpu(void *context, int64_t index, int thread);
/* Sums all shares of one vector of filters of a group, into dw. */
void winograd_weights_write_cpu(void *context, int64_t index, int thread);

/* Depthwise with one filter for each channel: sums are [tap][channel]. */
weights_nhwc depthwise_weights_of_cpu(const convolution *v);
void depthwise_weights_share_cpu(void *context, int64_t index, int thread);
void depthwise_weights_write_cpu(void *context, int64_t index, int thread);

#endif
