/* SPDX-License-Identifier: MIT */
/* gather: y = x at the indices (the second input, int32 or int64) along an axis, which the indices' shape replaces.
 * Negative indices count from the end; if an index that the network computes is out of range, y is 0. Each element of
 * dx is the sum of dy over the outputs that selected it. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "axis",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_gather_options, axis),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .fallback = 1,
     .zero_means_default = true,
     .help = "axis to pick along; -1 is the last"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_gather_options *options = layer->options;
    int axis;
    sdlf_shape x = signature->input_shape[0], index = signature->input_shape[1];
    sdlf_status status = sdlf_layer_axis(&axis, options->axis, x);
    if (status != SDLF_OK) return status;
    if (signature->input_dtype[1] != SDLF_INT32 && signature->input_dtype[1] != SDLF_INT64)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected indices of int32 or int64, found %s",
                         sdlf_dtype_name(signature->input_dtype[1]));
    sdlf_shape y = {.rank = x.rank - 1 + index.rank};
    if (y.rank > SDLF_MAX_RANK)
        return sdlf_fail(SDLF_ERROR_SHAPE, "its output would have %d dimensions, at most %d are possible", y.rank,
                         SDLF_MAX_RANK);
    for (int i = 0; i < axis; i++) y.dim[i] = x.dim[i];
    for (int i = 0; i < index.rank; i++) y.dim[axis + i] = index.dim[i];
    for (int i = axis + 1; i < x.rank; i++) y.dim[index.rank + i - 1] = x.dim[i];
    return sdlf_signature_add_output(signature, signature->input_dtype[0], y);
}

static sdlf_status emit(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_operation_kind kind,
                        sdlf_tensor from, sdlf_tensor to)
{
    int axis =
        sdlf_layer_axis_from_start(((const sdlf_gather_options *)layer->options)->axis, context->input[0].shape.rank);
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = kind,
                                  .in = {from, context->input[1]},
                                  .out = {to},
                                  .index = {.axis = axis},
                              });
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return emit(layer, context, SDLF_GATHER, context->input[0], context->output[0]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return emit(layer, context, SDLF_GATHER_BACKWARD, context->output_gradient[0], context->input_gradient[0]);
}

const sdlf_layer_class sdlf_gather_class = {
    .name = "gather",
    .summary = "elements picked by their indices along an axis",
    .options_size = sizeof(sdlf_gather_options),
    .fields = fields,
    .minimum_inputs = 2,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_gather(sdlf_model *model, sdlf_node x, sdlf_node index, const sdlf_gather_options *options)
{
    return sdlf_model_add(model, &sdlf_gather_class, options, (const sdlf_node[]){x, index}, 2);
}
