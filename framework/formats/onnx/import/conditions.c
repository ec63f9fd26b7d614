/* SPDX-License-Identifier: MIT */
/* Operators that select elements by a condition: IsNaN, IsInf, ThresholdedRelu, Shrink, Hardmax; and Swish and
 * SwiGLU. */
#include <math.h>

#include "framework/formats/onnx/import/compose.h"

static void convert_is_nan(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    onnx_set_output(c, 0, onnx_not(c, onnx_elementwise(c, "equal", x, x)));
}

static void convert_is_inf(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    bool negative = onnx_flag(c, "detect_negative", true), positive = onnx_flag(c, "detect_positive", true);
    if (negative == positive) x = onnx_function(c, SDLF_UNARY_ABS, x);
    if (negative && !positive) x = onnx_function(c, SDLF_UNARY_NEGATE, x);
    if (!negative && !positive) x = onnx_with_number(c, "mul", onnx_function(c, SDLF_UNARY_ABS, x), -1); /* never */
    onnx_set_output(c, 0, onnx_elementwise(c, "equal", x, onnx_number(c, SDLF_FLOAT32, INFINITY)));
}

static void convert_thresholded_relu(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), above = onnx_with_number(c, "greater", x, (double)onnx_real(c, "alpha", 1));
    onnx_set_output(c, 0, onnx_choose(c, above, x, onnx_number(c, SDLF_FLOAT32, 0)));
}

/* x + bias below -lambd, x - bias above lambd, 0 between. */
static void convert_shrink(onnx_context *c)
{
    double bias = (double)onnx_real(c, "bias", 0), bound = (double)onnx_real(c, "lambd", 0.5f);
    onnx_flow x = onnx_in(c, 0);
    onnx_flow middle = onnx_choose(c, onnx_with_number(c, "greater", x, bound), onnx_with_number(c, "sub", x, bias),
                                   onnx_number(c, SDLF_FLOAT32, 0));
    onnx_set_output(
        c, 0, onnx_choose(c, onnx_with_number(c, "less", x, -bound), onnx_with_number(c, "add", x, bias), middle));
}

/* x s(alpha x), s the sigmoid */
static onnx_flow swish(onnx_context *c, onnx_flow x, double alpha)
{
    if (fabs(alpha - 1) < 1e-12) return onnx_function(c, SDLF_UNARY_SILU, x);
    onnx_flow slope = onnx_with_number(c, "mul", x, alpha);
    return onnx_elementwise(c, "mul", x, onnx_layer(c, "sigmoid", NULL, &slope, 1));
}

static void convert_swish(onnx_context *c)
{
    onnx_set_output(c, 0, swish(c, onnx_in(c, 0), (double)onnx_real(c, "alpha", 1)));
}

static void convert_swiglu(onnx_context *c)
{
    onnx_flow gate = swish(c, onnx_in(c, 0), (double)onnx_real(c, "alpha", 1));
    onnx_set_output(c, 0, onnx_elementwise(c, "mul", gate, onnx_in(c, 1)));
}

/* 1 at the first maximum along the axis, else 0. Before opset 13 all axes from the given one on are merged. */
static void convert_hardmax(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    sdlf_shape shape = x.shape;
    int axis = onnx_axis(c, onnx_integer(c, "axis", c->opset < 13 ? 1 : -1), shape.rank);
    if (!onnx_ok(c)) return;
    if (c->opset < 13) x = onnx_join_axes(c, x, axis, shape.rank - 1);
    sdlf_arg_reduce_layer_options options = {.axis = axis - x.shape.rank, .keep = true};
    onnx_flow first = onnx_layer(c, "arg_reduce", &options, &x, 1);
    onnx_flow places = onnx_count_up(c, 0, 1, x.shape.dim[axis], axis, x.shape.rank);
    onnx_flow y = onnx_cast(c, onnx_elementwise(c, "equal", first, places), SDLF_FLOAT32);
    onnx_set_output(c, 0, onnx_reshape(c, y, shape));
}

#define ONE_INPUT .minimum_inputs = 1, .maximum_inputs = 1

const onnx_operator onnx_condition_operators[] = {
    {.type = "IsNaN", .since = 9, ONE_INPUT, .attributes = " ", .convert = convert_is_nan},
    {.type = "IsInf",
     .since = 10,
     ONE_INPUT,
     .attributes = " detect_negative detect_positive ",
     .convert = convert_is_inf},
    {.type = "ThresholdedRelu", .since = 10, ONE_INPUT, .attributes = " alpha ", .convert = convert_thresholded_relu},
    {.type = "Shrink", .since = 9, ONE_INPUT, .attributes = " bias lambd ", .convert = convert_shrink},
    {.type = "Swish", .since = 24, ONE_INPUT, .attributes = " alpha ", .convert = convert_swish},
    {.type = "SwiGLU",
     .since = 28,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " alpha ",
     .convert = convert_swiglu},
    {.type = "Hardmax", .since = 1, ONE_INPUT, .attributes = " axis ", .convert = convert_hardmax},
    {.type = NULL},
};
