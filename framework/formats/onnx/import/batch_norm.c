/* SPDX-License-Identifier: MIT */
/* BatchNormalization, Softmax, LogSoftmax, Dropout. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/fold.h"
#include "framework/formats/onnx/import/window.h"

/* A value that the layer accepts, and that is negligible beside a variance of 1. */
static const float least_epsilon = 2e-12f;

/* Parameter i, 0 or 3, of a normalisation with epsilon 0: scale over standard deviation, and 1. */
static onnx_tensor without_epsilon(onnx_context *c, int i)
{
    const onnx_tensor *scale = onnx_known(c, 1);
    onnx_numbers of = onnx_load_numbers(c, scale), variance = onnx_load_numbers(c, onnx_known(c, 4));
    onnx_numbers made = onnx_new_numbers(c, true, of.shape);
    for (int64_t k = 0; onnx_ok(c) && k < made.count && k < variance.count; k++)
        made.number[k] = i > 0 ? 1 : of.number[k] / sqrt(variance.number[k]);
    return onnx_store_numbers(c, &made, scale->type == ONNX_DOUBLE ? ONNX_DOUBLE : ONNX_FLOAT);
}

static void convert_batch_norm(onnx_context *c)
{
    static const char *const parameters[] = {"weight", "bias", "running_mean", "running_var"};
    onnx_flow x = onnx_in(c, 0);
    if (onnx_integer(c, "spatial", 1) != 1) onnx_unsupported(c, "attribute 'spatial' other than 1");
    if (!onnx_ok(c)) return;
    if (x.shape.rank < 2) {
        onnx_wrong(c, "an input (N,C,...) was expected, found %s", sdlf_shape_print(x.shape).text);
        return;
    }
    if (onnx_flag(c, "training_mode", false)) {
        onnx_batch_norm_training(c);
        return;
    }
    sdlf_batch_norm2d_options options = {.epsilon = onnx_real(c, "epsilon", 1e-5f),
                                         .momentum = 1 - onnx_real(c, "momentum", 0.9f)};
    const bool exact = options.epsilon == 0; /* which the layer would replace by the default, 1e-5 */
    if (exact) options.epsilon = least_epsilon;
    onnx_flow image = x.shape.rank == 2 || x.shape.rank == 4 ? x : onnx_as_column(c, x);
    onnx_flow y = onnx_layer(c, "batch_norm2d", &options, &image, 1);
    for (int i = 0; i < 4; i++) {
        const onnx_tensor *tensor = onnx_known(c, 1 + i);
        if (tensor->count != x.shape.dim[1])
            onnx_wrong(c, "input %d is %s; one number for each of %lld channels was expected", 1 + i,
                       sdlf_shape_print(tensor->shape).text, (long long)x.shape.dim[1]);
        if (exact &&
            i % 3 == 0) { /* folds the variance into the scale: beside a variance of 1 the layer's epsilon vanishes */
            const onnx_tensor made = without_epsilon(c, i);
            onnx_fill_with(c, y, parameters[i], (onnx_fill){.tensor = made});
        } else if (i < 2) {
            onnx_fill_scale(c, y, parameters[i], tensor, 1 - i);
        } else {
            onnx_fill_with(c, y, parameters[i], (onnx_fill){.tensor = *tensor});
        }
    }
    onnx_set_output(c, 0, onnx_reshape(c, y, x.shape));
}

/* Before opset 13 all axes from the given one on form one row; since then only that axis. */
static void convert_softmax(onnx_context *c)
{
    const char *type = strcmp(c->type->type, "Softmax") == 0 ? "softmax" : "log_softmax";
    onnx_flow x = onnx_in(c, 0);
    sdlf_shape shape = x.shape;
    bool rows = c->opset < 13;
    int axis = onnx_axis(c, onnx_integer(c, "axis", rows ? 1 : -1), shape.rank);
    if (axis == onnx_batch_axis(c, x)) x = onnx_batch_fixed(c, x);
    if (!onnx_ok(c)) return;
    sdlf_shape seen = shape;
    if (rows && sdlf_shape_span(shape, axis, shape.rank) != shape.dim[axis]) {
        seen = sdlf_shape(sdlf_shape_span(shape, 0, axis), sdlf_shape_span(shape, axis, shape.rank));
        axis = 1;
    } else if (axis == 0) { /* the layer's axes start after the batch */
        seen = sdlf_shape(1, shape.dim[0], sdlf_shape_span(shape, 1, shape.rank));
        axis = 1;
    }
    onnx_flow y = onnx_reshape(c, x, seen);
    y = onnx_layer(c, type, &(sdlf_softmax_options){.axis = axis}, &y, 1);
    onnx_set_output(c, 0, onnx_reshape(c, y, shape));
}

/* Identity in inference; in training, the plan draws the mask. A requested mask output is all true. */
static void convert_dropout(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    double ratio = c->opset < 12 ? onnx_real(c, "ratio", 0.5f) : onnx_known_number(c, 1, 0.5);
    if (c->opset >= 12 && onnx_has(c, 2) && onnx_known_number(c, 2, 0) != 0 && ratio != 0)
        onnx_unsupported(c, "input 2, training_mode, is true: what is dropped would be random");
    bool drops = ratio > 0 && ratio < 1 && sdlf_dtype_is_float(x.dtype);
    if (drops) x = onnx_layer(c, "dropout", &(sdlf_dropout_options){.probability = (float)ratio}, &x, 1);
    onnx_set_output(c, 0, x);
    if (c->output_count < 2 || c->output[1] == NULL || c->output[1]->readers == 0) return;
    static const uint8_t yes = 1;
    static const float one = 1;
    onnx_tensor mask = {.name = "", .type = ONNX_BOOL, .shape = x.shape, .data = &yes, .uniform = true};
    if (c->opset < 10) { /* as a number, like x */
        mask.type = ONNX_FLOAT;
        mask.data = &one;
    }
    mask.count = sdlf_shape_count(x.shape);
    onnx_set_output_constant(c, 1, &mask);
}

const onnx_operator onnx_normalisation_operators[] = {
    {.type = "BatchNormalization",
     .since = 7,
     .minimum_inputs = 5,
     .maximum_inputs = 5,
     .known = 0x1E,
     .attributes = " epsilon momentum spatial training_mode ",
     .convert = convert_batch_norm},
    {.type = "Softmax",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " axis ",
     .convert = convert_softmax},
    {.type = "LogSoftmax",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " axis ",
     .convert = convert_softmax},
    {.type = "Dropout",
     .since = 7,
     .until = 0,
     .minimum_inputs = 1,
     .maximum_inputs = 3,
     .known = 6,
     .attributes = " ratio seed ",
     .convert = convert_dropout},
    {.type = NULL},
};
