/* SPDX-License-Identifier: MIT */
/* concat: concatenates the inputs along one axis; the other dimensions agree.
 *
 *   x0 (N,C0,...), x1 (N,C1,...), ... -> y (N,C0+C1+...,...) for axis 1. dx_i is the part of dy that holds x_i. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "axis",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_concat_options, axis),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .fallback = 1,
     .zero_means_default = true,
     .help = "axis to join along; -1 is the last"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    int axis;
    sdlf_shape y = signature->input_shape[0];
    sdlf_status status = sdlf_layer_axis(&axis, ((const sdlf_concat_options *)layer->options)->axis, y);
    if (status != SDLF_OK) return status;
    for (int index = 0; index < signature->input_count; index++) {
        if (signature->input_dtype[index] != signature->input_dtype[0])
            return sdlf_fail(SDLF_ERROR_SHAPE, "expected inputs of one type, found %s and %s",
                             sdlf_dtype_name(signature->input_dtype[0]),
                             sdlf_dtype_name(signature->input_dtype[index]));
        sdlf_shape x = signature->input_shape[index];
        if (!sdlf_shape_equal(sdlf_shape_without(x, axis < x.rank ? axis : 0), sdlf_shape_without(y, axis)))
            return sdlf_fail(SDLF_ERROR_SHAPE, "expected inputs that agree except along axis %d, found %s and %s", axis,
                             sdlf_shape_print(signature->input_shape[0]).text, sdlf_shape_print(x).text);
        if (index == 0) continue;
        if (x.dim[axis] > INT64_MAX - y.dim[axis])
            return sdlf_fail(SDLF_ERROR_SHAPE, "its output has more elements than can be counted");
        y.dim[axis] += x.dim[axis];
    }
    return sdlf_signature_add_output(signature, signature->input_dtype[0], y);
}

/* The part of `whole` that belongs to input `index`. */
static sdlf_tensor part(const sdlf_layer *layer, const sdlf_layer_context *context, sdlf_tensor whole, int index)
{
    int axis = sdlf_layer_axis_from_start(((const sdlf_concat_options *)layer->options)->axis, whole.shape.rank);
    int64_t start = 0;
    for (int before = 0; before < index; before++) start += context->input[before].shape.dim[axis];
    return sdlf_tensor_narrow(whole, axis, start, context->input[index].shape.dim[axis]);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_status status = SDLF_OK;
    for (int index = 0; index < context->input_count && status == SDLF_OK; index++)
        status = sdlf_emit(context, &(sdlf_operation){
                                        .kind = SDLF_COPY,
                                        .in = {context->input[index]},
                                        .out = {part(layer, context, context->output[0], index)},
                                    });
    return status;
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_status status = SDLF_OK;
    for (int index = 0; index < context->input_count && status == SDLF_OK; index++)
        status = sdlf_emit(context, &(sdlf_operation){
                                        .kind = SDLF_COPY,
                                        .in = {part(layer, context, context->output_gradient[0], index)},
                                        .out = {context->input_gradient[index]},
                                    });
    return status;
}

const sdlf_layer_class sdlf_concat_class = {
    .name = "concat",
    .summary = "inputs joined along an axis",
    .options_size = sizeof(sdlf_concat_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = SDLF_MAX_LAYER_INPUTS,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_concat(sdlf_model *model, const sdlf_node *nodes, int count, const sdlf_concat_options *options)
{
    return sdlf_model_add(model, &sdlf_concat_class, options, nodes, count);
}
