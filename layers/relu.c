/* SPDX-License-Identifier: MIT */
/* relu: y = max(x, 0); dx = dy where y > 0, else 0 (so 0 at x = 0). */
#include "layers/activation.h"

static const sdlf_activation activation = {.function = SDLF_RELU};

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_activation_forward(context, activation);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_activation_backward(context, activation);
}

const sdlf_layer_class sdlf_relu_class = {
    .name = "relu",
    .summary = "max(x, 0)",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = sdlf_activation_infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_relu(sdlf_model *model, sdlf_node x)
{
    return sdlf_model_add(model, &sdlf_relu_class, NULL, &x, 1);
}
