/* SPDX-License-Identifier: MIT */
/* Fused convolution, ReLU and max-pool: forward, backward, and backward with the SGD updates.
 *
 * conv2d_relu_max_pool_forward: y = max_pool2d(max(conv2d(x, w, bias), 0)). The convolution's output is never stored:
 * in training, the backward pass needs only `mask`, a byte for each y (see max_pool2d_forward). Row-major (NCHW); without
 * a mask also channels last (NHWC), where y may remain row-major, and in 16-bit storage.
 *   in: x (N,C,H,W), w (K,C/G,R,S), bias? (K)   out: y (N,K,P,Q), mask? (N,K,P,Q) uint8
 * It replaces
 *   conv2d_forward x, w, bias -> r;  max_pool2d_forward r -> y, mask;  copy y -> row-major (if wanted)
 * with the ReLU in either of the first two.
 *
 * conv2d_relu_max_pool_backward: the gradients, computed from the positions that the mask marks.
 *   in: x? (N,C,H,W), w? (K,C/G,R,S), dy (N,K,P,Q), mask (N,K,P,Q) uint8
 *   out: dw? (K,C/G,R,S), db? (K), dx? (N,C,H,W)
 * dw or dx is present; x with dw, w with dx, db only with dw. It replaces
 *   max_pool2d_backward dy, mask -> dr;  conv2d_backward_input dr, w -> dx;  conv2d_backward_weights x, dr -> dw, db
 *
 * conv2d_relu_max_pool_backward_sgd: the same, fused with the updates of w and b by dw and db, by the rule `sgd` (see
 * sdlf_sgd_rule). dx is computed from the w before its update. bv is present if and only if b and v are. It saves a
 * small batch's step two kernels; it does not save the gradients' memory traffic, which is small.
 *   in: x (N,C,H,W), dy (N,K,P,Q), mask (N,K,P,Q) uint8, rate (1) T
 *   out: w! (K,C/G,R,S), v!? (K,C/G,R,S), b!? (K), bv!? (K), dx? (N,C,H,W)
 * It replaces these three, and
 *   sgd_update dw -> w, v;  sgd_update db -> b, bv */
#ifndef SDLF_CALCULATORS_FUSIONS_CONV2D_POOL_H
#define SDLF_CALCULATORS_FUSIONS_CONV2D_POOL_H

#include <assert.h>

#include <sdlf/fusion.h>

#include "calculators/fusions/options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conv2d_pool_options {
    sdlf_window2d window;
    int groups;
    sdlf_window2d pool; /* a window that max_pool2d supports with a mask */
    sdlf_ties ties;
    sdlf_sgd_rule sgd; /* only for conv2d_relu_max_pool_backward_sgd */
} FUSION_OPTIONS conv2d_pool_options;

static_assert(sizeof(conv2d_pool_options) <= sizeof((sdlf_operation *)0)->fused.options,
              "the options fit into the room that an operation has for them");

extern const sdlf_fusion sdlf_conv2d_pool_forward_fusion, sdlf_conv2d_pool_backward_fusion,
    sdlf_conv2d_pool_backward_sgd_fusion;

static inline conv2d_pool_options *conv2d_pool_options_in(sdlf_operation *fused)
{
    return (conv2d_pool_options *)(void *)fused->fused.options;
}

static inline const conv2d_pool_options *conv2d_pool_options_of(const sdlf_operation *fused)
{
    return (const conv2d_pool_options *)(const void *)fused->fused.options;
}

/* The operands of either backward pass; w is the one before its update. An absent x or w, which is not read, is
 * replaced by the gradient of its shape. */
typedef struct conv2d_pool_operands {
    const sdlf_tensor *x, *w, *dy, *mask, *dx;
} conv2d_pool_operands;

static inline conv2d_pool_operands conv2d_pool_operands_of(const sdlf_operation *fused)
{
    const sdlf_tensor *in = fused->in, *out = fused->out;
    conv2d_pool_operands plain = {sdlf_tensor_present(&in[0]) ? &in[0] : &out[2],
                                  sdlf_tensor_present(&in[1]) ? &in[1] : &out[0], &in[2], &in[3], &out[2]};
    conv2d_pool_operands updating = {&in[0], &out[0], &in[1], &in[2], &out[4]};
    return fused->fused.fusion == &sdlf_conv2d_pool_backward_sgd_fusion ? updating : plain;
}

/* ---- for these fusions' class tables ---- */

/* Checks x, w, y, mask and the options; a pool must support a mask even if there is none. */
sdlf_status conv2d_pool_check(const sdlf_operation *fused, const sdlf_tensor *x, const sdlf_tensor *w,
                              const sdlf_tensor *y, const sdlf_tensor *mask);
/* The convolution's output, row-major, without memory. */
sdlf_tensor conv2d_pool_between(const sdlf_operation *fused, const sdlf_tensor *x, const sdlf_tensor *w);
/* True if the tensor that one operation produces is the image that another reads. */
bool conv2d_pool_is_same_image(const sdlf_tensor *made, const sdlf_tensor *read);

#ifdef __cplusplus
}
#endif
#endif
