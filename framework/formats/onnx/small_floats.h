/* SPDX-License-Identifier: MIT */
/* Floats of a byte and less: float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz, float8e8m0 and float4e2m1.
 * Constants hold their bits, one in a byte each; layers compute with float32, which holds all of their values
 * exactly. */
#ifndef SDLF_FORMATS_ONNX_SMALL_FLOATS_H
#define SDLF_FORMATS_ONNX_SMALL_FLOATS_H

#include "framework/formats/onnx/import/compose.h"

/* What becomes of a number between two of the type's, and of one beyond its largest. */
typedef struct onnx_rounding {
    bool overflows; /* beyond: infinite, or NaN where the type has no infinity; else the largest */
    enum { ONNX_NEAREST = 0, ONNX_UP, ONNX_DOWN } mode; /* of float8e8m0; of all others: to the nearest, ties to even */
} onnx_rounding;

/* The attributes saturate and round_mode of the node. */
onnx_rounding onnx_rounding_of(onnx_context *c);
/* The bits of the number as that type. */
uint8_t onnx_small_float_encode(onnx_type type, double number, onnx_rounding rounding);
/* x, floats, rounded to that type's values. */
onnx_flow onnx_small_float_round(onnx_context *c, onnx_flow x, onnx_type type, onnx_rounding rounding);

#endif
