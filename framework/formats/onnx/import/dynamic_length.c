/* SPDX-License-Identifier: MIT */
/* Values with a data-dependent length. See dynamic_length.h. */
#include "framework/formats/onnx/import/dynamic_length.h"

#include <stdio.h>
#include <string.h>

#include "framework/formats/text.h"

/* Unary elementwise operators. */
static const char single[] =
    " Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Celu Clip Cos Cosh Elu Erf Exp Floor Gelu "
    "HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu "
    "Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh ";
/* Binary elementwise operators, with broadcasting. */
static const char aligned[] =
    " Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min "
    "Mod Mul Or Pow Sub Where Xor ";

static void refuse(onnx_context *c, int input)
{
    onnx_unsupported(c, "input %d, '%s', is as long as the model's inputs make it: %s looks across that axis", input,
                     text_show(c->input[input]->name).text, c->type->type);
}

/* The dynamic axis of the result: inputs that have one must agree; those without one broadcast along
 * it. */
static int axis_of_aligned(onnx_context *c, int input)
{
    const onnx_counted *counted = &c->input[input]->counted;
    int from_end = onnx_shape(c, input).rank - counted->axis, rank = 0;
    for (int i = 0; i < c->input_count; i++) {
        if (!onnx_has(c, i)) continue;
        sdlf_shape shape = onnx_shape(c, i);
        const onnx_counted *other = &c->input[i]->counted;
        int at = shape.rank - from_end;
        if (shape.rank > rank) rank = shape.rank;
        if (other->is && (other->length.node.layer != counted->length.node.layer || other->axis != at)) refuse(c, i);
        if (!other->is && at >= 0 && shape.dim[at] != 1) refuse(c, i);
    }
    return rank - from_end;
}

static int axis_of_transpose(onnx_context *c, int axis)
{
    onnx_list perm = onnx_integers(c, "perm");
    int rank = onnx_shape(c, 0).rank;
    for (int i = 0; i < perm.count; i++)
        if (onnx_axis(c, perm.item[i], rank) == axis) return i;
    return rank - 1 - axis;
}

static int axis_of_gather(onnx_context *c, int input, int axis)
{
    int rank = onnx_shape(c, 0).rank, along = onnx_axis(c, onnx_integer(c, "axis", 0), rank);
    if (input == 1) return along + axis;
    if (axis == along || c->input[1]->counted.is) refuse(c, input);
    return axis < along ? axis : axis - 1 + onnx_shape(c, 1).rank;
}

/* Axes that are an input since some opset, and an attribute before it. */
static onnx_list axes_of(onnx_context *c, int input)
{
    return onnx_has(c, input) ? onnx_known_integers(c, input) : onnx_integers(c, "axes");
}

static int axis_of_squeeze(onnx_context *c, int axis, bool back)
{
    onnx_list axes = axes_of(c, 1);
    int rank = onnx_shape(c, 0).rank, before = 0;
    bool named[2 * SDLF_MAX_RANK] = {false};
    if (axes.count < 0 || axes.count > SDLF_MAX_RANK) refuse(c, 0);
    for (int i = 0; i < axes.count && onnx_ok(c); i++)
        named[onnx_axis(c, axes.item[i], back ? rank + axes.count : rank)] = true;
    if (!back && named[axis]) refuse(c, 0);
    if (!back)
        for (int i = 0; i < axis; i++) before -= named[i];
    for (int i = 0; back && i <= axis + before && i < 2 * SDLF_MAX_RANK; i++) before += named[i];
    return axis + before;
}

static int axis_of_slice(onnx_context *c, int axis)
{
    onnx_list axes = axes_of(c, 3);
    if (axes.count < 0) refuse(c, 0);
    for (int i = 0; i < axes.count && onnx_ok(c); i++)
        if (onnx_axis(c, axes.item[i], onnx_shape(c, 0).rank) == axis) refuse(c, 0);
    return axis;
}

static int axis_of_concat(onnx_context *c, int input)
{
    const onnx_counted *counted = &c->input[input]->counted;
    for (int i = 0; i < c->input_count; i++) {
        const onnx_counted *other = &c->input[i]->counted;
        if (!other->is || other->axis != counted->axis || other->length.node.layer != counted->length.node.layer)
            refuse(c, i);
    }
    if (onnx_axis(c, onnx_integer(c, "axis", 0), onnx_shape(c, input).rank) == counted->axis) refuse(c, input);
    return counted->axis;
}

onnx_counted onnx_dynamic_length_before(onnx_context *c)
{
    const char *type = c->type->type;
    onnx_counted counted = {.is = false};
    for (int i = 0; i < c->input_count && onnx_ok(c); i++) {
        if (!onnx_has(c, i) || !c->input[i]->counted.is) continue;
        counted = c->input[i]->counted;
        if (text_is_in(single, type) && i == 0)
            continue;
        else if (text_is_in(aligned, type))
            counted.axis = axis_of_aligned(c, i);
        else if (strcmp(type, "Transpose") == 0)
            counted.axis = axis_of_transpose(c, counted.axis);
        else if (strcmp(type, "Gather") == 0)
            counted.axis = axis_of_gather(c, i, counted.axis);
        else if ((strcmp(type, "Squeeze") == 0 || strcmp(type, "Unsqueeze") == 0) && i == 0)
            counted.axis = axis_of_squeeze(c, counted.axis, type[0] == 'U');
        else if (strcmp(type, "Slice") == 0 && i == 0)
            counted.axis = axis_of_slice(c, counted.axis);
        else if (strcmp(type, "Concat") == 0)
            counted.axis = axis_of_concat(c, i);
        else if (strcmp(type, "RoiAlign") == 0 && i > 0 && counted.axis == 0)
            continue;
        else
            refuse(c, i);
    }
    return counted;
}

void onnx_dynamic_length_after(onnx_context *c, onnx_counted counted)
{
    if (counted.is && onnx_ok(c) && c->output_count > 0 && c->output[0] != NULL && c->output[0]->kind == ONNX_FLOW)
        c->output[0]->counted = counted;
}

void onnx_set_output_dynamic_length(onnx_context *c, int output, onnx_flow flow, int axis, onnx_flow length)
{
    onnx_set_output(c, output, flow);
    if (onnx_ok(c) && output < c->output_count && c->output[output] != NULL)
        c->output[output]->counted = (onnx_counted){.is = true, .axis = axis, .length = length};
}

void onnx_dynamic_length_output(onnx_import *import, const char *name, const onnx_value *value)
{
    char length[256];
    if (!value->counted.is) return;
    snprintf(length, sizeof length, "%.200s.length", text_show(name).text);
    sdlf_output(import->model, length, value->counted.length.node);
    sdlf_output_length(import->model, name, value->counted.axis, length);
}

onnx_flow onnx_true_first(onnx_context *c, onnx_flow is, onnx_flow *count)
{
    const int64_t most = 1 << 22; /* keys up to twice that must be exact in float32 */
    int64_t length = onnx_ok(c) ? is.shape.dim[0] : 1;
    if (length > most)
        onnx_unsupported(c, "%lld elements, of which it depends on their values which are taken: at most %lld",
                         (long long)length, (long long)most);
    onnx_flow place = onnx_cast(c, onnx_count_up(c, 0, 1, length, 0, 1), SDLF_FLOAT32);
    onnx_flow key = onnx_choose(c, is, place, onnx_with_number(c, "add", place, (double)length));
    sdlf_top_k_layer_options options = {.k = (int)length, .axis = -1, .smallest = true};
    onnx_flow order = onnx_layer_output(c, onnx_layer(c, "top_k", &options, &key, 1), 1);
    *count = onnx_reduce(c, onnx_cast(c, is, SDLF_FLOAT32), SDLF_REDUCE_LAYER_SUM, sdlf_shape(0), false);
    *count = onnx_cast(c, *count, SDLF_INT64);
    return order;
}
