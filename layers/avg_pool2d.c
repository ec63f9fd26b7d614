/* SPDX-License-Identifier: MIT */
/* avg_pool2d: the mean of each window.
 *
 *   x (N,C,H,W) -> y (N,C,P,Q); divides by the number of window positions inside the image, or, with count_padding, by
 *   that of all positions. dx: each input of a window gets dy divided by the same number. */
#include "layers/pool2d.h"

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
     .help = "a border of zeros"},
    {.name = "padding_extra",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_pool2d_options, padding_extra),
     .minimum = -SDLF_MAX_LAYER_WINDOW,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "more border below and right; less if negative"},
    {.name = "count_padding",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_pool2d_options, count_padding),
     .help = "the border counts in the mean"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_pool2d_options *options = layer->options;
    for (int axis = 0; axis < 2; axis++)
        if (options->dilation[axis] != 0 && options->dilation[axis] != 1)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "average pooling has no dilation, found %d", options->dilation[axis]);
    return sdlf_pool2d_infer(layer, signature);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_pool2d_options *options = layer->options;
    return sdlf_emit(context,
                     &(sdlf_operation){
                         .kind = SDLF_AVG_POOL2D_FORWARD,
                         .in = {context->input[0]},
                         .out = {context->output[0]},
                         .pool2d = {.window = sdlf_pool2d_window(options), .count_padding = options->count_padding},
                     });
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_pool2d_options *options = layer->options;
    return sdlf_emit(context,
                     &(sdlf_operation){
                         .kind = SDLF_AVG_POOL2D_BACKWARD,
                         .in = {context->output_gradient[0]},
                         .out = {context->input_gradient[0]},
                         .pool2d = {.window = sdlf_pool2d_window(options), .count_padding = options->count_padding},
                     });
}

const sdlf_layer_class sdlf_avg_pool2d_class = {
    .name = "avg_pool2d",
    .summary = "the mean of each window",
    .options_size = sizeof(sdlf_pool2d_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .is_identity_in_inference = sdlf_pool2d_is_identity,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_avg_pool2d(sdlf_model *model, sdlf_node x, const sdlf_pool2d_options *options)
{
    return sdlf_model_add(model, &sdlf_avg_pool2d_class, options, &x, 1);
}
