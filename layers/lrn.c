/* SPDX-License-Identifier: MIT */
/* lrn: normalization over neighbouring channels (Krizhevsky and others, 2012). With s = bias + alpha mean of x^2 over
 * `size` channels around each, those beyond the ends counting as 0: y = x s^-beta. The mean is an average pooling along
 * the channels, so
 *
 *   dx = dy s^-beta - 2 alpha beta x (the pooling's gradient of dy x s^(-beta - 1)) */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "size",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_lrn_options, size),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "channels in the window, half of them before"},
    {.name = "alpha",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_lrn_options, alpha),
     .minimum = 0,
     .maximum = 1e6,
     .fallback = 1e-4,
     .zero_means_default = true,
     .help = "weight of the mean square"},
    {.name = "beta",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_lrn_options, beta),
     .minimum = 0,
     .maximum = 1e6,
     .fallback = 0.75,
     .zero_means_default = true,
     .help = "exponent"},
    {.name = "bias",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_lrn_options, bias),
     .minimum = 0,
     .maximum = 1e6,
     .fallback = 1,
     .zero_means_default = true,
     .help = "added to the weighted mean square"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status != SDLF_OK) return status;
    if (x.rank < 2)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input (N,C,...), found %s", sdlf_shape_print(x).text);
    status = sdlf_signature_add_output(signature, signature->dtype, x);
    return status == SDLF_OK ? sdlf_signature_add_saved(signature, signature->dtype, x) : status;
}

/* The mean over the channels around each, or its gradient: (N,C,...) viewed as (N,1,C,rest). */
static sdlf_status pool(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_operation_kind kind,
                        sdlf_tensor from, sdlf_tensor to)
{
    int size = ((const sdlf_lrn_options *)layer->options)->size;
    sdlf_shape x = from.shape, seen = sdlf_shape(x.dim[0], 1, x.dim[1], sdlf_shape_span(x, 2, x.rank));
    sdlf_operation operation = {
        .kind = kind,
        .in = {sdlf_tensor_reshape(from, seen)},
        .out = {sdlf_tensor_reshape(to, seen)},
        .pool2d = {.window = {.size = {size, 1},
                              .stride = {1, 1},
                              .dilation = {1, 1},
                              .padding_before = {(size - 1) / 2, 0},
                              .padding_after = {size / 2, 0}},
                   .count_padding = true},
    };
    return sdlf_emit(context, &operation);
}

static sdlf_status with_number(sdlf_layer_context *context, sdlf_binary_function function, sdlf_tensor x, double number,
                               sdlf_tensor y)
{
    return sdlf_emit(
        context, &(sdlf_operation){
                     .kind = SDLF_BINARY, .in = {x}, .out = {y}, .binary = {.function = function, .scalar = number}});
}

static sdlf_tensor another(sdlf_layer_context *context)
{
    return sdlf_scratch(context, context->input[0].dtype, context->input[0].shape);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_lrn_options *options = layer->options;
    sdlf_tensor x = context->input[0], s = context->saved[0];
    sdlf_tensor squares = another(context), mean = another(context), scaled = another(context),
                power = another(context);
    sdlf_status status = sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, x, x, squares);
    if (status == SDLF_OK) status = pool(layer, context, SDLF_AVG_POOL2D_FORWARD, squares, mean);
    if (status == SDLF_OK) status = sdlf_layer_scale(context, mean, (double)options->alpha, scaled);
    if (status == SDLF_OK) status = with_number(context, SDLF_BINARY_ADD, scaled, (double)options->bias, s);
    if (status == SDLF_OK) status = with_number(context, SDLF_BINARY_POWER, s, -(double)options->beta, power);
    return status == SDLF_OK ? sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, x, power, context->output[0]) : status;
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_lrn_options *options = layer->options;
    sdlf_tensor x = context->input[0], s = context->saved[0], dy = context->output_gradient[0];
    sdlf_tensor dx = context->input_gradient[0];
    if (!sdlf_tensor_present(&dx)) return SDLF_OK;
    sdlf_tensor power = another(context), direct = another(context), quotient = another(context);
    sdlf_tensor product = another(context), weighed = another(context), pooled = another(context);
    sdlf_tensor around = another(context);
    double factor = 2 * (double)options->alpha * (double)options->beta;
    sdlf_status status = with_number(context, SDLF_BINARY_POWER, s, -(double)options->beta, power);
    if (status == SDLF_OK) status = sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, dy, power, direct);
    if (status == SDLF_OK) status = sdlf_layer_binary(context, SDLF_BINARY_DIVIDE, direct, s, quotient);
    if (status == SDLF_OK) status = sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, quotient, x, product);
    if (status == SDLF_OK) status = sdlf_layer_scale(context, product, factor, weighed);
    if (status == SDLF_OK) status = pool(layer, context, SDLF_AVG_POOL2D_BACKWARD, weighed, pooled);
    if (status == SDLF_OK) status = sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, pooled, x, around);
    return status == SDLF_OK ? sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, direct, around, dx) : status;
}

const sdlf_layer_class sdlf_lrn_class = {
    .name = "lrn",
    .summary = "each element divided by a mean over neighbouring channels",
    .options_size = sizeof(sdlf_lrn_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_lrn(sdlf_model *model, sdlf_node x, const sdlf_lrn_options *options)
{
    return sdlf_model_add(model, &sdlf_lrn_class, options, &x, 1);
}
