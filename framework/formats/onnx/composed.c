/* Operators put together from others: LayerNormalization, InstanceNormalization, LRN. */
#include "framework/formats/onnx/fold.h"

/* (x - mean) / sqrt(variance + epsilon) over the axes; the mean of squares is taken of what is left without the mean, so that
 * nothing cancels. */
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

static void convert_layer_norm(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), mean, inverse;
    int axis = onnx_axis(c, onnx_integer(c, "axis", -1), x.shape.rank);
    sdlf_shape axes = SDLF_SCALAR;
    for (int i = axis; i < x.shape.rank; i++) axes.dim[axes.rank++] = i;
    onnx_flow y = normalised(c, x, axes, (double)onnx_real(c, "epsilon", 1e-5f), &mean, &inverse);
    onnx_flow shift = onnx_has(c, 2) ? onnx_in(c, 2) : x;
    onnx_give(c, 0, scaled(c, y, onnx_in(c, 1), onnx_has(c, 2) ? &shift : NULL));
    onnx_give(c, 1, mean);
    onnx_give(c, 2, inverse);
}

/* Input i, one number for each channel, as (C,1,1...). */
static onnx_flow channels(onnx_context *c, int input, int rank)
{
    onnx_flow flow = onnx_in(c, input);
    sdlf_shape shape = {.rank = rank - 1, .dim = {flow.shape.dim[0]}};
    for (int i = 1; i < shape.rank; i++) shape.dim[i] = 1;
    return onnx_reshape(c, flow, shape);
}

static void convert_instance_norm(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), mean, inverse;
    sdlf_shape axes = SDLF_SCALAR;
    if (onnx_ok(c) && (x.shape.rank < 3 || onnx_shape(c, 1).rank != 1 || onnx_shape(c, 2).rank != 1))
        onnx_wrong(c, "an input (N,C,...) with a scale and a bias (C) was expected");
    for (int i = 2; i < x.shape.rank; i++) axes.dim[axes.rank++] = i;
    onnx_flow y = normalised(c, x, axes, (double)onnx_real(c, "epsilon", 1e-5f), &mean, &inverse);
    onnx_flow shift = channels(c, 2, x.shape.rank);
    onnx_give(c, 0, scaled(c, y, channels(c, 1, x.shape.rank), &shift));
}

/* y = x / (bias + alpha / size * the sum of squares over `size` neighbouring channels)^beta. The channels are the rows of a
 * picture (N,1,C,pixels), over which an average pooling that counts its padding runs. */
static void convert_lrn(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int64_t size = onnx_integer(c, "size", 0);
    if (size < 1 || size > 65535) onnx_wrong(c, "attribute 'size' is %lld", (long long)size);
    if (onnx_ok(c) && x.shape.rank < 3)
        onnx_wrong(c, "an input (N,C,...) was expected, found %s", sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    int before = (int)((size - 1) / 2), after = (int)(size - 1) - before;
    onnx_flow twice[] = {x, x};
    onnx_flow squares =
        onnx_reshape(c, onnx_binary(c, "mul", twice),
                     sdlf_shape(x.shape.dim[0], 1, x.shape.dim[1], sdlf_shape_span(x.shape, 2, x.shape.rank)));
    sdlf_pool2d_options pool = {.window = {(int)size, 1},
                                .stride = {1, 1},
                                .padding = {before, 0},
                                .padding_extra = {after - before, 0},
                                .count_padding = true};
    onnx_flow mean = onnx_reshape(c, onnx_layer(c, "avg_pool2d", &pool, &squares, 1), x.shape);
    onnx_flow base = onnx_with_number(c, "add", onnx_with_number(c, "mul", mean, (double)onnx_real(c, "alpha", 1e-4f)),
                                      (double)onnx_real(c, "bias", 1));
    onnx_flow quotient[] = {x, onnx_with_number(c, "pow", base, (double)onnx_real(c, "beta", 0.75f))};
    onnx_give(c, 0, onnx_binary(c, "div", quotient));
}

const onnx_operator onnx_composed_operators[] = {
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
     .convert = convert_instance_norm},
    {.type = "LRN",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " alpha beta bias size ",
     .convert = convert_lrn},
    {.type = NULL},
};
