/* SPDX-License-Identifier: MIT */
/* Self-attention of several heads: what the passes of multi_head_attention share. */
#ifndef SDLF_LAYERS_ATTENTION_H
#define SDLF_LAYERS_ATTENTION_H

#include "layers/rotary.h"

/* What its forward pass saves, in order. */
enum {
    SDLF_ATTENTION_HEADS,         /* q, k, v: the projection (N T,3C), or, of rotary positions, (3,N H,T,D) */
    SDLF_ATTENTION_PROBABILITIES, /* (N H,T,T), where what computes has no operation for attention */
    SDLF_ATTENTION_CONTEXT,       /* what the heads say, (N T,C) */
    SDLF_ATTENTION_STATISTICS,    /* of the softmax, (2,N,H,T), where it has one */
    SDLF_ATTENTION_TABLES         /* of rotary positions */
};

/* What both passes work with. */
typedef struct sdlf_attention {
    const sdlf_multi_head_attention_options *options;
    sdlf_layer_context *context;
    int64_t samples, length, channels, heads, depth; /* N, T, C, H, D */
    double scale;
    sdlf_tensor x;                  /* (N T,C) */
    sdlf_tensor q, k, v;            /* (N H,T,D) each, one behind the other */
    sdlf_tensor p, said;            /* (N H,T,T); (N T,C) */
    sdlf_tensor projected;          /* (N T,3C), the same memory as q, k and v */
    sdlf_tensor statistics;         /* (2,N,H,T) */
    sdlf_tensor q_tables, k_tables; /* of rotary positions, (2,T,D) each; that of q scales, too */
} sdlf_attention;

sdlf_attention sdlf_attention_of(const sdlf_layer *layer, sdlf_layer_context *context);
sdlf_tensor sdlf_attention_scratch(const sdlf_attention *a, sdlf_shape shape);

/* ---- heads ---- */

sdlf_shape sdlf_attention_heads_shape(const sdlf_attention *a); /* (N,H,T,D) */

/* (N T,C) or one of the three parts of (N T,3C), seen as heads (N,H,T,D). */
sdlf_tensor sdlf_attention_as_heads(const sdlf_attention *a, sdlf_tensor rows, int index);

/* q, k and v from the projection (N T,3C); and the gradient of one part of the projection, from that of its heads. */
sdlf_status sdlf_attention_cut_heads(const sdlf_attention *a, sdlf_tensor projected);
sdlf_status sdlf_attention_join_heads(const sdlf_attention *a, sdlf_tensor gradient, int index, sdlf_tensor projected);

/* y = left right of every head. */
sdlf_status sdlf_attention_multiply(const sdlf_attention *a, sdlf_tensor left, bool turn_left, sdlf_tensor right,
                                    bool turn_right, sdlf_tensor y);

/* ---- scores ---- */

/* An added mask goes no lower than what is not seen: rows of minus infinity would be NaN. */
sdlf_status sdlf_attention_bound_mask(const sdlf_attention *a, sdlf_tensor *bounded);

/* p of q and k; and p as the product with v sees it, dropped out of while training. */
sdlf_status sdlf_attention_probabilities(const sdlf_attention *a, sdlf_tensor *dropped);

/* ds, made here, and dv of the heads' gradient `said`. */
sdlf_status sdlf_attention_score_gradient(const sdlf_attention *a, sdlf_tensor said, sdlf_tensor dv, sdlf_tensor *ds);

/* ---- as operations of their own ---- */

/* Is that what computes? The answer is the same in both passes. */
bool sdlf_attention_is_fused(const sdlf_attention *a);

/* `said` of q, k and v; and the gradient of the projection (N T,3C) from that of `said`. */
sdlf_status sdlf_attention_forward(const sdlf_attention *a);
sdlf_status sdlf_attention_backward(const sdlf_attention *a, sdlf_tensor dy, sdlf_tensor projected);

#endif
