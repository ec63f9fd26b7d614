/* SPDX-License-Identifier: MIT */
/* Shape inference and operations of the activation layers. See activation.h. */
#include "layers/activation.h"

sdlf_status sdlf_activation_infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status != SDLF_OK) return status;
    return sdlf_signature_add_output(signature, signature->dtype, signature->input_shape[0]);
}

sdlf_status sdlf_activation_forward(sdlf_layer_context *context, sdlf_activation activation)
{
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_ACTIVATION_FORWARD,
                                  .in = {context->input[0]},
                                  .out = {context->output[0]},
                                  .activation = activation,
                              });
}

sdlf_status sdlf_activation_backward(sdlf_layer_context *context, sdlf_activation activation)
{
    bool reads_input = sdlf_activation_reads_input(activation.function);
    return sdlf_emit(context,
                     &(sdlf_operation){
                         .kind = SDLF_ACTIVATION_BACKWARD,
                         .in = {reads_input ? context->input[0] : context->output[0], context->output_gradient[0]},
                         .out = {context->input_gradient[0]},
                         .activation = activation,
                     });
}
