/* SPDX-License-Identifier: MIT */
/* Shared by max_pool2d and avg_pool2d: (N,C,H,W) -> (N,C,P,Q), a window that slides over each channel. */
#ifndef SDLF_LAYERS_POOL2D_H
#define SDLF_LAYERS_POOL2D_H

#include "layers/layers_internal.h"

/* The geometry of complete options: a stride of zero means the window, a dilation of zero means 1. */
sdlf_window2d sdlf_pool2d_window(const sdlf_pool2d_options *options);

/* The `infer` of both. Padding is smaller than the window and each window covers at least one element of the input. */
sdlf_status sdlf_pool2d_infer(const sdlf_layer *layer, sdlf_signature *signature);

/* True for a window of one element with stride 1: exporters write an average "to 7x7" of a 7x7 image as this. */
bool sdlf_pool2d_is_identity(const sdlf_layer *layer);

#endif
