/* SPDX-License-Identifier: MIT */
/* cast: y = x converted to another element type. Floats are truncated toward zero and saturate; nonzero values become
 * true. A gradient exists only from float to float, where the layer does nothing. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "dtype",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_cast_options, dtype),
     .choices = sdlf_layer_dtypes,
     .help = "element type of the output; float is the network's own"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_cast_options *options = layer->options;
    return sdlf_signature_add_output(signature, sdlf_layer_dtype(signature, options->dtype), signature->input_shape[0]);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_layer_copy(context, context->input[0], context->output[0]);
}

/* A gradient reaches only floating-point outputs, and is requested only for floating-point inputs. */
static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    if (sdlf_tensor_present(&context->input_gradient[0])) context->input_gradient[0] = context->output_gradient[0];
    return SDLF_OK;
}

const sdlf_layer_class sdlf_cast_class = {
    .name = "cast",
    .summary = "another element type",
    .options_size = sizeof(sdlf_cast_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_cast(sdlf_model *model, sdlf_node x, const sdlf_cast_options *options)
{
    return sdlf_model_add(model, &sdlf_cast_class, options, &x, 1);
}
