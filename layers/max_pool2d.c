/* SPDX-License-Identifier: MIT */
/* max_pool2d: the largest value of each window.
 *
 *   x (N,C,H,W) -> y (N,C,P,Q); padding never wins.
 *   dx: where several inputs of a window tie for the maximum, its dy is shared equally among them (ties "share") or
 *   goes to the first in row-major order ("first", as other frameworks do). */
#include "layers/pool2d.h"

static const char *const ties_names[] = {"share", "first", NULL}; /* in the order of sdlf_ties */

static const sdlf_field fields[] = {
    {.name = "window",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_pool2d_options, window),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "height and width of the window"},
    {.name = "stride",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_pool2d_options, stride),
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "steps between windows; the window by default"},
    {.name = "padding",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_pool2d_options, padding),
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "a border that is never the maximum"},
    {.name = "padding_extra",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_pool2d_options, padding_extra),
     .minimum = -SDLF_MAX_LAYER_WINDOW,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "more border below and right; less if negative"},
    {.name = "dilation",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_pool2d_options, dilation),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .fallback = 1,
     .zero_means_default = true,
     .help = "distance between the window's elements"},
    {.name = "ties",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_pool2d_options, ties),
     .choices = ties_names,
     .help = "which of equal maxima get the gradient"},
    {.name = NULL},
};

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_pool2d_options *options = layer->options;
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_MAX_POOL2D_FORWARD,
                                  .in = {context->input[0]},
                                  .out = {context->output[0]},
                                  .pool2d = {.window = sdlf_pool2d_window(options), .ties = (sdlf_ties)options->ties},
                              });
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_pool2d_options *options = layer->options;
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_MAX_POOL2D_BACKWARD,
                                  .in = {context->input[0], context->output[0], context->output_gradient[0]},
                                  .out = {context->input_gradient[0]},
                                  .pool2d = {.window = sdlf_pool2d_window(options), .ties = (sdlf_ties)options->ties},
                              });
}

const sdlf_layer_class sdlf_max_pool2d_class = {
    .name = "max_pool2d",
    .summary = "the largest value of each window",
    .options_size = sizeof(sdlf_pool2d_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .is_identity_in_inference = sdlf_pool2d_is_identity,
    .infer = sdlf_pool2d_infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_max_pool2d(sdlf_model *model, sdlf_node x, const sdlf_pool2d_options *options)
{
    return sdlf_model_add(model, &sdlf_max_pool2d_class, options, &x, 1);
}
