/* SPDX-License-Identifier: MIT */
/* arg_reduce: the index of the largest (or smallest) element along an axis, as int64. It has no gradient. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "axis",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_arg_reduce_layer_options, axis),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .fallback = 1,
     .zero_means_default = true,
     .help = "axis to search along; -1 is the last"},
    {.name = "smallest",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_arg_reduce_layer_options, smallest),
     .help = "the smallest instead of the largest"},
    {.name = "last",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_arg_reduce_layer_options, last),
     .help = "the last of equal elements instead of the first"},
    {.name = "keep",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_arg_reduce_layer_options, keep),
     .help = "the axis stays, with 1 element"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_arg_reduce_layer_options *options = layer->options;
    int axis;
    sdlf_shape y = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status == SDLF_OK) status = sdlf_layer_axis(&axis, options->axis, y);
    if (status != SDLF_OK) return status;
    y.dim[axis] = 1;
    return sdlf_signature_add_output(signature, SDLF_INT64, options->keep ? y : sdlf_shape_without(y, axis));
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_arg_reduce_layer_options *options = layer->options;
    int axis = sdlf_layer_axis_from_start(options->axis, context->input[0].shape.rank);
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_ARG_REDUCE,
                                  .in = {context->input[0]},
                                  .out = {context->output[0]},
                                  .arg_reduce = {.axis = axis, .smallest = options->smallest, .last = options->last},
                              });
}

/* Never called: no gradient passes through integer indices. */
static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    (void)context;
    return SDLF_OK;
}

const sdlf_layer_class sdlf_arg_reduce_class = {
    .name = "arg_reduce",
    .summary = "where the largest element along an axis is",
    .options_size = sizeof(sdlf_arg_reduce_layer_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_arg_reduce(sdlf_model *model, sdlf_node x, const sdlf_arg_reduce_layer_options *options)
{
    return sdlf_model_add(model, &sdlf_arg_reduce_class, options, &x, 1);
}
