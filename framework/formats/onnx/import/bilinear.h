/* SPDX-License-Identifier: MIT */
/* Bilinear sampling of images at computed positions: the weighted sum of the four elements around each. */
#ifndef SDLF_FORMATS_ONNX_BILINEAR_H
#define SDLF_FORMATS_ONNX_BILINEAR_H

#include "framework/formats/onnx/import/compose.h"

/* Along one axis: the elements before and after the position, and their weights. */
typedef struct onnx_taps {
    onnx_flow index[2], weight[2]; /* int64, floats */
} onnx_taps;

/* For an axis of `length` elements. Outside there are zeros; with `clamped` the border elements extend by one, with
 * full weight there, as RoiAlign specifies. */
onnx_taps onnx_taps_of(onnx_context *c, onnx_flow place, int64_t length, bool clamped);

/* rows: (elements, channels). base + y width + x is the element index, where the shapes broadcast; the result has
 * the broadcast shape and the channels. With `greatest` it is the maximum of the four products instead of their
 * sum. */
onnx_flow onnx_bilinear(onnx_context *c, onnx_flow rows, onnx_flow base, const onnx_taps *y, const onnx_taps *x,
                        int64_t width, bool greatest);

#endif
