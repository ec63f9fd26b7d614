/* SPDX-License-Identifier: MIT */
/* Shared by resize and pad: resampling of one axis after another. */
#ifndef SDLF_LAYERS_RESAMPLE_H
#define SDLF_LAYERS_RESAMPLE_H

#include "layers/views.h"

/* Applies steps[axis] to the axes in the mask `axes`, each from x's size to y's. */
sdlf_status sdlf_layer_resample(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor y,
                                const sdlf_resample_options *steps, unsigned axes);

/* dx from dy: the adjoint. */
sdlf_status sdlf_layer_resample_backward(sdlf_layer_context *context, sdlf_tensor dy, sdlf_tensor dx,
                                         const sdlf_resample_options *steps, unsigned axes);

#endif
