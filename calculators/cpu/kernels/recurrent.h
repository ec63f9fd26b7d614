/* SPDX-License-Identifier: MIT */
/* What the kernels of lstm and gru share. See recurrent.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_RECURRENT_H
#define SDLF_CALCULATORS_CPU_KERNELS_RECURRENT_H

#include "calculators/cpu/kernels/exponential.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/lanes.h"

/* A tile of sums in registers: rows, and vectors of columns. */
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
    int64_t padded;                       /* H as whole vectors: the length of a row of states */
    /* The weight in panels, each with the columns that a member of the team takes at once: forward the gates of LANES units, backward up
     * to RECURRENT_VECTORS vectors of units. A panel has `depth` steps of its vectors: one for each factor of a sum. */
    const element *panels;
    /* Operands of the forward pass; NULL: absent. Elements from step to step, and from row to row, of those that may have gaps. */
    const element *a, *bias;
    element *y, *gates_kept, *other_kept;
    int64_t a_step, a_row, y_step, y_row;
    int64_t depth, panel_count, task_panels;
    element *state[2]; /* (N,padded): h before and behind a step, by turns; backward [0]: dh */
    element *cells;    /* (N,padded): c; backward dc, or of gru dh z */
} recurrent;

/* A member's share: rows and panels. */
typedef struct recurrent_share {
    int64_t first_row, end_row, first_panel, end_panel;
} recurrent_share;

/* sums[r][v] = sum over p < depth of x[r x_row + p] panel[p vectors + v], vectors of LANES each; r < rows <= RECURRENT_ROWS. Each sum
 * adds in the order of p, whatever rows are. */
typedef struct recurrent_tile {
    int64_t rows, vectors, depth;
    const element *panel, *x;
    int64_t x_row;
    const element *ahead; /* as many vectors as `depth`, which are fetched meanwhile */
} recurrent_tile;
void recurrent_product_cpu(element *sums, const recurrent_tile *tile);
/* The same of one row and two panels, one behind the other. */
void recurrent_product_of_two_cpu(element *sums, const recurrent_tile *tile);

/* Step s, of a share. */
void recurrent_step_forward_cpu(const recurrent *r, const recurrent_share *share, int64_t s);
/* The gradients of what step s got; and what it leaves for the step before it. The latter needs the former of all shares. */
void recurrent_step_gradient_cpu(const recurrent *r, const recurrent_share *share, int64_t s);
void recurrent_step_back_cpu(const recurrent *r, const recurrent_share *share, int64_t s);

/* Rows of the next tile where `left` are left: tiles are of about equal height. */
static inline int64_t recurrent_tile_rows(int64_t left)
{
    return cpu_divide_up(left, cpu_divide_up(left, RECURRENT_ROWS));
}

/* Where step s stands. */
static inline int64_t recurrent_place(const recurrent *r, int64_t s)
{
    return r->operation->recurrence.reverse ? r->steps - 1 - s : s;
}

/* Row n of step s of an operand (T,N,...). */
static inline element *recurrent_row(const recurrent *r, const sdlf_tensor *x, int64_t s, int64_t n)
{
    return (element *)x->data + recurrent_place(r, s) * x->stride[0] + n * x->stride[1];
}

/* 1 / x of 1 to 2^127, within 2 units in the last place: an estimate of 14 bits and a step of Newton's, where a division of the widest
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
