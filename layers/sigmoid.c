/* SPDX-License-Identifier: MIT */
/* sigmoid: y = 1 / (1 + exp(-x)); dx = dy y (1 - y). */
#include "layers/activation.h"

static const sdlf_activation activation = {.function = SDLF_SIGMOID};

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

const sdlf_layer_class sdlf_sigmoid_class = {
    .name = "sigmoid",
    .summary = "1 / (1 + exp(-x))",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = sdlf_activation_infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_sigmoid(sdlf_model *model, sdlf_node x)
{
    return sdlf_model_add(model, &sdlf_sigmoid_class, NULL, &x, 1);
}
