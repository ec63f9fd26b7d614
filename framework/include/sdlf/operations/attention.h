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
 * SDLF_ATTENTION_UNSEEN without that operand: a query that sees nothing then sees all keys alike. With `causal` query i
 * sees only the keys j <= i + S - L, and L <= S. As in softmax, a query is NaN throughout if one of its scores is NaN or
 * plus infinity, or all of them are minus infinity. Infinities and
 * NaN of keys, values and dy may reach results across pairs that `causal` hides: kernels multiply them by zeros.
 *
 * max and sum are row-major. All others may have any strides in which the elements of the last axis follow one another,
 * and the mask, (N,H,L,S), any at all: a stride of 0 broadcasts it.
 *
 * attention_forward: y = softmax(scale q k^T + mask) v for every head.
 *   in: q (N,H,L,D), k (N,G,S,D), v (N,G,S,E), mask? (N,H,L,S) T or bool, unseen? (1) T
 *   out: y (N,H,L,E), max? (N,H,L), sum? (N,H,L)
 *
 * attention_backward: with p = exp(scores - max) / sum, ds = p (dy v^T - sum over E of dy y): dv = p^T dy, dq = scale ds k,
 * dk = scale ds^T q, the latter two of a head of keys summed over the heads of queries that read it.
 *   in: q, k, v, mask?, y, max, sum, dy   out: dq (N,H,L,D), dk (N,G,S,D), dv (N,G,S,E)
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
