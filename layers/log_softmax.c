/* SPDX-License-Identifier: MIT */
/* log_softmax: y = x - log sum exp(x) along an axis; dx = dy - exp(y) sum dy. Axis and shapes are softmax's. */
#include "layers/softmax.h"

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_softmax_emit(layer, context, SDLF_LOG_SOFTMAX_FORWARD);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_softmax_emit_backward(layer, context, SDLF_LOG_SOFTMAX_BACKWARD);
}

const sdlf_layer_class sdlf_log_softmax_class = {
    .name = "log_softmax",
    .summary = "logarithms of probabilities along an axis",
    .options_size = sizeof(sdlf_softmax_options),
    .fields = sdlf_softmax_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = sdlf_softmax_infer,
    .forward = forward,
    .backward = backward,
    .scores = SDLF_SCORES_LOG_PROBABILITIES,
};

sdlf_node sdlf_log_softmax(sdlf_model *model, sdlf_node x)
{
    return sdlf_model_add(model, &sdlf_log_softmax_class, NULL, &x, 1);
}
