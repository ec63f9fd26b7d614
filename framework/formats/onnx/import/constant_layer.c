/* SPDX-License-Identifier: MIT */
/* Constants read by layers: a layer of their own, whose parameter is trained if it is one of the network's. */
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

static const onnx_flow no_flow = {.node = {-1, 0}, .dtype = SDLF_FLOAT32};

int onnx_dtype_choice(sdlf_dtype dtype)
{
    switch (dtype) {
    case SDLF_INT32: return 1;
    case SDLF_INT64: return 2;
    case SDLF_UINT8: return 3;
    case SDLF_INT8: return 4;
    case SDLF_BOOL: return 5;
    default: return sdlf_dtype_is_float(dtype) ? 0 : -1;
    }
}

enum { EXACT = 1 << 24 };

/* Parameters are float32, which cannot represent all integers beyond 2^24. */
static bool survives(const onnx_tensor *tensor)
{
    enum { BLOCK = 256 };
    int64_t block[BLOCK];
    if (sdlf_dtype_is_float(onnx_type_computed(tensor->type))) return true;
    for (int64_t i = 0; i < tensor->count; i += BLOCK) {
        int64_t length = tensor->count - i < BLOCK ? tensor->count - i : BLOCK;
        onnx_tensor_convert(tensor, i, length, SDLF_INT64, block);
        for (int64_t k = 0; k < length; k++)
            if (block[k] < -EXACT || block[k] > EXACT) return false;
        if (tensor->uniform) break;
    }
    return true;
}

/* A constant of large integers: the bits above the lower 24, times 2^24, plus the lower 24. The upper part may be large
 * itself. */
static onnx_flow in_parts(onnx_context *c, const onnx_tensor *tensor)
{
    onnx_numbers high = onnx_load_numbers(c, tensor), low = onnx_load_numbers(c, tensor);
    if (!onnx_ok(c)) return no_flow;
    for (int64_t i = 0; i < high.count; i++) {
        int64_t rest = high.integer[i] % EXACT;
        low.integer[i] = rest;
        high.integer[i] = high.integer[i] / EXACT;
    }
    onnx_tensor upper = onnx_store_numbers(c, &high, tensor->type), lower = onnx_store_numbers(c, &low, tensor->type);
    onnx_flow terms[] = {onnx_with_number(c, "mul", onnx_constant_layer(c, &upper), EXACT),
                         onnx_constant_layer(c, &lower)};
    return onnx_binary(c, "add", terms);
}

onnx_flow onnx_empty_output(onnx_context *c, const onnx_tensor *tensor)
{
    int dtype = onnx_dtype_choice(onnx_type_computed(tensor->type));
    if (onnx_ok(c) && dtype >= 0)
        return onnx_layer(c, "value", &(sdlf_value_options){.shape = tensor->shape, .dtype = dtype}, NULL, 0);
    onnx_unsupported(c, "a constant of %s", onnx_type_name(tensor->type));
    return no_flow;
}

onnx_flow onnx_constant_layer(onnx_context *c, const onnx_tensor *tensor)
{
    int dtype = onnx_dtype_choice(onnx_type_computed(tensor->type));
    if (!onnx_ok(c)) return no_flow;
    if (dtype < 0 || tensor->count == 0) {
        onnx_unsupported(c, "a constant of %s, shape %s, as an operand", onnx_type_name(tensor->type),
                         sdlf_shape_print(tensor->shape).text);
        return no_flow;
    }
    if (!survives(tensor)) return in_parts(c, tensor);
    sdlf_value_options options = {.shape = tensor->shape, .dtype = dtype, .trainable = tensor->learned};
    if (tensor->learned) c->name = tensor->name;
    onnx_flow flow = onnx_layer(c, "value", &options, NULL, 0);
    c->name = NULL;
    onnx_fill_with(c, flow, "value", (onnx_fill){.tensor = *tensor});
    return flow;
}
