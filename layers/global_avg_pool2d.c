/* SPDX-License-Identifier: MIT */
/* global_avg_pool2d: y[n,c] = the mean over h,w of x (N,C,H,W), as (N,C,1,1); dx = dy / (H W). */
#include "layers/layers_internal.h"

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 4, "(N,C,H,W)");
    if (status != SDLF_OK) return status;
    return sdlf_signature_add_output(signature, signature->dtype, sdlf_shape(x.dim[0], x.dim[1], 1, 1));
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_GLOBAL_AVG_POOL2D_FORWARD,
                                  .in = {context->input[0]},
                                  .out = {context->output[0]},
                              });
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_GLOBAL_AVG_POOL2D_BACKWARD,
                                  .in = {context->output_gradient[0]},
                                  .out = {context->input_gradient[0]},
                              });
}

const sdlf_layer_class sdlf_global_avg_pool2d_class = {
    .name = "global_avg_pool2d",
    .summary = "the mean of each channel",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_global_avg_pool2d(sdlf_model *model, sdlf_node x)
{
    return sdlf_model_add(model, &sdlf_global_avg_pool2d_class, NULL, &x, 1);
}
