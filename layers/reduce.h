/* SPDX-License-Identifier: MIT */
/* Shared by the two halves of the reduce layer. */
#ifndef SDLF_LAYERS_REDUCE_H
#define SDLF_LAYERS_REDUCE_H

#include "layers/views.h"

/* Bit i: axis i is reduced. The axes must be valid. */
unsigned sdlf_reduce_axes(const sdlf_layer *layer, sdlf_shape x);

/* x's shape with 1 for the reduced axes. */
sdlf_shape sdlf_reduce_kept(sdlf_shape x, unsigned axes);

/* y = x reduced over the axes, a run of neighbouring axes at a time: the first run by `first`, the others by `rest`. */
sdlf_status sdlf_reduce_fold(sdlf_layer_context *context, sdlf_tensor x, unsigned axes, sdlf_reduction first,
                             sdlf_reduction rest, sdlf_tensor y);

sdlf_status sdlf_reduce_backward(const sdlf_layer *layer, sdlf_layer_context *context);

#endif
