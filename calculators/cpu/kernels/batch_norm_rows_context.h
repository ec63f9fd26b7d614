/* SPDX-License-Identifier: MIT */
/* What the passes of row batch normalisation share: row partition and scratch space. See batch_norm_rows.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_BATCH_NORM_ROWS_CONTEXT_H
#define SDLF_CALCULATORS_CPU_KERNELS_BATCH_NORM_ROWS_CONTEXT_H

#include <math.h>

#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/batch_norm_rows.h"

enum { BLOCK_ELEMENTS = 1 << 15, LEAST_ROWS = 64, LEAST_BLOCKS = 16, LEAST_PERIOD = 128 };

typedef struct norm_rows {
    const sdlf_operation *operation;
    int64_t count, channels, period, block; /* in elements: total, row, period (whole rows), block (whole periods) */
    int64_t blocks, each;                   /* number of blocks; scratch elements of each thread */
    const element *x, *dy, *y_in;
    element *y;      /* dx in the backward pass; NULL: not wanted */
    element *slopes; /* dy times the activation's slope, where it is stored; else NULL */
    bool activates;  /* backward: there is an activation */
    bool clamps;     /* backward: it passes dy where y is in (low, most] */
    element low, most;
    double *sums;                      /* [block][2][channel] */
    element *a, *b, *c, *mean, *shift; /* per channel, repeated over a period */
    element *scratch;
} norm_rows;

static inline int64_t norm_rows_round_up(int64_t a, int64_t b)
{
    return cpu_divide_up(a, b) * b;
}

/* The representable value just below `x`: v < x if and only if v <= that. */
static inline element norm_rows_before(element x)
{
    return IS_FLOAT ? (element)nextafterf((float)x, -INFINITY) : (element)nextafter((double)x, -INFINITY);
}

static inline norm_rows norm_rows_of(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    norm_rows all = {.operation = operation, .x = x->data, .count = sdlf_tensor_count(x), .channels = x->shape.dim[1]};
    int64_t channels = cpu_max(1, all.channels);
    all.period = cpu_divide_up(LEAST_PERIOD, channels) * channels;
    int64_t share = cpu_max(cpu_divide_up(all.count, LEAST_BLOCKS), BLOCK_ELEMENTS / 4); /* enough blocks to share */
    all.block = norm_rows_round_up(cpu_min(share, cpu_max(BLOCK_ELEMENTS, LEAST_ROWS * channels)), all.period);
    all.blocks = cpu_divide_up(all.count, all.block);
    bool backward = operation->kind == SDLF_BATCH_NORM2D_BACKWARD;
    const sdlf_activation *activation = &operation->batch_norm.activation;
    all.activates = backward && activation->function != SDLF_IDENTITY;
    all.clamps = all.activates && activation_clamps(activation, &all.low, &all.most);
    if (all.clamps && activation->function == SDLF_CLIP) all.most = norm_rows_before(all.most);
    int64_t work = all.activates && !all.clamps
                       ? 2 * cpu_min(all.block, all.count)
                       : 0; /* g, and y or the values it is computed from, where it is recomputed */
    all.each = norm_rows_round_up(3 * all.period + work, LANES);
    return all;
}

static inline int64_t norm_rows_sums_bytes(const norm_rows *all)
{
    return all->blocks * 2 * all->channels * (int64_t)sizeof(double);
}

static inline void norm_rows_take_space(norm_rows *all, void *space)
{
    all->sums = space;
    all->a = (element *)((char *)space + norm_rows_sums_bytes(all));
    all->b = all->a + all->period;
    all->c = all->b + all->period;
    all->mean = all->c + all->period;
    all->shift = all->mean + all->period;
    all->scratch = all->shift + all->period;
}

/* Copies the first row of a period to its other rows. */
static inline void norm_rows_repeat(const norm_rows *all, element *values)
{
    for (int64_t j = all->channels; j < all->period; j++) values[j] = values[j - all->channels];
}

/* Reduces the sums of a period to one sum for each channel. */
static inline void norm_rows_fold(const norm_rows *all, double *to, const element *from)
{
    for (int64_t c = 0; c < all->channels; c++) {
        double sum = 0;
        for (int64_t j = c; j < all->period; j += all->channels) sum += (double)from[j];
        to[c] = sum;
    }
}

/* to = f((x - mean) a + b + residual), for `count` elements that start at the beginning of a row. */
void batch_norm_rows_scale_cpu(const norm_rows *all, element *to, const element *x, const element *residual,
                               int64_t count, const sdlf_activation *f);

#endif
