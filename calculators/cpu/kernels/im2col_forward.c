/* SPDX-License-Identifier: MIT */
/* Convolution forward by im2col and GEMM: y (K, PQ) = w (K, CRS) patches (CRS, PQ), for each image and group.
 *
 * A task computes some output columns of one image and group. It materialises PRODUCT_INNER rows of the im2col matrix
 * at a time, which stay in the second-level cache (0.4 MB), and multiplies all filters with them. 2 K PQ CRS FLOPs;
 * writing the matrix costs 1 / K of the multiplications' loads. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/im2col.h"

im2col_space im2col_forward_space_cpu(const convolution *v)
{
    int64_t patch_elements = im2col_is_plain_cpu(v) ? 0 : PRODUCT_COLUMNS * cpu_min(v->taps, PRODUCT_INNER);
    return (im2col_space){.each = cpu_round_up(patch_elements, LANES) + PRODUCT_SCRATCH};
}

typedef struct context {
    const convolution_forward *forward;
    element *scratch;
    int64_t scratch_size, pieces;
} context;

/* The epilogue: bias, one for each row, and activation. */
static void finish(const convolution_forward *forward, element *y, const element *bias, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++, y += forward->v.p_q) {
        if (bias) {
            element plus = bias[i];
#pragma omp simd
            for (int64_t j = 0; j < columns; j++) y[j] += plus;
        }
        activate_cpu(y, y, columns, &forward->activation);
    }
}

static void forward_piece(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    const convolution_forward *forward = all->forward;
    const convolution *v = &forward->v;
    int64_t column = index % all->pieces * PRODUCT_COLUMNS, image = index / all->pieces, g = image % v->groups;
    int64_t columns = cpu_min(PRODUCT_COLUMNS, v->p_q - column), start = image * v->k * v->p_q + column;
    bool plain = im2col_is_plain_cpu(v);
    const element *x = forward->x + image * v->c * v->h * v->w;
    element *patch = all->scratch + thread * all->scratch_size, *scratch = patch + all->scratch_size - PRODUCT_SCRATCH;
    if (forward->residual && forward->residual != forward->y) {
        for (int64_t i = 0; i < v->k; i++) {
            memcpy(forward->y + start + i * v->p_q, forward->residual + start + i * v->p_q,
                   (size_t)columns * sizeof *x);
        }
    }
    for (int64_t i = 0; i < v->k && v->taps == 0 && !forward->residual; i++) /* nothing to sum: no product writes y */
        memset(forward->y + start + i * v->p_q, 0, (size_t)columns * sizeof *x);
    product part = {.m = v->k,
                    .n = columns,
                    .alpha = 1,
                    .a_row = v->taps,
                    .a_step = 1,
                    .b_step = plain ? v->p_q : PRODUCT_COLUMNS,
                    .b_column = 1,
                    .c = forward->y + start,
                    .c_row = v->p_q};
    for (int64_t row = 0; row < v->taps; row += PRODUCT_INNER) {
        part.k = cpu_min(PRODUCT_INNER, v->taps - row);
        part.accumulate = row > 0 || forward->residual;
        part.a = forward->w + g * v->k * v->taps + row;
        part.b = plain ? x + row * v->p_q + column : patch;
        if (!plain) {
            im2col_cpu(patch, PRODUCT_COLUMNS, x, v,
                       (patches){.row = row, .rows = part.k, .column = column, .columns = columns});
        }
        product_compute_cpu(&part, scratch);
    }
    finish(forward, forward->y + start, forward->bias ? forward->bias + g * v->k : NULL, v->k, columns);
}

void im2col_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, element *scratch)
{
    const convolution *v = &forward->v;
    context all = {.forward = forward,
                   .scratch = scratch,
                   .scratch_size = im2col_forward_space_cpu(v).each,
                   .pieces = cpu_divide_up(v->p_q, PRODUCT_COLUMNS)};
    cpu_parallel(cpu, v->n * v->groups * all.pieces, convolution_time(v), forward_piece, &all);
}
