/* SPDX-License-Identifier: MIT */
/* Scaled dot-product attention: softmax(scale q k^T + mask) v for every head, the scores of which are never stored as a
 * whole (Dao et al., "FlashAttention", 2022).
 *
 *   N samples; H heads of queries, G of keys and values (G divides H: head h reads h / (H / G)); L queries, S keys; D
 *   channels of a query and a key, E of a value. For query i of a head, over all keys j < S:
 *   score[j] = scale (q[i] . k[j]) + mask[i,j]
 *   max = the largest score, sum = the sum of exp(score[j] - max), p[j] = exp(score[j] - max) / sum
 *   y[i] = the sum of p[j] v[j]
 *
 * A mask of floats is added. Where one of bool is false, or true if `mask_hides`, the score is the number `unseen` instead,
 * SDLF_ATTENTION_UNSEEN without that operand: a query that sees nothing then sees all keys alike. With `causal` query i sees the keys j <= i + S - L alone, and L <= S. As in softmax, a
 * query is NaN throughout if one of its scores is NaN or plus infinity, or all of them are minus infinity. Infinities and
 * NaN of keys, values and dy may reach results across pairs that `causal` hides: kernels multiply them by zeros.
 *
 * max and sum are row-major. All others may have any strides in which the elements of the last axis follow one another,
 * and the mask, (N,H,L,S), any at all: a stride of 0 broadcasts it.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked by sdlf_operation_check. */
#ifndef SDLF_OPERATIONS_ATTENTION_H
#define SDLF_OPERATIONS_ATTENTION_H

#include <stdbool.h>

#define SDLF_ATTENTION_UNSEEN (-1267650600228229401496703205376.0) /* -2^100 */

typedef struct sdlf_attention_options {
    double scale;
    bool causal, mask_hides;
} sdlf_attention_options;

#endif
