/* SPDX-License-Identifier: MIT */
/* softmax: y = exp(x) / sum exp(x) along an axis; dx = y (dy - sum y dy). */
#include "layers/softmax.h"

const sdlf_field sdlf_softmax_fields[] = {
    {.name = "axis",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_softmax_options, axis),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .fallback = 1,
     .zero_means_default = true,
     .help = "axis of the classes; -1 is the last"},
    {.name = NULL},
};

sdlf_status sdlf_softmax_infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    int axis;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status != SDLF_OK) return status;
    status = sdlf_layer_axis(&axis, ((const sdlf_softmax_options *)layer->options)->axis, x);
    if (status != SDLF_OK) return status;
    return sdlf_signature_add_output(signature, signature->dtype, x);
}

static int axis_of(const sdlf_layer *layer, const sdlf_layer_context *context)
{
    return sdlf_layer_axis_from_start(((const sdlf_softmax_options *)layer->options)->axis,
                                      context->input[0].shape.rank);
}

sdlf_status sdlf_softmax_emit(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_operation_kind kind)
{
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = kind,
                                  .in = {context->input[0]},
                                  .out = {context->output[0]},
                                  .softmax = {.axis = axis_of(layer, context)},
                              });
}

sdlf_status sdlf_softmax_emit_backward(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_operation_kind kind)
{
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = kind,
                                  .in = {context->output[0], context->output_gradient[0]},
                                  .out = {context->input_gradient[0]},
                                  .softmax = {.axis = axis_of(layer, context)},
                              });
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_softmax_emit(layer, context, SDLF_SOFTMAX_FORWARD);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_softmax_emit_backward(layer, context, SDLF_SOFTMAX_BACKWARD);
}

const sdlf_layer_class sdlf_softmax_class = {
    .name = "softmax",
    .summary = "probabilities along an axis",
    .options_size = sizeof(sdlf_softmax_options),
    .fields = sdlf_softmax_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = sdlf_softmax_infer,
    .forward = forward,
    .backward = backward,
    .scores = SDLF_SCORES_PROBABILITIES,
};

sdlf_node sdlf_softmax(sdlf_model *model, sdlf_node x)
{
    return sdlf_model_add(model, &sdlf_softmax_class, NULL, &x, 1);
}
