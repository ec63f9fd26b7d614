/* SPDX-License-Identifier: MIT */
/* Rotary positions: what rotary_embedding and multi_head_attention share. */
#ifndef SDLF_LAYERS_ROTARY_H
#define SDLF_LAYERS_ROTARY_H

#include "layers/views.h"

/* `tables` (2,T,D), D even, becomes the factors of sdlf_rotary_turn: cos a[t,i] twice, and beside it -sin a and sin a,
 * times `factor`;
 * a[t,i] = t base^(-2i/D), i < D/2. */
sdlf_status sdlf_rotary_tables(sdlf_layer_context *context, float base, double factor, sdlf_tensor tables);

/* y (...,T,D) = x turned by the angles of the tables; `back`: by their negatives, times the factor all the same: the
 * gradient. x may have any strides but along its last axis, where it is dense; y is row-major and no part of x. */
sdlf_status sdlf_rotary_turn(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor tables, bool back, sdlf_tensor y);

#endif
