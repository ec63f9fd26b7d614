/* SPDX-License-Identifier: MIT */
/* leaky_relu: y = x where x > 0, else slope x; dx = dy where y > 0, else slope dy. */
#include "layers/activation.h"

static const sdlf_field fields[] = {
    {.name = "slope",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_leaky_relu_options, slope),
     .minimum = 0,
     .maximum = 1e6,
     .fallback = 0.01,
     .zero_means_default = true,
     .help = "slope of the negative side"},
    {.name = NULL},
};

static sdlf_activation activation_of(const sdlf_layer *layer)
{
    const sdlf_leaky_relu_options *options = layer->options;
    return (sdlf_activation){.function = SDLF_LEAKY_RELU, .slope = options->slope};
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_activation_forward(context, activation_of(layer));
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_activation_backward(context, activation_of(layer));
}

const sdlf_layer_class sdlf_leaky_relu_class = {
    .name = "leaky_relu",
    .summary = "x, or slope x where x is negative",
    .options_size = sizeof(sdlf_leaky_relu_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = sdlf_activation_infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_leaky_relu(sdlf_model *model, sdlf_node x, const sdlf_leaky_relu_options *options)
{
    return sdlf_model_add(model, &sdlf_leaky_relu_class, options, &x, 1);
}
