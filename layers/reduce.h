/* SPDX-License-Identifier: MIT */
/* What the two halves of the reduce layer share. */
#ifndef SDLF_LAYERS_REDUCE_H
#define SDLF_LAYERS_REDUCE_H

#include "layers/views.h"

/* Bit i: axis i is reduced. The axes are known to be good. */
unsigned sdlf_reduce_axes(const sdlf_layer *layer, sdlf_shape x);

/* x's shape with 1 where it is reduced. */
sdlf_shape sdlf_reduce_kept(sdlf_shape x, unsigned axes);

/* y = x folded over the axes, one run of neighbouring ones after the other; `rest` folds what `first` gave. */
sdlf_status sdlf_reduce_fold(sdlf_layer_context *context, sdlf_tensor x, unsigned axes, sdlf_reduction first,
                             sdlf_reduction rest, sdlf_tensor y);

sdlf_status sdlf_reduce_backward(const sdlf_layer *layer, sdlf_layer_context *context);

#endif
