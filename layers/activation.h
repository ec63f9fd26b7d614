/* SPDX-License-Identifier: MIT */
/* Shared by the activation layers: elementwise y = f(x), and dx = dy f'(x) with f' computed from y or x. */
#ifndef SDLF_LAYERS_ACTIVATION_H
#define SDLF_LAYERS_ACTIVATION_H

#include "layers/layers_internal.h"

/* One floating-point input of any shape; an output like it. */
sdlf_status sdlf_activation_infer(const sdlf_layer *layer, sdlf_signature *signature);

/* The forward and the backward operation of that function. */
sdlf_status sdlf_activation_forward(sdlf_layer_context *context, sdlf_activation activation);
sdlf_status sdlf_activation_backward(sdlf_layer_context *context, sdlf_activation activation);

#endif
