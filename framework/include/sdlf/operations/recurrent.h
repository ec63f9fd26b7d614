/* SPDX-License-Identifier: MIT */
/* Recurrent networks over a whole sequence: the products with the states before the steps, and the cells, one step after the
 * other. The products with the inputs, which need no state, are a gemm before it.
 *
 *   T steps, N samples, H units; a row of gates is of G H numbers, gate after gate (lstm: i, f, g, o; gru: r, z, n). h and c are the
 *   state before a step, h' and c' the one behind it; the first is h0 and c0, zeros where they are absent. With
 *   b = weight h + bias (no bias: zeros) and a's row of the step:
 *   lstm: i, f, o = sigmoid(a + b), g = tanh(a + b); c' = f c + i g, h' = o tanh(c')
 *   gru:  r, z = sigmoid(a + b), n = tanh(a + r q), q being b's third gate; h' = n + z (h - n)
 *   y = h' of every step.
 *
 * Step s stands at place s of the first axis of all operands; with `reverse` at place T - 1 - s.
 *
 * a, y, dy and h0 and c0 may have any strides in which the elements of the last axis follow one another; all others are row-major.
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
