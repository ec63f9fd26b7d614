/* SPDX-License-Identifier: MIT */
/* clip: y = min(max(x, low), high); dx = dy where low < y < high, else 0. */
#include "layers/activation.h"

#include <float.h>
#include <math.h>

/* Bounds reach the largest float: 3.4028235e38 rounds to it, and is what files contain. For float64 it is no bound. */

static const sdlf_field fields[] = {
    {.name = "low",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_clip_options, low),
     .minimum = -3.4028235e38,
     .maximum = 3.4028235e38,
     .help = "smallest output"},
    {.name = "high",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_clip_options, high),
     .minimum = -3.4028235e38,
     .maximum = 3.4028235e38,
     .help = "largest output"},
    {.name = NULL},
};

static sdlf_activation activation_of(const sdlf_layer *layer, const sdlf_layer_context *context)
{
    const sdlf_clip_options *options = layer->options;
    sdlf_activation clip = {.function = SDLF_CLIP, .low = options->low, .high = options->high};
    if (context->input[0].dtype == SDLF_FLOAT64 && clip.low <= -FLT_MAX) clip.low = -INFINITY;
    if (context->input[0].dtype == SDLF_FLOAT64 && clip.high >= FLT_MAX) clip.high = INFINITY;
    return clip;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_clip_options *options = layer->options;
    if (!(options->low < options->high))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected low < high, found low %g and high %g", (double)options->low,
                         (double)options->high);
    return sdlf_activation_infer(layer, signature);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_activation_forward(context, activation_of(layer, context));
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_activation_backward(context, activation_of(layer, context));
}

const sdlf_layer_class sdlf_clip_class = {
    .name = "clip",
    .summary = "min(max(x, low), high)",
    .options_size = sizeof(sdlf_clip_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_clip(sdlf_model *model, sdlf_node x, const sdlf_clip_options *options)
{
    return sdlf_model_add(model, &sdlf_clip_class, options, &x, 1);
}
