/* SPDX-License-Identifier: MIT */
/* Operators that reduce axes: ReduceSum and its family, ArgMax, ArgMin, and the global poolings that are reductions. */
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

static const struct {
    const char *type;
    sdlf_reduce_function function;
} functions[] = {
    {"ReduceSum", SDLF_REDUCE_LAYER_SUM},        {"ReduceMean", SDLF_REDUCE_LAYER_MEAN},
    {"ReduceMax", SDLF_REDUCE_LAYER_MAX},        {"ReduceMin", SDLF_REDUCE_LAYER_MIN},
    {"ReduceProd", SDLF_REDUCE_LAYER_PRODUCT},   {"ReduceL1", SDLF_REDUCE_LAYER_L1},
    {"ReduceL2", SDLF_REDUCE_LAYER_L2},          {"ReduceSumSquare", SDLF_REDUCE_LAYER_SUM_SQUARES},
    {"ReduceLogSum", SDLF_REDUCE_LAYER_LOG_SUM}, {"ReduceLogSumExp", SDLF_REDUCE_LAYER_LOG_SUM_EXP},
};

onnx_flow onnx_reduce(onnx_context *c, onnx_flow x, sdlf_reduce_function function, sdlf_shape axes, bool keep)
{
    return onnx_layer(c, "reduce", &(sdlf_reduce_options){.function = (int)function, .axes = axes, .keep = keep}, &x,
                      1);
}

/* A reduction over no axes: applied to each element by itself. */
static onnx_flow unreduced(onnx_context *c, onnx_flow x, sdlf_reduce_function function)
{
    onnx_flow twice[] = {x, x};
    sdlf_unary_options unary = {.function = SDLF_UNARY_ABS};
    if (function == SDLF_REDUCE_LAYER_SUM_SQUARES) return onnx_binary(c, "mul", twice);
    if (function == SDLF_REDUCE_LAYER_LOG_SUM) unary.function = SDLF_UNARY_LOG;
    bool plain =
        function != SDLF_REDUCE_LAYER_L1 && function != SDLF_REDUCE_LAYER_L2 && function != SDLF_REDUCE_LAYER_LOG_SUM;
    return plain ? x : onnx_layer(c, "unary", &unary, &x, 1);
}

/* Axes are an attribute, or an input since opset 18 (ReduceSum: 13). If omitted: all of them, or with
 * noop_with_empty_axes none. */
static void convert_reduce(onnx_context *c)
{
    size_t at = 0;
    while (strcmp(functions[at].type, c->type->type) != 0) at++;
    if (onnx_is_constant(c, 0) && onnx_known(c, 0)->count == 0) {
        onnx_fold_reduce(c);
        return;
    }
    onnx_flow x = onnx_in(c, 0);
    sdlf_reduce_function function = functions[at].function;
    onnx_list axes = onnx_has(c, 1) ? onnx_known_integers(c, 1) : onnx_integers(c, "axes");
    bool keep = onnx_flag(c, "keepdims", true);
    if (!onnx_ok(c)) return;
    if (axes.count <= 0 && onnx_flag(c, "noop_with_empty_axes", false)) {
        onnx_set_output(c, 0, unreduced(c, x, function));
        return;
    }
    sdlf_shape list = SDLF_SCALAR;
    bool used[SDLF_MAX_RANK] = {false};
    for (int i = 0; i < axes.count; i++) {
        int axis = onnx_axis(c, axes.item[i], x.shape.rank);
        if (!onnx_ok(c)) return;
        if (!used[axis]) list.dim[list.rank++] = axis;
        used[axis] = true;
    }
    if (x.dtype == SDLF_INT32 || x.dtype == SDLF_INT64) {
        onnx_set_output(c, 0, onnx_reduce_integers(c, x, function, list, keep));
        return;
    }
    bool picks = function == SDLF_REDUCE_LAYER_MAX || function == SDLF_REDUCE_LAYER_MIN;
    onnx_flow y = onnx_reduce(c, picks ? onnx_small_as_float(c, x) : x, function, list, keep);
    onnx_set_output(c, 0, onnx_cast(c, y, x.dtype));
}

static void convert_arg(onnx_context *c)
{
    onnx_flow x = onnx_small_as_float(c, onnx_in(c, 0));
    int axis = onnx_axis(c, onnx_integer(c, "axis", 0), x.shape.rank);
    sdlf_arg_reduce_layer_options options = {.axis = axis - x.shape.rank, /* from the end: 0 would mean the default */
                                             .smallest = strcmp(c->type->type, "ArgMin") == 0,
                                             .last = onnx_flag(c, "select_last_index", false),
                                             .keep = onnx_flag(c, "keepdims", true)};
    if (onnx_is_integer(x)) {
        x = onnx_equal_to_best(c, x, axis, options.smallest);
        options.smallest = false;
    }
    onnx_set_output(c, 0, onnx_layer(c, "arg_reduce", &options, &x, 1));
}

/* The spatial axes, 2 and up. */
static sdlf_shape spatial(onnx_context *c, sdlf_shape x)
{
    sdlf_shape axes = SDLF_SCALAR;
    if (onnx_ok(c) && x.rank < 3) onnx_wrong(c, "an input (N,C,...) was expected, found %s", sdlf_shape_print(x).text);
    for (int i = 2; i < x.rank; i++) axes.dim[axes.rank++] = i;
    return axes;
}

static void convert_global_max_pool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    if (!onnx_ok(c)) return;
    onnx_set_output(c, 0, onnx_reduce(c, x, SDLF_REDUCE_LAYER_MAX, spatial(c, x.shape), true));
}

static void convert_global_lp_pool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int64_t p = onnx_integer(c, "p", 2);
    if (p < 1 || p > 1 << 24) onnx_wrong(c, "attribute 'p' is %lld", (long long)p);
    if (onnx_ok(c) && p > 2) {
        onnx_flow y = onnx_layer(c, "unary", &(sdlf_unary_options){.function = SDLF_UNARY_ABS}, &x, 1);
        y = onnx_with_number(c, "pow", y, (double)p);
        y = onnx_reduce(c, y, SDLF_REDUCE_LAYER_SUM, spatial(c, x.shape), true);
        onnx_set_output(c, 0, onnx_with_number(c, "pow", y, 1.0 / (double)p));
        return;
    }
    sdlf_reduce_function function = p == 1 ? SDLF_REDUCE_LAYER_L1 : SDLF_REDUCE_LAYER_L2;
    onnx_set_output(c, 0, onnx_reduce(c, x, function, spatial(c, x.shape), true));
}

#define REDUCTION                                                                                                      \
    .minimum_inputs = 1, .maximum_inputs = 2, .known = 2, .attributes = " axes keepdims noop_with_empty_axes ",        \
    .convert = convert_reduce
#define ARGUMENT                                                                                                       \
    .minimum_inputs = 1, .maximum_inputs = 1, .attributes = " axis keepdims select_last_index ", .convert = convert_arg

const onnx_operator onnx_reduction_operators[] = {
    {.type = "ReduceSum", .since = 1, REDUCTION, .fold = onnx_fold_reduce},
    {.type = "ReduceMean", .since = 1, REDUCTION, .fold = onnx_fold_reduce},
    {.type = "ReduceMax", .since = 1, REDUCTION, .fold = onnx_fold_reduce},
    {.type = "ReduceMin", .since = 1, REDUCTION, .fold = onnx_fold_reduce},
    {.type = "ReduceProd", .since = 1, REDUCTION, .fold = onnx_fold_reduce},
    {.type = "ReduceL1", .since = 1, REDUCTION},
    {.type = "ReduceL2", .since = 1, REDUCTION},
    {.type = "ReduceSumSquare", .since = 1, REDUCTION},
    {.type = "ReduceLogSum", .since = 1, REDUCTION},
    {.type = "ReduceLogSumExp", .since = 1, REDUCTION},
    {.type = "ArgMax", .since = 1, ARGUMENT},
    {.type = "ArgMin", .since = 1, ARGUMENT},
    {.type = "GlobalMaxPool",
     .since = 1,
     .from_first = true,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " ",
     .convert = convert_global_max_pool},
    {.type = "GlobalLpPool",
     .since = 2,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " p ",
     .convert = convert_global_lp_pool},
    {.type = NULL},
};
