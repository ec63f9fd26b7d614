/* QuantizeLinear and DequantizeLinear, of uint8 and int8, per tensor and per axis. */
#include "framework/formats/onnx/fold.h"

/* Input i, a number or one for each index of the axis, in the shape that broadcasts with x. */
static onnx_flow along_axis(onnx_context *c, int input, sdlf_shape x)
{
    onnx_flow flow = onnx_in(c, input);
    if (!onnx_ok(c) || sdlf_shape_count(flow.shape) == 1) return onnx_reshape(c, flow, SDLF_SCALAR);
    int axis = onnx_axis(c, onnx_integer(c, "axis", 1), x.rank);
    if (!onnx_ok(c)) return flow;
    if (flow.shape.rank != 1 || flow.shape.dim[0] != x.dim[axis]) {
        onnx_unsupported(c, "a scale or zero point of shape %s for an input %s", sdlf_shape_print(flow.shape).text,
                         sdlf_shape_print(x).text);
        return flow;
    }
    sdlf_shape shape = {.rank = x.rank - axis, .dim = {x.dim[axis]}};
    for (int i = 1; i < shape.rank; i++) shape.dim[i] = 1;
    return onnx_reshape(c, flow, shape);
}

static void check(onnx_context *c)
{
    if (onnx_integer(c, "block_size", 0) != 0) onnx_unsupported(c, "attribute 'block_size' other than 0");
}

/* y = saturate(round(x / scale) + zero point), ties to even */
static void convert_quantize(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int64_t type = onnx_integer(c, "output_dtype", 0);
    check(c);
    sdlf_dtype dtype = type == 0                            ? SDLF_UINT8
                       : type < ONNX_TYPE_COUNT && type > 0 ? onnx_type_dtype((int)type)
                                                            : SDLF_NONE;
    if (onnx_has(c, 2)) {
        dtype =
            c->input[2]->kind == ONNX_CONSTANT ? onnx_type_dtype(c->input[2]->tensor.type) : c->input[2]->flow.dtype;
    }
    if (dtype != SDLF_UINT8 && dtype != SDLF_INT8) onnx_unsupported(c, "to %s", sdlf_dtype_name(dtype));
    onnx_flow quotient[] = {x, along_axis(c, 1, x.shape)};
    onnx_flow y = onnx_binary(c, "div", quotient);
    y = onnx_layer(c, "unary", &(sdlf_unary_options){.function = SDLF_UNARY_ROUND}, &y, 1);
    if (onnx_has(c, 2)) {
        onnx_flow sum[] = {y, onnx_cast(c, along_axis(c, 2, x.shape), SDLF_FLOAT32)};
        y = onnx_binary(c, "add", sum);
    }
    onnx_give(c, 0, onnx_cast(c, y, dtype)); /* which saturates */
}

/* y = (x - zero point) scale */
static void convert_dequantize(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    check(c);
    onnx_flow y = onnx_cast(c, x, SDLF_FLOAT32);
    if (onnx_has(c, 2)) {
        onnx_flow difference[] = {y, onnx_cast(c, along_axis(c, 2, x.shape), SDLF_FLOAT32)};
        y = onnx_binary(c, "sub", difference);
    }
    onnx_flow factors[] = {y, along_axis(c, 1, x.shape)};
    onnx_give(c, 0, onnx_binary(c, "mul", factors));
}

const onnx_operator onnx_quantize_operators[] = {
    {.type = "QuantizeLinear",
     .since = 10,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .attributes = " axis block_size output_dtype saturate ",
     .convert = convert_quantize},
    {.type = "DequantizeLinear",
     .since = 10,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .attributes = " axis block_size ",
     .convert = convert_dequantize},
    {.type = NULL},
};
