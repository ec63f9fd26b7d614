/* SPDX-License-Identifier: MIT */
/* What the lstm and gru kernels share. See recurrent.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_RECURRENT_H
#define SDLF_CALCULATORS_CPU_KERNELS_RECURRENT_H

#include "calculators/cpu/kernels/exponential.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/lanes.h"

/* The register tile: rows, and vectors of columns. */
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
enum { RECURRENT_ROWS = 6 };
#else
enum { RECURRENT_ROWS = 2 };
#endif
enum { RECURRENT_VECTORS = 4 };

typedef struct recurrent {
    const sdlf_operation *operation;
    bool is_lstm, is_backward;
    int64_t gates, steps, samples, units; /* G, T, N, H */
    int64_t padded;                       /* H rounded up to whole vectors: the length of a row of states */
    /* The packed weight, in panels, each with the columns that a thread computes at once: forward the gates of LANES
     * units, backward up to RECURRENT_VECTORS vectors of units. A panel has `depth` rows, one for each k-step. */
    const element *panels;
    /* Operands of the forward pass; NULL: absent. Step and row strides, in elements, where there may be gaps. */
    const element *a, *bias;
    element *y, *gates_kept, *other_kept;
    int64_t a_step, a_row, y_step, y_row;
    int64_t depth, panel_count, task_panels;
    element *state[2]; /* (N,padded): h before and after a step, alternating; backward [0]: dh */
    element *cells;    /* (N,padded): c; backward dc, or for gru dh z */
} recurrent;

/* One thread's share: rows and panels. */
typedef struct recurrent_share {
    int64_t first_row, end_row, first_panel, end_panel;
} recurrent_share;

/* sums[r][v] = sum over p < depth of x[r x_row + p] panel[p vectors + v], vectors of LANES each; r < rows <=
 * RECURRENT_ROWS. Each accumulator adds in the order of p, for any number of rows. */
typedef struct recurrent_tile {
    int64_t rows, vectors, depth;
    const element *panel, *x;
    int64_t x_row;
    const element *ahead; /* `depth` vectors to prefetch during the product */
} recurrent_tile;
void recurrent_product_cpu(element *sums, const recurrent_tile *tile);
/* The same for one row and two consecutive panels. */
void recurrent_product_of_two_cpu(element *sums, const recurrent_tile *tile);

/* Step s of the forward pass, for a share. */
void recurrent_step_forward_cpu(const recurrent *r, const recurrent_share *share, int64_t s);
/* The gate gradients of step s; then those passed to the step before, which depend on the former of all shares. */
void recurrent_step_gradient_cpu(const recurrent *r, const recurrent_share *share, int64_t s);
void recurrent_step_back_cpu(const recurrent *r, const recurrent_share *share, int64_t s);

/* Rows of the next tile if `left` remain: tiles have approximately equal height. */
static inline int64_t recurrent_tile_rows(int64_t left)
{
    return cpu_divide_up(left, cpu_divide_up(left, RECURRENT_ROWS));
}

/* The position of step s in the sequence. */
static inline int64_t recurrent_place(const recurrent *r, int64_t s)
{
    return r->operation->recurrence.reverse ? r->steps - 1 - s : s;
}

/* Row n of step s of an operand (T,N,...). */
static inline element *recurrent_row(const recurrent *r, const sdlf_tensor *x, int64_t s, int64_t n)
{
    return (element *)x->data + recurrent_place(r, s) * x->stride[0] + n * x->stride[1];
}

/* 1 / x for x in [1, 2^127], within 2 ulp: an estimate of 14 bits and a Newton step, since a division of the widest
 * vectors takes 16 cycles. */
static inline __attribute__((always_inline)) vector reciprocal_lanes(vector x)
{
#if defined(__AVX512F__) && SDLF_VECTOR_BYTES == 64 && SDLF_LANES == 16
    vector y = (vector)_mm512_rcp14_ps((__m512)x);
    return y + y * (1 - x * y);
#else
    return 1 / x;
#endif
}

static inline __attribute__((always_inline)) vector sigmoid_lanes(vector x)
{
#if SDLF_VECTOR_BYTES / SDLF_LANES == 4
    return reciprocal_lanes(1 + exponential_lanes(-x));
#else
    for (int i = 0; i < LANES; i++) x[i] = 1 / (1 + exponential(-x[i]));
    return x;
#endif
}

/* hyperbolic_tangent of each lane. */
static inline __attribute__((always_inline)) vector tangent_lanes(vector x)
{
#if SDLF_VECTOR_BYTES / SDLF_LANES == 4
    const lanes_mask sign = (lanes_mask)broadcast((element)-0.0);
    vector size = (vector)((lanes_mask)x & ~sign), s = x * x;
    vector large = 1 - 2 * reciprocal_lanes(exponential_lanes(2 * size) + 1);
    vector small = s * (element)-6.11268403e-3 + (element)2.10097283e-2;
    small = small * s - (element)5.38539961e-2;
    small = small * s + (element)1.33327946e-1;
    small = small * s - (element)3.33333284e-1;
    small = size * (1 + small * s);
    return (vector)((lanes_mask)choose(size < (element)0.625, small, large) | ((lanes_mask)x & sign));
#else
    for (int i = 0; i < LANES; i++) x[i] = hyperbolic_tangent(x[i]);
    return x;
#endif
}

#endif
