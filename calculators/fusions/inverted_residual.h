/* SPDX-License-Identifier: MIT */
/* conv2d_inverted_residual_forward: a 1x1 convolution, a depthwise convolution and a 1x1 convolution with a residual,
 * fused: a block of MobileNetV2 (Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018). The
 * intermediates are never stored. With h(p,r) = p stride_h + r dilation_h - padding_top, and w(q,s) likewise:
 *
 *   h[n,m,i,j] = expanded(bias[m] + sum over c of x[n,c,i,j] expand[m,c]), and h = 0 outside (not expanded(bias));
 *   z[n,m,p,q] = filtered(depthwise_bias[m] + sum over r,s of h[n,m,h(p,r),w(q,s)] depthwise[m,r,s]);
 *   y[n,k,p,q] = act(project_bias[k] + residual[n,k,p,q] + sum over m of z[n,m,p,q] project[k,m]).
 *
 * Without expand h = x, M = C, there is no bias and expanded is the identity: a depthwise separable convolution.
 * x, residual and y are row-major or channels last; y must not overlap x or residual.
 *   in: x (N,C,H,W), depthwise (M,1,R,S), project (K,M,1,1), expand? (M,C,1,1), bias? (M), depthwise_bias? (M),
 *       project_bias? (K), residual? (N,K,P,Q)   out: y (N,K,P,Q)
 * 2 N M (H W C + P Q R S + P Q K) FLOPs, without expand 2 N M P Q (R S + K). */
#ifndef SDLF_CALCULATORS_FUSIONS_INVERTED_RESIDUAL_H
#define SDLF_CALCULATORS_FUSIONS_INVERTED_RESIDUAL_H

#include <assert.h>

#include <sdlf/fusion.h>

#include "calculators/fusions/options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inverted_residual_options {
    sdlf_window2d window;       /* of the depthwise convolution */
    sdlf_activation expanded;   /* after the first pointwise convolution */
    sdlf_activation filtered;   /* after the depthwise one */
    sdlf_activation activation; /* at the end */
} FUSION_OPTIONS inverted_residual_options;

static_assert(sizeof(inverted_residual_options) <= sizeof((sdlf_operation *)0)->fused.options,
              "the options fit into the room that an operation has for them");

extern const sdlf_fusion sdlf_inverted_residual_fusion;

static inline inverted_residual_options *inverted_residual_options_in(sdlf_operation *fused)
{
    return (inverted_residual_options *)(void *)fused->fused.options;
}

static inline const inverted_residual_options *inverted_residual_options_of(const sdlf_operation *fused)
{
    return (const inverted_residual_options *)(const void *)fused->fused.options;
}

#ifdef __cplusplus
}
#endif

#endif
