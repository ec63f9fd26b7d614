/* Constants that layers read: a layer of their own, whose parameter is not trained. */
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/fold.h"

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

/* Parameters are float32: integers beyond 2^24 would not be the same afterwards. */
static bool survives(onnx_context *c, const onnx_tensor *tensor)
{
    enum { BLOCK = 256, EXACT = 1 << 24 };
    int64_t block[BLOCK];
    if (sdlf_dtype_is_float(onnx_type_dtype(tensor->type))) return true;
    for (int64_t i = 0; i < tensor->count; i += BLOCK) {
        int64_t length = tensor->count - i < BLOCK ? tensor->count - i : BLOCK;
        onnx_tensor_convert(tensor, i, length, SDLF_INT64, block);
        for (int64_t k = 0; k < length; k++) {
            if (block[k] >= -EXACT && block[k] <= EXACT) continue;
            onnx_unsupported(c, "a constant of integers that holds %lld: beyond 2^24 they are not exact",
                             (long long)block[k]);
            return false;
        }
        if (tensor->uniform) break;
    }
    return true;
}

onnx_flow onnx_constant_layer(onnx_context *c, const onnx_tensor *tensor)
{
    int dtype = onnx_dtype_choice(onnx_type_dtype(tensor->type));
    if (!onnx_ok(c)) return no_flow;
    if (dtype < 0 || tensor->count == 0) {
        onnx_unsupported(c, "a constant of %s, shape %s, as an operand", onnx_type_name(tensor->type),
                         sdlf_shape_print(tensor->shape).text);
        return no_flow;
    }
    if (!survives(c, tensor)) return no_flow;
    onnx_flow flow = onnx_layer(c, "value", &(sdlf_value_options){.shape = tensor->shape, .dtype = dtype}, NULL, 0);
    onnx_fill_with(c, flow, "value", (onnx_fill){.tensor = *tensor});
    return flow;
}
