/* SPDX-License-Identifier: MIT */
/* Pictures read between their elements, at places that are computed: the weighted sum of the four around each. */
#ifndef SDLF_FORMATS_ONNX_BILINEAR_H
#define SDLF_FORMATS_ONNX_BILINEAR_H

#include "framework/formats/onnx/import/compose.h"

/* Along one axis: the element before the place and the one behind it, and how much each weighs. */
typedef struct onnx_taps {
    onnx_flow index[2], weight[2]; /* int64, floats */
} onnx_taps;

/* Of an axis of that many elements. Outside there are zeros; with `clamped` the outermost elements reach one further,
 * and are taken whole there, as RoiAlign has it. */
onnx_taps onnx_taps_of(onnx_context *c, onnx_flow place, int64_t length, bool clamped);

/* rows: (elements, channels). base + y width + x is the element's number, each of a shape that broadcasts with the
 * others; the result has theirs and the channels. With `greatest` the greatest of the four products stands for their
 * sum. */
onnx_flow onnx_bilinear(onnx_context *c, onnx_flow rows, onnx_flow base, const onnx_taps *y, const onnx_taps *x,
                        int64_t width, bool greatest);

#endif
