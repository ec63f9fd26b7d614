/* SPDX-License-Identifier: MIT */
/* select: y = condition ? a : b, all three broadcast. da is dy where the condition holds and 0 elsewhere, db the
 * opposite, both summed over the broadcast axes. */
#include "layers/views.h"

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_shape y;
    const sdlf_shape *x = signature->input_shape;
    if (signature->input_dtype[0] != SDLF_BOOL)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected a condition of bool, found %s",
                         sdlf_dtype_name(signature->input_dtype[0]));
    if (signature->input_dtype[1] != signature->input_dtype[2])
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected two inputs of one type, found %s and %s",
                         sdlf_dtype_name(signature->input_dtype[1]), sdlf_dtype_name(signature->input_dtype[2]));
    if (!sdlf_shape_broadcast(&y, x[1], x[2]) || !sdlf_shape_broadcast(&y, y, x[0]))
        return sdlf_fail(SDLF_ERROR_SHAPE, "its inputs %s, %s and %s cannot be broadcast together",
                         sdlf_shape_print(x[0]).text, sdlf_shape_print(x[1]).text, sdlf_shape_print(x[2]).text);
    return sdlf_signature_add_output(signature, signature->input_dtype[1], y);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    sdlf_operation operation = {.kind = SDLF_SELECT, .out = {context->output[0]}};
    for (int i = 0; i < 3; i++) operation.in[i] = sdlf_tensor_broadcast(context->input[i], context->output[0].shape);
    return sdlf_emit(context, &operation);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    sdlf_tensor dy = context->output_gradient[0];
    for (int i = 1; i < 3; i++) {
        sdlf_tensor dx = context->input_gradient[i];
        if (!sdlf_tensor_present(&dx)) continue;
        bool stretched = !sdlf_shape_equal(dx.shape, dy.shape);
        sdlf_operation operation = {.kind = SDLF_SELECT};
        operation.in[0] = sdlf_tensor_broadcast(context->input[0], dy.shape);
        operation.in[i] = dy;
        operation.out[0] = stretched ? sdlf_scratch(context, dy.dtype, dy.shape) : dx;
        sdlf_status status = sdlf_emit(context, &operation);
        if (status == SDLF_OK && stretched) status = sdlf_layer_sum_to(context, operation.out[0], dx);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

const sdlf_layer_class sdlf_select_class = {
    .name = "select",
    .summary = "one of two inputs, element by element, by a condition",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 3,
    .maximum_inputs = 3,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_select(sdlf_model *model, sdlf_node condition, sdlf_node a, sdlf_node b)
{
    return sdlf_model_add(model, &sdlf_select_class, NULL, (const sdlf_node[]){condition, a, b}, 3);
}
