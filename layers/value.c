/* SPDX-License-Identifier: MIT */
/* value: no input; y is the layer's parameter "value", with the shape given by the options, without a batch axis.
 *
 * Parameters are float32: integers are exact up to 2^24. It is trained only if `trainable` is set. A shape may have a
 * dimension of 0: then there is no parameter, and y can only be an output of the network, since no other layer accepts
 * it. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "shape",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_value_options, shape),
     .minimum = 0,
     .maximum = INT32_MAX,
     .help = "shape of the value, which has no batch"},
    {.name = "dtype",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_value_options, dtype),
     .choices = sdlf_layer_dtypes,
     .help = "element type; float is the network's own"},
    {.name = "trainable",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_value_options, trainable),
     .help = "trained; only floats"},
    {.name = NULL},
};

static bool is_empty(const sdlf_value_options *options)
{
    return sdlf_shape_count(options->shape) == 0;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_value_options *options = layer->options;
    if (options->trainable && options->dtype != 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "only floats can be trained, found %s",
                         sdlf_layer_dtypes[options->dtype]);
    sdlf_dtype dtype = sdlf_layer_dtype(signature, options->dtype);
    if (is_empty(options)) { /* the only output without elements: readers read nothing */
        signature->output_dtype[0] = dtype;
        signature->output_shape[0] = options->shape;
        signature->output_count = 1;
        return SDLF_OK;
    }
    sdlf_parameter_spec value = {
        .name = "value",
        .shape = options->shape,
        .initializer = SDLF_INIT_ZERO,
        .trainable = options->trainable,
        .decay = false,
    };
    sdlf_status status = sdlf_signature_add_parameter(signature, value);
    if (status != SDLF_OK) return status;
    return sdlf_signature_add_output(signature, dtype, options->shape);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    if (is_empty(layer->options)) return SDLF_OK;
    return sdlf_layer_copy(context, context->parameter[0], context->output[0]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    if (is_empty(layer->options)) return SDLF_OK;
    return sdlf_layer_copy(context, context->output_gradient[0], context->parameter_gradient[0]);
}

const sdlf_layer_class sdlf_value_class = {
    .name = "value",
    .summary = "a value that belongs to the network",
    .options_size = sizeof(sdlf_value_options),
    .fields = fields,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_value(sdlf_model *model, const sdlf_value_options *options)
{
    return sdlf_model_add(model, &sdlf_value_class, options, NULL, 0);
}
