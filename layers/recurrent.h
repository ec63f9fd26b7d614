/* SPDX-License-Identifier: MIT */
/* Recurrent layers: what lstm and gru share. Where what computes has an operation for all steps, that is what they are, else
 * unrolled: one after another, each of some operations. Before and behind them are the products that all steps have in common. What has
 * an axis of steps has them in the order in which they go: backwards with `reverse`. */
#ifndef SDLF_LAYERS_RECURRENT_H
#define SDLF_LAYERS_RECURRENT_H

#include "layers/views.h"

enum { SDLF_WEIGHT_IH, SDLF_WEIGHT_HH, SDLF_BIAS_IH, SDLF_BIAS_HH };

extern const sdlf_field sdlf_recurrent_fields[];

typedef struct sdlf_recurrent {
    const sdlf_recurrent_options *options;
    sdlf_layer_context *context;
    int64_t samples, steps, channels, units, gates; /* N, T, C, H, G */
    sdlf_tensor states; /* (T + 1,N,H): before the first step h0, then after each; saved[0] */
    sdlf_tensor h0, c0; /* (N,H), inputs 1 and 2; absent: 0 */
} sdlf_recurrent;

/* Shapes, parameters, and what is saved: the states, and of each step (rows[i],N,columns[i] H) of the others. */
sdlf_status sdlf_recurrent_infer(const sdlf_layer *layer, sdlf_signature *signature, int gates, const int *more,
                                 int more_count);

sdlf_recurrent sdlf_recurrent_of(const sdlf_layer *layer, sdlf_layer_context *context, int gates);

/* What is saved under that index, of that shape (or less than was saved), or in inference a tensor of this pass; a tensor of this
 * pass. */
sdlf_tensor sdlf_recurrent_saved(const sdlf_recurrent *r, int index, sdlf_shape shape);
sdlf_tensor sdlf_recurrent_scratch(const sdlf_recurrent *r, sdlf_shape shape);
sdlf_tensor sdlf_recurrent_one(const sdlf_recurrent *r); /* (1,N,H) */

/* Step t of a tensor (T,...), without that axis. */
sdlf_tensor sdlf_recurrent_at(sdlf_tensor tensor, int64_t t);

/* Rows (N,G H) seen as gates (G,N,H); `count` of gates from `first` on. */
sdlf_tensor sdlf_recurrent_gates(const sdlf_recurrent *r, sdlf_tensor rows);
sdlf_tensor sdlf_recurrent_part(sdlf_tensor gates, int first, int count);

/* The state before step t, or after step t - 1: (1,N,H). */
sdlf_tensor sdlf_recurrent_state(const sdlf_recurrent *r, int64_t t);

/* ---- forward ---- */

/* The first state; what all steps get from x, (T,N,G H). */
sdlf_status sdlf_recurrent_begin(const sdlf_recurrent *r, sdlf_tensor *projected);

/* What step t gets from the state before it, (N,G H). */
sdlf_status sdlf_recurrent_product(const sdlf_recurrent *r, int64_t t, sdlf_tensor product);

/* The states become the layer's output. */
sdlf_status sdlf_recurrent_end(const sdlf_recurrent *r);

/* ---- backward ---- */

/* dy of each step, (T,N,H), of which with `last` only the last is there: T = 1. */
sdlf_status sdlf_recurrent_take_gradient(const sdlf_recurrent *r, sdlf_tensor *dy);

/* to (N,H) = the state, or 0 where it is absent. */
sdlf_status sdlf_recurrent_set_state(const sdlf_recurrent *r, sdlf_tensor state, sdlf_tensor to);

/* dh of the state before step t, from the gradient `rows` (N,G H) of step t's product, dy of the step before it, if there is one, and a
 * further one (absent: none). */
sdlf_status sdlf_recurrent_step_back(const sdlf_recurrent *r, int64_t t, sdlf_tensor rows, sdlf_tensor dy,
                                     sdlf_tensor beside, sdlf_tensor *dh);

/* The gradients by x and the parameters, from those of what all steps got from x and from the states, (T,N,G H). */
sdlf_status sdlf_recurrent_finish(const sdlf_recurrent *r, sdlf_tensor from_x, sdlf_tensor from_states);

/* The gradient of h0 (`input` 1) or c0 (2), from that of the state (N,H) that it was broadcast to. */
sdlf_status sdlf_recurrent_state_gradient(const sdlf_recurrent *r, int input, sdlf_tensor from);

/* ---- all steps as operations of their own ---- */

/* Is that what computes? The answer is the same in both passes. `kept` is what the forward pass leaves for the backward pass: gates
 * (T,N,G H), and cells or products (T,N,H). */
bool sdlf_recurrent_is_fused(const sdlf_recurrent *r, const sdlf_tensor kept[2]);

/* The layer's output; and the gradients by its inputs and parameters. */
sdlf_status sdlf_recurrent_forward(const sdlf_recurrent *r, const sdlf_tensor kept[2]);
sdlf_status sdlf_recurrent_backward(const sdlf_recurrent *r, const sdlf_tensor kept[2]);

/* ---- element by element ---- */

sdlf_status sdlf_recurrent_slope(const sdlf_recurrent *r, sdlf_activation_function function, sdlf_tensor y,
                                 sdlf_tensor dy, sdlf_tensor dx);

#endif
