/* SPDX-License-Identifier: MIT */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, as found in graphs exported for training. */
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

/* x with an axis of 1 inserted at position 1. */
static onnx_flow with_classes(onnx_context *c, onnx_flow x)
{
    return onnx_ok(c) && x.shape.rank > 0 ? onnx_split_axis(c, x, 0, x.shape.dim[0]) : x;
}

/* -w[label] x[label] of scores (N, classes, ...), 0 for ignored labels; and the divisor of its sum. */
static void loss(onnx_context *c, onnx_flow x)
{
    onnx_word reduction = onnx_text(c, "reduction", "mean");
    bool none = strcmp(reduction.text, "none") == 0, sum = strcmp(reduction.text, "sum") == 0;
    if (!none && !sum && strcmp(reduction.text, "mean") != 0)
        onnx_wrong(c, "attribute 'reduction' is '%s'", reduction.text);
    if (onnx_ok(c) && (x.shape.rank < 2 || onnx_shape(c, 1).rank != x.shape.rank - 1))
        onnx_wrong(c, "scores %s with labels %s", sdlf_shape_print(x.shape).text,
                   sdlf_shape_print(onnx_shape(c, 1)).text);
    if (!onnx_ok(c)) return;
    int64_t classes = x.shape.dim[1];
    onnx_flow label = with_classes(c, onnx_cast(c, onnx_in(c, 1), SDLF_INT64));
    onnx_flow hot = onnx_elementwise(c, "equal", label, onnx_count_up(c, 0, 1, classes, 1, x.shape.rank));
    if (onnx_has_attribute(c, "ignore_index")) {
        int64_t ignored = onnx_integer(c, "ignore_index", 0);
        onnx_flow counts = onnx_not(c, onnx_elementwise(c, "equal", label, onnx_int64s(c, &ignored, SDLF_SCALAR)));
        hot = onnx_elementwise(c, "and", hot, counts);
    }
    onnx_flow weight = onnx_number(c, SDLF_FLOAT32, 1), zero = onnx_number(c, SDLF_FLOAT32, 0);
    if (onnx_has(c, 2)) {
        sdlf_shape shape = {.rank = x.shape.rank - 1, .dim = {classes}};
        for (int i = 1; i < shape.rank; i++) shape.dim[i] = 1;
        weight = onnx_reshape(c, onnx_in(c, 2), shape);
    }
    onnx_flow each = onnx_choose(c, hot, onnx_elementwise(c, "mul", x, onnx_with_number(c, "mul", weight, -1)), zero);
    if (none) {
        onnx_set_output(c, 0, onnx_reduce(c, each, SDLF_REDUCE_LAYER_SUM, sdlf_shape(1), false));
        return;
    }
    onnx_flow all = onnx_reduce(c, each, SDLF_REDUCE_LAYER_SUM, SDLF_SCALAR, false);
    if (!sum)
        all = onnx_elementwise(
            c, "div", all,
            onnx_reduce(c, onnx_choose(c, hot, weight, zero), SDLF_REDUCE_LAYER_SUM, SDLF_SCALAR, false));
    onnx_set_output(c, 0, all);
}

static void convert_likelihood(onnx_context *c)
{
    loss(c, onnx_in(c, 0));
}

static void convert_cross_entropy(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    x = onnx_layer(c, "log_softmax", &(sdlf_softmax_options){.axis = 1}, &x, 1);
    loss(c, x);
    onnx_set_output(c, 1, x);
}

const onnx_operator onnx_loss_operators[] = {
    {.type = "NegativeLogLikelihoodLoss",
     .since = 12,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .attributes = " ignore_index reduction ",
     .convert = convert_likelihood},
    {.type = "SoftmaxCrossEntropyLoss",
     .since = 12,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .attributes = " ignore_index reduction ",
     .convert = convert_cross_entropy},
    {.type = NULL},
};
