/* SPDX-License-Identifier: MIT */
/* tanh: y = tanh(x); dx = dy (1 - y^2). */
#include "layers/activation.h"

static const sdlf_activation activation = {.function = SDLF_TANH};

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

const sdlf_layer_class sdlf_tanh_class = {
    .name = "tanh",
    .summary = "hyperbolic tangent",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = sdlf_activation_infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_tanh(sdlf_model *model, sdlf_node x)
{
    return sdlf_model_add(model, &sdlf_tanh_class, NULL, &x, 1);
}
