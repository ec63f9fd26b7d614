/* SPDX-License-Identifier: MIT */
/* fully_connected: y = x weight^T + bias for rows of x, which span the axes from `axis` on: from the first one after the
 * batch, or, for tokens, only the last one.
 *
 *   x (N, ..., I1, I2, ...) read as (M,I), weight (U,I), bias (U) -> y (N, ..., U)
 *   dx = dy weight; dweight = dy^T x; dbias = the sum of dy over the M rows. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "units",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_fully_connected_options, units),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "outputs of a sample"},
    {.name = "no_bias",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_fully_connected_options, no_bias),
     .help = "leave the bias out"},
    {.name = "initializer",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_fully_connected_options, initializer),
     .choices = sdlf_initializer_names,
     .help = "initial weight; he_uniform by default"},
    {.name = "axis",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_fully_connected_options, axis),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .fallback = 1,
     .zero_means_default = true,
     .help = "first axis of an output's inputs; -1: the last axis, so each token by itself"},
    {.name = "initializer_scale",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_fully_connected_options, initializer_scale),
     .maximum = 1000,
     .fallback = 0.1,
     .zero_means_default = true,
     .help = "bound of uniform, deviation of normal"},
    {.name = NULL},
};

/* The first axis of a row; -1: the axis is the batch or out of range. */
static int row_axis(const sdlf_layer *layer, sdlf_shape x)
{
    int axis = sdlf_layer_axis_from_start(((const sdlf_fully_connected_options *)layer->options)->axis, x.rank);
    return axis >= 1 && axis < x.rank ? axis : -1;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_fully_connected_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0];
    if (x.rank < 2)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input (N, ...), found %s", sdlf_shape_print(x).text);
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status != SDLF_OK) return status;
    int axis = row_axis(layer, x);
    if (axis < 0)
        return sdlf_fail(SDLF_ERROR_SHAPE, "axis %d is not one of its input %s after the batch", options->axis,
                         sdlf_shape_print(x).text);
    int64_t inputs = sdlf_shape_span(x, axis, x.rank), units = options->units;
    sdlf_shape y = {.rank = axis + 1};
    for (int i = 0; i < axis; i++) y.dim[i] = x.dim[i];
    y.dim[axis] = units;
    status = sdlf_signature_add_output(signature, signature->dtype, y);
    if (status != SDLF_OK) return status;
    int kind = options->initializer == SDLF_INIT_DEFAULT ? SDLF_INIT_HE_UNIFORM : options->initializer;
    status = sdlf_signature_add_parameter(signature, (sdlf_parameter_spec){.name = "weight",
                                                                           .shape = sdlf_shape(units, inputs),
                                                                           .initializer = kind,
                                                                           .scale = options->initializer_scale,
                                                                           .fan_in = inputs,
                                                                           .fan_out = units,
                                                                           .trainable = true,
                                                                           .decay = true});
    if (status != SDLF_OK || options->no_bias) return status;
    return sdlf_signature_add_parameter(
        signature, (sdlf_parameter_spec){
                       .name = "bias", .shape = sdlf_shape(units), .initializer = SDLF_INIT_ZERO, .trainable = true});
}

/* A tensor viewed as a matrix of rows of `length` elements; an absent tensor stays absent. */
static sdlf_tensor rows(sdlf_tensor tensor, int64_t length)
{
    if (!sdlf_tensor_present(&tensor)) return tensor;
    return sdlf_tensor_reshape(tensor, sdlf_shape(sdlf_tensor_count(&tensor) / length, length));
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_fully_connected_options *options = layer->options;
    sdlf_tensor weight = context->parameter[0];
    sdlf_operation operation = {
        .kind = SDLF_GEMM,
        .in = {rows(context->input[0], weight.shape.dim[1]), weight},
        .out = {rows(context->output[0], weight.shape.dim[0])},
        .gemm = {.transpose_b = true, .alpha = 1},
    };
    if (!options->no_bias) operation.in[2] = context->parameter[1];
    return sdlf_emit(context, &operation);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_fully_connected_options *options = layer->options;
    int64_t units = context->parameter[0].shape.dim[0], inputs = context->parameter[0].shape.dim[1];
    sdlf_tensor dy = rows(context->output_gradient[0], units);
    sdlf_operation bias = {
        .kind = SDLF_REDUCE,
        .in = {dy},
        .reduce = {.function = SDLF_REDUCE_SUM, .axis = 0},
    };
    sdlf_operation weight = {
        .kind = SDLF_GEMM,
        .in = {dy, rows(context->input[0], inputs)},
        .out = {context->parameter_gradient[0]},
        .gemm = {.transpose_a = true, .alpha = 1},
    };
    sdlf_operation input = {
        .kind = SDLF_GEMM,
        .in = {dy, context->parameter[0]},
        .out = {rows(context->input_gradient[0], inputs)},
        .gemm = {.alpha = 1},
    };
    sdlf_status status = SDLF_OK;
    if (!options->no_bias) {
        bias.out[0] = context->parameter_gradient[1];
        status = sdlf_emit(context, &bias);
    }
    if (status == SDLF_OK) status = sdlf_emit(context, &weight);
    return status == SDLF_OK ? sdlf_emit(context, &input) : status;
}

const sdlf_layer_class sdlf_fully_connected_class = {
    .name = "fully_connected",
    .summary = "each output a weighted sum of all inputs",
    .options_size = sizeof(sdlf_fully_connected_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_fully_connected(sdlf_model *model, sdlf_node x, const sdlf_fully_connected_options *options)
{
    return sdlf_model_add(model, &sdlf_fully_connected_class, options, &x, 1);
}
