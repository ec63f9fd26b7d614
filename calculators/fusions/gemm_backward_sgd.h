/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd: a fully connected layer's backward pass and its SGD update in one pass over the weights; each tile
 * is read and written once: dx = (dy w) f'(x), with the w before the update; then w is updated with g = dy^T x and b
 * with g = the sum of dy over n, by the rule `sgd` (see sdlf_sgd_rule). x is the output of f, f being `activation` (one
 * whose f' is computed from its output; identity: f' = 1). bv is present if and only if b and v are.
 *   in: x (N,I), dy (N,U), rate (1) T   out: w! (U,I), v!? (U,I), dx? (N,I), b!? (U), bv!? (U)
 *
 * It replaces these operations; all but the gradient of w and its update are optional. That gradient is never stored,
 * and a small batch's step has four kernels fewer.
 *   gemm dy w -> da;  activation_backward x, da -> dx;  gemm dy^T x -> dw;  sgd_update dw -> w, v;
 *   reduce sum dy -> db;  sgd_update db -> b, bv */
#ifndef SDLF_CALCULATORS_FUSIONS_GEMM_BACKWARD_SGD_H
#define SDLF_CALCULATORS_FUSIONS_GEMM_BACKWARD_SGD_H

#include <assert.h>

#include <sdlf/fusion.h>

#include "calculators/fusions/options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gemm_backward_sgd_options {
    sdlf_sgd_rule sgd;
    sdlf_activation activation;
} FUSION_OPTIONS gemm_backward_sgd_options;

static_assert(sizeof(gemm_backward_sgd_options) <= sizeof((sdlf_operation *)0)->fused.options,
              "the options fit into the room that an operation has for them");

extern const sdlf_fusion sdlf_gemm_backward_sgd_fusion;

static inline gemm_backward_sgd_options *gemm_backward_sgd_options_in(sdlf_operation *fused)
{
    return (gemm_backward_sgd_options *)(void *)fused->fused.options;
}

static inline const gemm_backward_sgd_options *gemm_backward_sgd_options_of(const sdlf_operation *fused)
{
    return (const gemm_backward_sgd_options *)(const void *)fused->fused.options;
}

#ifdef __cplusplus
}
#endif
#endif
