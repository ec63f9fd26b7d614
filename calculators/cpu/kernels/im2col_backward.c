/* SPDX-License-Identifier: MIT */
/* Convolution gradients by GEMM, for each image and group:
 *
 *     d patches (CRS, PQ) = w^T (CRS, K) dy (K, PQ), accumulated into dx by col2im
 *     dw (K, CRS) = sum over images of dy (K, PQ) patches^T (PQ, CRS)
 *
 * dx: a task computes some channels of one image. dw: a task computes some of its columns for a fixed share of the
 * images; the partial sums of the shares are added in order. 2 N K PQ CRS FLOPs each. */
#include "calculators/cpu/kernels/im2col.h"

enum { WANTED_TASKS = 32 };

/* ---- input gradient ---- */

typedef struct input_context {
    const convolution *v;
    const element *dy, *w;
    element *dx, *scratch;
    int64_t scratch_size, channels, blocks; /* channels of a task, tasks of an image */
} input_context;

static int64_t channels_of_task(const convolution *v)
{
    return cpu_max(1, cpu_min(v->c, PRODUCT_INNER / v->r_s));
}

im2col_space im2col_backward_input_space_cpu(const convolution *v)
{
    return (im2col_space){.each = channels_of_task(v) * v->r_s * PRODUCT_COLUMNS + PRODUCT_SCRATCH};
}

static void backward_input_block(void *argument, int64_t index, int thread)
{
    const input_context *all = argument;
    const convolution *v = all->v;
    int64_t image = index / all->blocks, channel = index % all->blocks * all->channels, g = image % v->groups;
    int64_t channels = cpu_min(all->channels, v->c - channel);
    element *patch = all->scratch + thread * all->scratch_size, *scratch = patch + all->scratch_size - PRODUCT_SCRATCH;
    element *dx = all->dx + image * v->c * v->h * v->w;
    memset(dx + channel * v->h * v->w, 0, (size_t)(channels * v->h * v->w) * sizeof *dx);
    for (int64_t column = 0; column < v->p_q; column += PRODUCT_COLUMNS) {
        patches piece = {.row = channel * v->r_s,
                         .rows = channels * v->r_s,
                         .column = column,
                         .columns = cpu_min(PRODUCT_COLUMNS, v->p_q - column)};
        product part = {.m = piece.rows,
                        .n = piece.columns,
                        .k = v->k,
                        .alpha = 1,
                        .a = all->w + g * v->k * v->taps + piece.row,
                        .a_row = 1,
                        .a_step = v->taps,
                        .b = all->dy + image * v->k * v->p_q + column,
                        .b_step = v->p_q,
                        .b_column = 1,
                        .c = patch,
                        .c_row = PRODUCT_COLUMNS};
        product_compute_cpu(&part, scratch);
        col2im_cpu(dx, patch, PRODUCT_COLUMNS, v, piece);
    }
}

void im2col_backward_input_cpu(const cpu_calculator *cpu, const convolution *v, const element *dy, const element *w,
                               element *dx, element *scratch)
{
    input_context all = {.v = v,
                         .dy = dy,
                         .w = w,
                         .dx = dx,
                         .scratch = scratch,
                         .scratch_size = im2col_backward_input_space_cpu(v).each,
                         .channels = channels_of_task(v)};
    all.blocks = cpu_divide_up(v->c, all.channels);
    cpu_parallel(cpu, v->n * v->groups * all.blocks, convolution_time(v), backward_input_block, &all);
}

/* ---- weight gradient ---- */

typedef struct weights_context {
    const convolution *v;
    const element *x, *dy;
    element *dw, *partial, *scratch;
    int64_t scratch_size, pieces, shares, images; /* pieces of the columns; shares of the images, `images` each */
} weights_context;

static weights_context weights_context_of(const convolution *v)
{
    weights_context all = {.v = v, .pieces = cpu_divide_up(v->taps, PRODUCT_COLUMNS)};
    int64_t shares = cpu_max(1, cpu_min(v->n, WANTED_TASKS / cpu_max(1, all.pieces * v->groups)));
    all.images = cpu_max(1, cpu_divide_up(v->n, shares));
    all.shares = cpu_max(1, cpu_divide_up(v->n, all.images));
    all.scratch_size = PRODUCT_COLUMNS * PRODUCT_INNER + PRODUCT_SCRATCH;
    return all;
}

im2col_space im2col_backward_weights_space_cpu(const convolution *v)
{
    weights_context all = weights_context_of(v);
    int64_t weights = v->groups * v->k * v->taps;
    return (im2col_space){.each = all.scratch_size,
                          .shared = cpu_round_up(all.shares > 1 ? all.shares * weights : 0, LANES)};
}

static void backward_weights_piece(void *argument, int64_t index, int thread)
{
    const weights_context *all = argument;
    const convolution *v = all->v;
    int64_t row = index % all->pieces * PRODUCT_COLUMNS, g = index / all->pieces % v->groups;
    int64_t share = index / all->pieces / v->groups, last = cpu_min((share + 1) * all->images, v->n);
    element *patch = all->scratch + thread * all->scratch_size, *scratch = patch + all->scratch_size - PRODUCT_SCRATCH;
    product part = {.m = v->k,
                    .n = cpu_min(PRODUCT_COLUMNS, v->taps - row),
                    .alpha = 1,
                    .a_row = v->p_q,
                    .a_step = 1,
                    .b = patch,
                    .b_step = 1,
                    .c = (all->shares > 1 ? all->partial + share * v->groups * v->k * v->taps : all->dw) +
                         g * v->k * v->taps + row,
                    .c_row = v->taps};
    for (int64_t n = share * all->images; n < last; n++) {
        for (int64_t column = 0; column < v->p_q; column += PRODUCT_INNER) {
            patches piece = {.row = row, .rows = part.n, .column = column};
            piece.columns = part.k = part.b_column = cpu_min(PRODUCT_INNER, v->p_q - column);
            im2col_cpu(patch, piece.columns, all->x + (n * v->groups + g) * v->c * v->h * v->w, v, piece);
            part.a = all->dy + (n * v->groups + g) * v->k * v->p_q + column;
            part.accumulate = n > share * all->images || column > 0;
            product_compute_cpu(&part, scratch);
        }
    }
}

static void add_shares(void *argument, int64_t index, int thread)
{
    const weights_context *all = argument;
    const convolution *v = all->v;
    int64_t weights = v->groups * v->k * v->taps, first = index * TASK_ELEMENTS;
    int64_t count = cpu_min(TASK_ELEMENTS, weights - first);
    element *dw = all->dw + first;
    (void)thread;
    memcpy(dw, all->partial + first, (size_t)count * sizeof *dw);
    for (int64_t share = 1; share < all->shares; share++) {
        const element *more = all->partial + share * weights + first;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dw[i] += more[i];
    }
}

void im2col_backward_weights_cpu(const cpu_calculator *cpu, const convolution *v, const element *x, const element *dy,
                                 element *dw, element *scratch)
{
    weights_context all = weights_context_of(v);
    int64_t weights = v->groups * v->k * v->taps;
    all.x = x;
    all.dy = dy;
    all.dw = dw;
    all.partial = scratch;
    all.scratch = scratch + im2col_backward_weights_space_cpu(v).shared;
    if (v->n == 0) {
        memset(dw, 0, (size_t)weights * sizeof *dw);
        return;
    }
    cpu_parallel(cpu, all.pieces * v->groups * all.shares, convolution_time(v), backward_weights_piece, &all);
    if (all.shares > 1)
        cpu_parallel(cpu, cpu_divide_up(weights, TASK_ELEMENTS), cpu_time_of_elements(all.shares * weights), add_shares,
                     &all);
}

/* ---- bias gradient ---- */

typedef struct bias_context {
    const convolution *v;
    const element *dy;
    element *db;
} bias_context;

static void backward_bias_filter(void *argument, int64_t k, int thread)
{
    const bias_context *all = argument;
    const convolution *v = all->v;
    double sum = 0;
    (void)thread;
    for (int64_t n = 0; n < v->n; n++) {
        sum += (double)sum_run(all->dy + (n * v->groups * v->k + k) * v->p_q, v->p_q);
    }
    all->db[k] = (element)sum;
}

void convolution_backward_bias_cpu(const cpu_calculator *cpu, const convolution *v, const element *dy, element *db)
{
    bias_context all = {.v = v, .dy = dy, .db = db};
    cpu_parallel(cpu, v->groups * v->k, cpu_time_of_elements(v->n * v->groups * v->k * v->p_q), backward_bias_filter,
                 &all);
}
