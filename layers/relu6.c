/* SPDX-License-Identifier: MIT */
/* relu6: y = min(max(x, 0), 6); dx = dy where 0 < y < 6, else 0. */
#include "layers/activation.h"

static const sdlf_activation activation = {.function = SDLF_CLIP, .low = 0, .high = 6};

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

const sdlf_layer_class sdlf_relu6_class = {
    .name = "relu6",
    .summary = "min(max(x, 0), 6)",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = sdlf_activation_infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_relu6(sdlf_model *model, sdlf_node x)
{
    return sdlf_model_add(model, &sdlf_relu6_class, NULL, &x, 1);
}
