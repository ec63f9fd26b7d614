/* SPDX-License-Identifier: MIT */
/* Scaled dot-product attention: softmax(scale q k^T + mask) v for every head, the scores of which are never stored as a
 * whole (Dao et al., "FlashAttention", 2022).
 *
 *   N samples, H heads of queries, G of keys and values (G divides H: head h reads h / (H / G)), T queries, S keys, D
 *   channels of a query and a key, E of a value. For query i of a head:
 *   score[j] = scale (q[i] . k[j]) + mask[i,j], j < S; max = the largest of them, sum = the sum over j of exp(score[j] - max);
 *   p[j] = exp(score[j] - max) / sum;
 *   y[i] = sum over j of p[j] v[j]
 *
 * A mask is of T, or bool: where that is false, the score is SDLF_ATTENTION_UNSEEN instead, so a query that sees nothing
 * sees all keys alike. With `causal` query i sees keys j <= i + S - T alone (and T <= S). As in softmax, a query is NaN
 * throughout if one of its scores is NaN or plus infinity, or all that it sees are minus infinity.
 *
 * All operands but max and sum may have any strides in which the elements of the last axis follow one another; the mask, which is
 * of shape (N,H,T,S), any at all: a stride of 0 broadcasts it.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked by sdlf_operation_check. */
#ifndef SDLF_OPERATIONS_ATTENTION_H
#define SDLF_OPERATIONS_ATTENTION_H

#include <stdbool.h>

#define SDLF_ATTENTION_UNSEEN (-1267650600228229401496703205376.0) /* -2^100 */

typedef struct sdlf_attention_options {
    float scale;
    bool causal;
} sdlf_attention_options;

#endif
