/* SPDX-License-Identifier: MIT */
/* Rows times a weight: shared by layers that contain projections. */
#ifndef SDLF_LAYERS_LINEAR_H
#define SDLF_LAYERS_LINEAR_H

#include "layers/layers_internal.h"

/* y (rows,U) = x (rows,I) weight^T + bias + residual, with weight (U,I), bias? (U) and residual? (rows,U), which y may
 * alias. */
sdlf_status sdlf_layer_linear(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor weight, sdlf_tensor bias,
                              sdlf_tensor residual, sdlf_tensor y);

/* Its gradients; absent ones are not computed. */
sdlf_status sdlf_layer_linear_backward(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor weight, sdlf_tensor dy,
                                       sdlf_tensor dx, sdlf_tensor dweight, sdlf_tensor dbias);

#endif
