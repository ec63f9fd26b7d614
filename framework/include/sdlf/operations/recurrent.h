/* SPDX-License-Identifier: MIT */
/* Recurrent networks over a whole sequence: for one step after the other, the matrix product with the previous state,
 * and the cell. The matrix products with the inputs do not depend on the state and are one gemm before this operation.
 *
 *   T steps, N samples, H units; a row of gates has G H elements, gate after gate (lstm: i, f, g, o; gru: r, z, n). h and c are the
 *   state before a step, h' and c' the state after it; the initial state is h0 and c0, or zeros if they are absent. With
 *   b = weight h + bias (zeros without a bias) and the row of a for the step:
 *   lstm: i, f, o = sigmoid(a + b), g = tanh(a + b); c' = f c + i g, h' = o tanh(c')
 *   gru:  r, z = sigmoid(a + b), n = tanh(a + r q), where q is b's third gate; h' = n + z (h - n)
 *   y = h' of every step.
 *
 * Step s is at index s of the first axis of all operands; with `reverse`, at index T - 1 - s.
 *
 * a, y, dy, h0 and c0 may have any strides if the elements of the last axis are contiguous; all others are row-major.
 *
 * lstm_forward: all steps of a sequence. gates: i, f, g and o; cells: c' of every step.
 *   in: a (T,N,4H), weight (4H,H), bias? (4H), h0? (N,H), c0? (N,H)
 *   out: y (T,N,H), gates? (T,N,4H), cells? (T,N,H)
 * 8 T N H H operations.
 *
 * lstm_backward: dh = dy plus the dh passed back by the following step, if any; dc is that passed back by the following step, or
 * dcn at the last one. dc' = dc + dh o (1 - tanh(c')^2); da = (dc' g i (1 - i), dc' c f (1 - f), dc' i (1 - g^2), dh tanh(c') o (1 - o)).
 * A step passes back dh = da weight and dc = dc' f; the first one returns them as dh0 and dc0. dy (1,N,H) is that of the last step only.
 *   in: gates (T,N,4H), weight (4H,H), cells (T,N,H), c0? (N,H), dy (T,N,H) or (1,N,H), dcn? (N,H)
 *   out: da (T,N,4H), dh0? (N,H), dc0? (N,H)
 *
 * gru_forward: all steps of a sequence. gates: r, z and n; products: q of every step.
 *   in: a (T,N,3H), weight (3H,H), bias? (3H), h0? (N,H)
 *   out: y (T,N,H), gates? (T,N,3H), products? (T,N,H)
 * 6 T N H H operations.
 *
 * gru_backward: with dh as in lstm_backward: dn = dh (1 - z) (1 - n^2); da = (dn q r (1 - r), dh (h - n) z (1 - z), dn); db = da with
 * dn r instead of dn; a step passes back dh = db weight + dh z.
 *   in: gates (T,N,3H), weight (3H,H), products (T,N,H), y (T,N,H), h0? (N,H), dy (T,N,H) or (1,N,H)
 *   out: da (T,N,3H), db (T,N,3H), dh0? (N,H)
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked by sdlf_operation_check. */
#ifndef SDLF_OPERATIONS_RECURRENT_H
#define SDLF_OPERATIONS_RECURRENT_H

#include <stdbool.h>

typedef struct sdlf_recurrence_options {
    bool reverse;
} sdlf_recurrence_options;

#endif
