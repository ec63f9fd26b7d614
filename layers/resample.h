/* SPDX-License-Identifier: MIT */
/* What resize and pad share: resampling one axis after the other. */
#ifndef SDLF_LAYERS_RESAMPLE_H
#define SDLF_LAYERS_RESAMPLE_H

#include "layers/views.h"

/* steps[axis] of the axes in the mask `axes`, each of which goes from x's size to y's. */
sdlf_status sdlf_layer_resample(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor y,
                                const sdlf_resample_options *steps, unsigned axes);

/* dx from dy, the same way back. */
sdlf_status sdlf_layer_resample_backward(sdlf_layer_context *context, sdlf_tensor dy, sdlf_tensor dx,
                                         const sdlf_resample_options *steps, unsigned axes);

#endif
