/* SPDX-License-Identifier: MIT */
/* Shared by the recurrent layers lstm and gru. If the calculator has an operation for all steps, it is used; otherwise
 * the steps are unrolled: one after another, each a few operations. The products that all steps have in common run
 * before and after them. A tensor with an axis of steps stores them in processing order: backwards with `reverse`. */
#ifndef SDLF_LAYERS_RECURRENT_H
#define SDLF_LAYERS_RECURRENT_H

#include "layers/views.h"

enum { SDLF_WEIGHT_IH, SDLF_WEIGHT_HH, SDLF_BIAS_IH, SDLF_BIAS_HH };

extern const sdlf_field sdlf_recurrent_fields[];

typedef struct sdlf_recurrent {
    const sdlf_recurrent_options *options;
    sdlf_layer_context *context;
    int64_t samples, steps, channels, units, gates; /* N, T, C, H, G */
    sdlf_tensor states; /* (T + 1,N,H): h0 before the first step, then the state after each step; saved[0] */
    sdlf_tensor h0, c0; /* (N,H), inputs 1 and 2; absent: 0 */
} sdlf_recurrent;

/* Infers shapes and parameters, and adds the saved tensors: states, and for each step (rows[i],N,columns[i] H). */
sdlf_status sdlf_recurrent_infer(const sdlf_layer *layer, sdlf_signature *signature, int gates, const int *more,
                                 int more_count);

sdlf_recurrent sdlf_recurrent_of(const sdlf_layer *layer, sdlf_layer_context *context, int gates);

/* The saved tensor of that index, with that shape (or a smaller one), or in inference a tensor of this pass; a scratch
 * tensor of this pass. */
sdlf_tensor sdlf_recurrent_saved(const sdlf_recurrent *r, int index, sdlf_shape shape);
sdlf_tensor sdlf_recurrent_scratch(const sdlf_recurrent *r, sdlf_shape shape);
sdlf_tensor sdlf_recurrent_one(const sdlf_recurrent *r); /* (1,N,H) */

/* Step t of a tensor (T,...), without that axis. */
sdlf_tensor sdlf_recurrent_at(sdlf_tensor tensor, int64_t t);

/* Rows (N,G H) viewed as gates (G,N,H); `count` gates from `first` on. */
sdlf_tensor sdlf_recurrent_gates(const sdlf_recurrent *r, sdlf_tensor rows);
sdlf_tensor sdlf_recurrent_part(sdlf_tensor gates, int first, int count);

/* The state before step t, or after step t - 1: (1,N,H). */
sdlf_tensor sdlf_recurrent_state(const sdlf_recurrent *r, int64_t t);

/* ---- forward ---- */

/* Sets the first state, and computes the input contribution of all steps, (T,N,G H). */
sdlf_status sdlf_recurrent_begin(const sdlf_recurrent *r, sdlf_tensor *projected);

/* The recurrent product of step t with the state before it, (N,G H). */
sdlf_status sdlf_recurrent_product(const sdlf_recurrent *r, int64_t t, sdlf_tensor product);

/* Writes the states to the layer's output. */
sdlf_status sdlf_recurrent_end(const sdlf_recurrent *r);

/* ---- backward ---- */

/* dy of each step, (T,N,H); with `last` only of the last one: T = 1. */
sdlf_status sdlf_recurrent_take_gradient(const sdlf_recurrent *r, sdlf_tensor *dy);

/* to (N,H) = the state, or 0 if it is absent. */
sdlf_status sdlf_recurrent_set_state(const sdlf_recurrent *r, sdlf_tensor state, sdlf_tensor to);

/* dh of the state before step t: the sum of what the gradient `rows` (N,G H) of step t's product gives, of dy of the
 * step before it, if there is one, and of `beside` (absent: none). */
sdlf_status sdlf_recurrent_step_back(const sdlf_recurrent *r, int64_t t, sdlf_tensor rows, sdlf_tensor dy,
                                     sdlf_tensor beside, sdlf_tensor *dh);

/* The gradients with respect to x and the parameters, from those of the input and the recurrent products, (T,N,G H). */
sdlf_status sdlf_recurrent_finish(const sdlf_recurrent *r, sdlf_tensor from_x, sdlf_tensor from_states);

/* The gradient of h0 (`input` 1) or c0 (2), from that of the state (N,H) that it was broadcast to. */
sdlf_status sdlf_recurrent_state_gradient(const sdlf_recurrent *r, int input, sdlf_tensor from);

/* ---- all steps as one operation ---- */

/* True if that is used. The answer is the same in both passes. `kept` is what the forward pass saves for the backward
 * pass: gates (T,N,G H), and cells or products (T,N,H). */
bool sdlf_recurrent_is_fused(const sdlf_recurrent *r, const sdlf_tensor kept[2]);

/* The layer's output; and the gradients with respect to its inputs and parameters. */
sdlf_status sdlf_recurrent_forward(const sdlf_recurrent *r, const sdlf_tensor kept[2]);
sdlf_status sdlf_recurrent_backward(const sdlf_recurrent *r, const sdlf_tensor kept[2]);

/* ---- elementwise ---- */

sdlf_status sdlf_recurrent_slope(const sdlf_recurrent *r, sdlf_activation_function function, sdlf_tensor y,
                                 sdlf_tensor dy, sdlf_tensor dx);

#endif
