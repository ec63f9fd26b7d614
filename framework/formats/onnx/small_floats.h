/* SPDX-License-Identifier: MIT */
/* Floats of 8 bits and fewer: float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz, float8e8m0 and float4e2m1.
 * Constants hold their bits, one element per byte; layers compute in float32, which represents all of their values
 * exactly. */
#ifndef SDLF_FORMATS_ONNX_SMALL_FLOATS_H
#define SDLF_FORMATS_ONNX_SMALL_FLOATS_H

#include "framework/formats/onnx/import/compose.h"

/* How a number between two values of the type is rounded, and one beyond the largest converted. */
typedef struct onnx_rounding {
    bool overflows; /* true: beyond becomes infinite, or NaN if there is no infinity; false: it saturates */
    enum { ONNX_NEAREST = 0, ONNX_UP, ONNX_DOWN } mode; /* for float8e8m0; all others: nearest, ties to even */
} onnx_rounding;

/* Reads the attributes saturate and round_mode of the node. */
onnx_rounding onnx_rounding_of(onnx_context *c);
/* The bits of the number in that type. */
uint8_t onnx_small_float_encode(onnx_type type, double number, onnx_rounding rounding);
/* x, floats, rounded to that type's values. */
onnx_flow onnx_small_float_round(onnx_context *c, onnx_flow x, onnx_type type, onnx_rounding rounding);

#endif
