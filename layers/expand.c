/* SPDX-License-Identifier: MIT */
/* expand: broadcasts x to a shape, or to the plan's batch and a shape: axes are matched from the last one on, and if
 * one side has size 1 or no axis, the other's size applies. dx is the sum of dy over the broadcast axes. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "shape",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_expand_options, shape),
     .minimum = 1,
     .maximum = INT32_MAX,
     .help = "shape to broadcast to, the batch included"},
    {.name = "samples",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_expand_options, samples),
     .help = "the shape is one sample's: the batch comes before it"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_expand_options *options = layer->options;
    sdlf_shape wanted = options->shape, x = signature->input_shape[0], y;
    if (options->samples && wanted.rank == SDLF_MAX_RANK)
        return sdlf_fail(SDLF_ERROR_SHAPE, "shape %s has rank %d: at most %d dimensions besides the batch",
                         sdlf_shape_print(wanted).text, wanted.rank, SDLF_MAX_RANK - 1);
    if (options->samples) wanted = sdlf_shape_prepend(signature->batch, wanted);
    if (!sdlf_shape_broadcast(&y, x, wanted))
        return sdlf_fail(SDLF_ERROR_SHAPE, "its input %s cannot be broadcast with %s", sdlf_shape_print(x).text,
                         sdlf_shape_print(wanted).text);
    return sdlf_signature_add_output(signature, signature->input_dtype[0], y);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_layer_copy(context, sdlf_tensor_broadcast(context->input[0], context->output[0].shape),
                           context->output[0]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_layer_sum_to(context, context->output_gradient[0], context->input_gradient[0]);
}

const sdlf_layer_class sdlf_expand_class = {
    .name = "expand",
    .summary = "broadcast to a larger shape",
    .options_size = sizeof(sdlf_expand_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_expand(sdlf_model *model, sdlf_node x, const sdlf_expand_options *options)
{
    return sdlf_model_add(model, &sdlf_expand_class, options, &x, 1);
}
