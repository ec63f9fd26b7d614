/* SPDX-License-Identifier: MIT */
/* Multi-head self-attention: what the passes of multi_head_attention share. */
#ifndef SDLF_LAYERS_ATTENTION_H
#define SDLF_LAYERS_ATTENTION_H

#include "layers/rotary.h"

/* The tensors that its forward pass saves, in order. */
enum {
    SDLF_ATTENTION_HEADS,         /* q, k, v: the projection (N T,3C), or, with rotary positions, (3,N H,T,D) */
    SDLF_ATTENTION_PROBABILITIES, /* (N H,T,T), if the calculator has no attention operation */
    SDLF_ATTENTION_CONTEXT,       /* the concatenated outputs of the heads, (N T,C) */
    SDLF_ATTENTION_STATISTICS,    /* of the softmax, (2,N,H,T), if the calculator has an attention operation */
    SDLF_ATTENTION_TABLES         /* of rotary positions */
};

/* The state of both passes. */
typedef struct sdlf_attention {
    const sdlf_multi_head_attention_options *options;
    sdlf_layer_context *context;
    int64_t samples, length, channels, heads, depth; /* N, T, C, H, D */
    double scale;
    sdlf_tensor x;                  /* (N T,C) */
    sdlf_tensor q, k, v;            /* (N H,T,D) each, contiguous with one another */
    sdlf_tensor p, said;            /* (N H,T,T); (N T,C) */
    sdlf_tensor projected;          /* (N T,3C), the same memory as q, k and v */
    sdlf_tensor statistics;         /* (2,N,H,T) */
    sdlf_tensor q_tables, k_tables; /* of rotary positions, (2,T,D) each; that of q includes the scale */
} sdlf_attention;

sdlf_attention sdlf_attention_of(const sdlf_layer *layer, sdlf_layer_context *context);
sdlf_tensor sdlf_attention_scratch(const sdlf_attention *a, sdlf_shape shape);

/* ---- heads ---- */

sdlf_shape sdlf_attention_heads_shape(const sdlf_attention *a); /* (N,H,T,D) */

/* (N T,C), or one of the three parts of (N T,3C), viewed as heads (N,H,T,D). */
sdlf_tensor sdlf_attention_as_heads(const sdlf_attention *a, sdlf_tensor rows, int index);

/* Splits the projection (N T,3C) into q, k, v; and writes the gradient of one of its parts, from that of its heads. */
sdlf_status sdlf_attention_cut_heads(const sdlf_attention *a, sdlf_tensor projected);
sdlf_status sdlf_attention_join_heads(const sdlf_attention *a, sdlf_tensor gradient, int index, sdlf_tensor projected);

/* y = left right for every head; `turn_*` transposes an operand. */
sdlf_status sdlf_attention_multiply(const sdlf_attention *a, sdlf_tensor left, bool turn_left, sdlf_tensor right,
                                    bool turn_right, sdlf_tensor y);

/* ---- scores ---- */

/* Clamps an added mask at the score of a masked key: rows of minus infinity would give NaN. */
sdlf_status sdlf_attention_bound_mask(const sdlf_attention *a, sdlf_tensor *bounded);

/* Computes p from q and k; `dropped` is p as the product with v reads it, with dropout in training. */
sdlf_status sdlf_attention_probabilities(const sdlf_attention *a, sdlf_tensor *dropped);

/* Computes ds, a new scratch tensor, and dv from the gradient of the heads' outputs, `said`. */
sdlf_status sdlf_attention_score_gradient(const sdlf_attention *a, sdlf_tensor said, sdlf_tensor dv, sdlf_tensor *ds);

/* ---- fused ---- */

/* True if the fused operations are used. The answer is the same in both passes. */
bool sdlf_attention_is_fused(const sdlf_attention *a);

/* Computes `said` from q, k and v; and the gradient of the projection (N T,3C) from that of `said`. */
sdlf_status sdlf_attention_forward(const sdlf_attention *a);
sdlf_status sdlf_attention_backward(const sdlf_attention *a, sdlf_tensor dy, sdlf_tensor projected);

#endif
