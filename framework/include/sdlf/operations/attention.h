/* SPDX-License-Identifier: MIT */
/* Scaled dot-product attention: softmax(scale q k^T + mask) v for every head, without storing the whole score matrix
 * (Dao et al., "FlashAttention", 2022).
 *
 * N samples; H query heads, G key/value heads (G divides H: head h reads h / (H / G)); L queries, S keys; D channels of
 * a query and a key, E of a value. For query i of a head, over all keys j < S:
 *   score[j] = scale (q[i] . k[j]) + mask[i,j]
 *   max = largest score, sum = sum of exp(score[j] - max), p[j] = exp(score[j] - max) / sum
 *   y[i] = sum of p[j] v[j]
 *
 * A float mask is added. Where a bool mask is false (or true, if `mask_hides`), `unseen` replaces the score, or
 * SDLF_ATTENTION_UNSEEN if that operand is absent; a query whose keys are all masked attends to all of them equally.
 * With `causal`, query i attends only to keys j <= i + S - L, and L <= S. As in softmax, a query's whole output is NaN
 * if one of its scores is NaN or plus infinity, or all are minus infinity. Infinities and NaN in keys, values and dy
 * may reach results across pairs that `causal` masks: kernels multiply them by zeros.
 *
 * max and sum are row-major. All other operands may have any strides if the elements of the last axis are contiguous.
 * The mask, (N,H,L,S), may have any strides at all: a stride of 0 broadcasts it.
 *
 * attention_forward: y = softmax(scale q k^T + mask) v for every head.
 *   in: q (N,H,L,D), k (N,G,S,D), v (N,G,S,E), mask? (N,H,L,S) T or bool, unseen? (1) T
 *   out: y (N,H,L,E), max? (N,H,L), sum? (N,H,L)
 *
 * attention_backward: with p = exp(scores - max) / sum, ds = p (dy v^T - sum over E of dy y): dv = p^T dy, dq = scale ds k,
 * dk = scale ds^T q. dk and dv of a key/value head are summed over the query heads that read it.
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
