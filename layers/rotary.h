/* SPDX-License-Identifier: MIT */
/* Rotary positions, shared by rotary_embedding and multi_head_attention. */
#ifndef SDLF_LAYERS_ROTARY_H
#define SDLF_LAYERS_ROTARY_H

#include "layers/views.h"

/* Fills `tables` (2,T,D), D even, with the factors of sdlf_rotary_turn, times `factor`: the rows of the first
 * are cos a[t,i] twice, those of the second -sin a[t,i], then sin a[t,i]; a[t,i] = t base^(-2i/D), i <
 * D/2. */
sdlf_status sdlf_rotary_tables(sdlf_layer_context *context, float base, double factor, sdlf_tensor tables);

/* y (...,T,D) = x rotated by the angles of the tables; `back`: by their negatives, still times the factor: the gradient.
 * x may have any strides except along its last axis, which is contiguous; y is row-major and must not overlap x. */
sdlf_status sdlf_rotary_turn(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor tables, bool back, sdlf_tensor y);

#endif
