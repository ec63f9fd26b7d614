/* SPDX-License-Identifier: MIT */
/* Integer operators, composed of layers that are exact for integers: binary arithmetic, comparisons, views. 8-bit
 * integers go through floats, which hold them exactly (onnx_small_as_float). */
#include <string.h>

#include "framework/formats/onnx/import/fold.h"
#include "framework/formats/onnx/import/window.h"

bool onnx_is_integer(onnx_flow x)
{
    return x.dtype == SDLF_INT32 || x.dtype == SDLF_INT64 || x.dtype == SDLF_INT8 || x.dtype == SDLF_UINT8;
}

onnx_flow onnx_integer_function(onnx_context *c, onnx_flow x)
{
    const char *type = c->type->type;
    onnx_flow negative = {.node = {-1, 0}};
    if (strcmp(type, "Relu") == 0) return onnx_with_number(c, "max", x, 0);
    if (strcmp(type, "Sign") == 0) {
        x = onnx_with_number(c, "min", x, 1);
        return x.dtype == SDLF_UINT8 ? x : onnx_with_number(c, "max", x, -1);
    }
    if (strcmp(type, "Neg") == 0 || strcmp(type, "Abs") == 0)
        negative = onnx_layer(
            c, "binary", &(sdlf_binary_layer_options){.function = SDLF_LAYER_SUBTRACT, .scalar_first = true}, &x, 1);
    if (strcmp(type, "Neg") == 0) return negative;
    if (strcmp(type, "Abs") == 0) {
        onnx_flow both[] = {x, negative};
        return x.dtype == SDLF_UINT8 ? x : onnx_binary(c, "max", both);
    }
    onnx_unsupported(c, "of %s", sdlf_dtype_name(x.dtype));
    return x;
}

/* Reduces one axis to one element by combining halves until one is left. The order does not affect the result for
 * integers. */
static onnx_flow fold_axis(onnx_context *c, onnx_flow x, int axis, const char *function)
{
    while (onnx_ok(c) && x.shape.dim[axis] > 1) {
        int64_t length = x.shape.dim[axis], half = length / 2;
        onnx_flow halves[] = {onnx_take(c, x, axis, 0, half, 1), onnx_take(c, x, axis, half, half, 1)};
        onnx_flow parts[] = {onnx_binary(c, function, halves), x};
        if (length % 2 == 1) parts[1] = onnx_take(c, x, axis, length - 1, 1, 1);
        x = length % 2 == 1 ? onnx_join(c, parts, 2, axis) : parts[0];
    }
    return x;
}

onnx_flow onnx_reduce_integers(onnx_context *c, onnx_flow x, sdlf_reduce_function function, sdlf_shape axes, bool keep)
{
    static const char *const functions[SDLF_REDUCE_LAYER_FUNCTION_COUNT] = {
        [SDLF_REDUCE_LAYER_SUM] = "add",         [SDLF_REDUCE_LAYER_MEAN] = "add", [SDLF_REDUCE_LAYER_MAX] = "max",
        [SDLF_REDUCE_LAYER_MIN] = "min",         [SDLF_REDUCE_LAYER_L1] = "add",   [SDLF_REDUCE_LAYER_PRODUCT] = "mul",
        [SDLF_REDUCE_LAYER_SUM_SQUARES] = "add",
    };
    bool gone[SDLF_MAX_RANK] = {false};
    int64_t count = 1;
    if (!onnx_ok(c)) return x;
    if (functions[function] == NULL) {
        onnx_unsupported(c, "of %s", sdlf_dtype_name(x.dtype));
        return x;
    }
    onnx_flow twice[] = {x, x};
    if (function == SDLF_REDUCE_LAYER_SUM_SQUARES) x = onnx_binary(c, "mul", twice);
    if (function == SDLF_REDUCE_LAYER_L1) {
        twice[1] = onnx_layer(
            c, "binary", &(sdlf_binary_layer_options){.function = SDLF_LAYER_SUBTRACT, .scalar_first = true}, &x, 1);
        x = onnx_binary(c, "max", twice);
    }
    for (int i = 0; i < (axes.rank > 0 ? axes.rank : x.shape.rank); i++)
        gone[axes.rank > 0 ? (axes.dim[i] < 0 ? axes.dim[i] + x.shape.rank : axes.dim[i]) : i] = true;
    sdlf_shape kept = SDLF_SCALAR;
    int batch = onnx_batch_axis(c, x);
    for (int i = 0; i < x.shape.rank && onnx_ok(c); i++) {
        if (!gone[i] || keep) kept.dim[kept.rank++] = gone[i] ? 1 : x.shape.dim[i];
        if (!gone[i]) continue;
        count *= x.shape.dim[i];
        if (i == batch) x = onnx_batch_fixed(c, x); /* the reduced axis keeps its present length */
        x = fold_axis(c, x, i, functions[function]);
    }
    if (function == SDLF_REDUCE_LAYER_MEAN && count > 1 << 24) onnx_unsupported(c, "a mean of more than 2^24 integers");
    if (function == SDLF_REDUCE_LAYER_MEAN && count > 1) x = onnx_with_number(c, "div", x, (double)count);
    return onnx_reshape(c, x, kept);
}

/* First step of argmax: 1 where an element equals the maximum of the axis, else 0; the caller takes the first or last
 * maximum of these. */
onnx_flow onnx_equal_to_best(onnx_context *c, onnx_flow x, int axis, bool smallest)
{
    sdlf_reduce_function function = smallest ? SDLF_REDUCE_LAYER_MIN : SDLF_REDUCE_LAYER_MAX;
    onnx_flow both[] = {x, onnx_reduce_integers(c, x, function, sdlf_shape(axis), true)};
    return onnx_cast(c, onnx_binary(c, "equal", both), SDLF_FLOAT32);
}
