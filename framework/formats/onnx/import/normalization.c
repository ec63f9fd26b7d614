/* SPDX-License-Identifier: MIT */
/* LayerNormalization, RMSNormalization, MeanVarianceNormalization, InstanceNormalization, GroupNormalization, LRN,
 * LpNormalization. With constant scales and biases they are layers with trainable parameters; with computed ones they
 * are composed of arithmetic layers. */
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

/* (x - mean) / sqrt(variance + epsilon) over the axes; the variance is computed from x - mean, to avoid
 * cancellation. */
static onnx_flow normalised(onnx_context *c, onnx_flow x, sdlf_shape axes, double epsilon, onnx_flow *mean,
                            onnx_flow *inverse)
{
    *mean = onnx_reduce(c, x, SDLF_REDUCE_LAYER_MEAN, axes, true);
    onnx_flow both[] = {x, *mean};
    onnx_flow rest = onnx_binary(c, "sub", both);
    onnx_flow twice[] = {rest, rest};
    onnx_flow variance = onnx_reduce(c, onnx_binary(c, "mul", twice), SDLF_REDUCE_LAYER_MEAN, axes, true);
    onnx_flow sum = onnx_with_number(c, "add", variance, epsilon);
    onnx_flow root = onnx_layer(c, "unary", &(sdlf_unary_options){.function = SDLF_UNARY_SQRT}, &sum, 1);
    *inverse = onnx_layer(c, "unary", &(sdlf_unary_options){.function = SDLF_UNARY_RECIPROCAL}, &root, 1);
    onnx_flow factors[] = {rest, *inverse};
    return onnx_binary(c, "mul", factors);
}

/* x scale + shift, both of which broadcast; shift may be absent (input 2). */
static onnx_flow scaled(onnx_context *c, onnx_flow x, onnx_flow scale, const onnx_flow *shift)
{
    onnx_flow factors[] = {x, scale};
    onnx_flow y = onnx_binary(c, "mul", factors);
    if (shift == NULL) return y;
    onnx_flow terms[] = {y, *shift};
    return onnx_binary(c, "add", terms);
}

/* The layer's parameters from constants; a bias may be omitted. */
static void fill_affine(onnx_context *c, onnx_flow y)
{
    onnx_fill_scale(c, y, "weight", onnx_known(c, 1), 1);
    onnx_fill_scale(c, y, "bias", onnx_has(c, 2) ? onnx_known(c, 2) : NULL, 0);
}

/* True if input i is omitted, or a constant with that many elements. */
static bool fills(const onnx_context *c, int input, int64_t count)
{
    return !onnx_has(c, input) || (onnx_is_constant(c, input) && c->input[input]->tensor.count == count);
}

/* Output 1 or 2 of the layer, in the standard's shape. */
static void give_statistic(onnx_context *c, int output, onnx_flow y, sdlf_shape shape)
{
    if (output < c->output_count && c->output[output] != NULL)
        onnx_set_output(c, output, onnx_reshape(c, onnx_layer_output(c, y, output), shape));
}

static void convert_layer_norm(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), mean, inverse;
    int axis = onnx_axis(c, onnx_integer(c, "axis", -1), x.shape.rank);
    float epsilon = onnx_real(c, "epsilon", 1e-5f);
    if (!onnx_ok(c)) return;
    int64_t count = sdlf_shape_span(x.shape, axis, x.shape.rank);
    if (onnx_is_constant(c, 1) && fills(c, 1, count) && fills(c, 2, count) && epsilon > 0) {
        sdlf_shape shape = x.shape;
        for (int i = axis; i < shape.rank; i++) shape.dim[i] = 1;
        onnx_flow y = onnx_layer(c, "layer_norm",
                                 &(sdlf_layer_norm_options){.axis = axis - x.shape.rank, .epsilon = epsilon}, &x, 1);
        if (onnx_ok(c)) fill_affine(c, y);
        onnx_set_output(c, 0, y);
        give_statistic(c, 1, y, shape);
        give_statistic(c, 2, y, shape);
        return;
    }
    sdlf_shape axes = SDLF_SCALAR;
    for (int i = axis; i < x.shape.rank; i++) axes.dim[axes.rank++] = i;
    onnx_flow y = normalised(c, x, axes, (double)epsilon, &mean, &inverse);
    onnx_flow shift = onnx_has(c, 2) ? onnx_in(c, 2) : x;
    onnx_set_output(c, 0, scaled(c, y, onnx_in(c, 1), onnx_has(c, 2) ? &shift : NULL));
    onnx_set_output(c, 1, mean);
    onnx_set_output(c, 2, inverse);
}

/* Input i, one value per channel, as (C,1,1...). */
static onnx_flow channels(onnx_context *c, int input, int rank)
{
    onnx_flow flow = onnx_in(c, input);
    sdlf_shape shape = {.rank = rank - 1, .dim = {flow.shape.dim[0]}};
    for (int i = 1; i < shape.rank; i++) shape.dim[i] = 1;
    return onnx_reshape(c, flow, shape);
}

/* A running statistic: momentum times the old one, plus the rest times the batch's, as (C). */
static onnx_flow running(onnx_context *c, onnx_flow old, onnx_flow batch, double momentum)
{
    onnx_flow terms[] = {onnx_with_number(c, "mul", old, momentum),
                         onnx_with_number(c, "mul", onnx_reshape(c, batch, old.shape), 1 - momentum)};
    return onnx_binary(c, "add", terms);
}

void onnx_batch_norm_training(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), mean, inverse;
    double epsilon = (double)onnx_real(c, "epsilon", 1e-5f), momentum = (double)onnx_real(c, "momentum", 0.9f);
    sdlf_shape axes = sdlf_shape(0);
    for (int i = 2; i < x.shape.rank; i++) axes.dim[axes.rank++] = i;
    onnx_flow y = normalised(c, x, axes, epsilon, &mean, &inverse);
    onnx_flow shift = channels(c, 2, x.shape.rank);
    onnx_set_output(c, 0, scaled(c, y, channels(c, 1, x.shape.rank), &shift));
    if (c->output_count > 1) onnx_set_output(c, 1, running(c, onnx_in(c, 3), mean, momentum));
    if (c->output_count < 3) return;
    onnx_flow variance = onnx_with_number(c, "sub", onnx_with_number(c, "pow", inverse, -2), epsilon);
    onnx_set_output(c, 2, running(c, onnx_in(c, 4), variance, momentum));
}

static void convert_group_norm(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), mean, inverse;
    bool groups = strcmp(c->type->type, "GroupNormalization") == 0;
    int64_t count = onnx_integer(c, "num_groups", 0);
    float epsilon = onnx_real(c, "epsilon", 1e-5f);
    sdlf_shape axes = SDLF_SCALAR;
    if (onnx_ok(c) && (x.shape.rank < 3 || onnx_shape(c, 1).rank != 1 || onnx_shape(c, 2).rank != 1))
        onnx_wrong(c, "an input (N,C,...) with a scale and a bias (C) was expected");
    if (groups && (count < 1 || count > INT32_MAX)) onnx_wrong(c, "attribute 'num_groups' is %lld", (long long)count);
    if (!onnx_ok(c)) return;
    int64_t channel_count = x.shape.dim[1];
    sdlf_shape shape = x.shape;
    if (groups && c->opset < 21 &&
        channel_count % count == 0) { /* one value per group: treats the groups as channels */
        x = onnx_reshape(c, x, sdlf_shape(shape.dim[0], count, sdlf_shape_span(shape, 1, shape.rank) / count));
        channel_count = count;
    }
    if (!onnx_ok(c)) return;
    if (onnx_is_constant(c, 1) && onnx_is_constant(c, 2) && fills(c, 1, channel_count) && fills(c, 2, channel_count) &&
        epsilon > 0) {
        onnx_flow y =
            onnx_layer(c, "group_norm", &(sdlf_group_norm_options){.groups = (int)count, .epsilon = epsilon}, &x, 1);
        if (onnx_ok(c)) fill_affine(c, y);
        onnx_set_output(c, 0, onnx_reshape(c, y, shape));
        return;
    }
    if (groups) onnx_unsupported(c, "of a scale and a bias that are computed");
    for (int i = 2; i < x.shape.rank; i++) axes.dim[axes.rank++] = i;
    onnx_flow y = normalised(c, x, axes, (double)epsilon, &mean, &inverse);
    onnx_flow shift = channels(c, 2, x.shape.rank);
    onnx_set_output(c, 0, scaled(c, y, channels(c, 1, x.shape.rank), &shift));
}

/* x / sqrt(mean of squares + epsilon) scale, over the axis and all following ones. */
static void convert_rms_norm(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), twice[] = {x, x};
    int axis = onnx_axis(c, onnx_integer(c, "axis", -1), x.shape.rank);
    sdlf_shape axes = SDLF_SCALAR;
    for (int i = axis; i < x.shape.rank && onnx_ok(c); i++) axes.dim[axes.rank++] = i;
    onnx_flow mean = onnx_reduce(c, onnx_binary(c, "mul", twice), SDLF_REDUCE_LAYER_MEAN, axes, true);
    onnx_flow sum = onnx_with_number(c, "add", mean, (double)onnx_real(c, "epsilon", 1e-5f));
    onnx_flow factors[] = {x, onnx_with_number(c, "pow", sum, -0.5)};
    onnx_set_output(c, 0, scaled(c, onnx_binary(c, "mul", factors), onnx_in(c, 1), NULL));
}

static sdlf_shape axes_of(onnx_context *c, int rank, sdlf_shape fallback)
{
    onnx_list list = onnx_integers(c, "axes");
    sdlf_shape axes = {.rank = list.count > SDLF_MAX_RANK ? SDLF_MAX_RANK : list.count};
    if (list.count < 0) return fallback;
    for (int i = 0; i < axes.rank; i++) axes.dim[i] = onnx_axis(c, list.item[i], rank);
    return axes;
}

static void convert_mean_variance(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), mean, inverse;
    sdlf_shape axes = axes_of(c, x.shape.rank, sdlf_shape(0, 2, 3));
    onnx_set_output(c, 0, normalised(c, x, axes, 1e-9, &mean, &inverse));
}

/* x divided by its L1 or L2 norm along an axis; zeros remain zeros. */
static void convert_lp_norm(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int64_t p = onnx_integer(c, "p", 2);
    int axis = onnx_axis(c, onnx_integer(c, "axis", -1), x.shape.rank);
    if (p != 1 && p != 2) onnx_wrong(c, "attribute 'p' is %lld", (long long)p);
    onnx_flow norm = onnx_reduce(c, x, p == 1 ? SDLF_REDUCE_LAYER_L1 : SDLF_REDUCE_LAYER_L2, sdlf_shape(axis), true);
    onnx_flow none = onnx_cast(c, onnx_with_number(c, "equal", norm, 0), SDLF_FLOAT32), terms[] = {norm, none};
    onnx_flow factors[] = {x, onnx_binary(c, "add", terms)};
    onnx_set_output(c, 0, onnx_binary(c, "div", factors));
}

static void convert_lrn(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int64_t size = onnx_integer(c, "size", 0);
    sdlf_lrn_options options = {.size = (int)size,
                                .alpha = onnx_real(c, "alpha", 1e-4f),
                                .beta = onnx_real(c, "beta", 0.75f),
                                .bias = onnx_real(c, "bias", 1)};
    if (size < 1 || size > 65535) onnx_wrong(c, "attribute 'size' is %lld", (long long)size);
    if (options.alpha == 0 || options.beta == 0 || options.bias == 0)
        onnx_unsupported(c, "attribute 'alpha', 'beta' or 'bias' of 0");
    onnx_set_output(c, 0, onnx_layer(c, "lrn", &options, &x, 1));
}

const onnx_operator onnx_row_operators[] = {
    {.type = "LayerNormalization",
     .since = 17,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .attributes = " axis epsilon stash_type ",
     .convert = convert_layer_norm},
    {.type = "InstanceNormalization",
     .since = 6,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .attributes = " epsilon ",
     .convert = convert_group_norm},
    {.type = "GroupNormalization",
     .since = 18,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .known = 6,
     .attributes = " epsilon num_groups stash_type ",
     .convert = convert_group_norm},
    {.type = "RMSNormalization",
     .since = 23,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " axis epsilon stash_type ",
     .convert = convert_rms_norm},
    {.type = "MeanVarianceNormalization",
     .since = 9,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " axes ",
     .convert = convert_mean_variance},
    {.type = "LpNormalization",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " axis p ",
     .convert = convert_lp_norm},
    {.type = "LRN",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " alpha beta bias size ",
     .convert = convert_lrn},
    {.type = NULL},
};
