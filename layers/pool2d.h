/* SPDX-License-Identifier: MIT */
/* What max_pool2d and avg_pool2d share: (N,C,H,W) -> (N,C,P,Q), a window that slides over each channel. */
#ifndef SDLF_LAYERS_POOL2D_H
#define SDLF_LAYERS_POOL2D_H

#include "layers/layers_internal.h"

/* The geometry of complete options: the stride is the window where it was left at zero, the dilation 1. */
sdlf_window2d sdlf_pool2d_window(const sdlf_pool2d_options *options);

/* The `infer` of both. Padding is smaller than the window and each window holds at least one element of the input. */
sdlf_status sdlf_pool2d_infer(const sdlf_layer *layer, sdlf_signature *signature);

/* A window of one element that goes from each to the next: what exporters make of an average "to 7x7" of 7x7. */
bool sdlf_pool2d_is_identity(const sdlf_layer *layer);

#endif
