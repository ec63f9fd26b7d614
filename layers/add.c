/* SPDX-License-Identifier: MIT */
/* add: y = a + b, two inputs of one shape: the residual connection. da = db = dy, passed on without a copy. */
#include "layers/layers_internal.h"

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status == SDLF_OK) status = sdlf_layer_check_float(signature, 1);
    if (status != SDLF_OK) return status;
    if (!sdlf_shape_equal(signature->input_shape[0], signature->input_shape[1]))
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected two inputs of one shape, found %s and %s",
                         sdlf_shape_print(signature->input_shape[0]).text,
                         sdlf_shape_print(signature->input_shape[1]).text);
    return sdlf_signature_add_output(signature, signature->dtype, signature->input_shape[0]);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_ADD,
                                  .in = {context->input[0], context->input[1]},
                                  .out = {context->output[0]},
                              });
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    for (int index = 0; index < 2; index++)
        if (sdlf_tensor_present(&context->input_gradient[index]))
            context->input_gradient[index] = context->output_gradient[0];
    return SDLF_OK;
}

const sdlf_layer_class sdlf_add_class = {
    .name = "add",
    .summary = "elementwise sum of two inputs",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 2,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_add(sdlf_model *model, sdlf_node a, sdlf_node b)
{
    return sdlf_model_add(model, &sdlf_add_class, NULL, (const sdlf_node[]){a, b}, 2);
}
