/* SPDX-License-Identifier: MIT */
/* position_embedding: y[n,t,c] = x[n,t,c] + weight[t,c], a learned vector for each position.
 *
 *   x (N,T,C), weight (T,C) -> y (N,T,C); dx = dy; dweight = the sum of dy over n. */
#include "layers/embedding.h"

static const sdlf_field fields[] = {
    SDLF_EMBEDDING_DEVIATION(sdlf_position_embedding_options, 0.02),
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_position_embedding_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 3, "(N,T,C)");
    if (status == SDLF_OK) status = sdlf_signature_add_output(signature, signature->dtype, x);
    if (status != SDLF_OK) return status;
    return sdlf_embedding_add_weight(signature, sdlf_shape_without(x, 0), options->deviation, false);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    sdlf_tensor x = context->input[0];
    return sdlf_layer_binary(context, SDLF_BINARY_ADD, x, sdlf_tensor_broadcast(context->parameter[0], x.shape),
                             context->output[0]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    if (sdlf_tensor_present(&context->input_gradient[0])) context->input_gradient[0] = context->output_gradient[0];
    return sdlf_layer_sum_to(context, context->output_gradient[0], context->parameter_gradient[0]);
}

const sdlf_layer_class sdlf_position_embedding_class = {
    .name = "position_embedding",
    .summary = "a learned vector added at each position",
    .options_size = sizeof(sdlf_position_embedding_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_position_embedding(sdlf_model *model, sdlf_node x, const sdlf_position_embedding_options *options)
{
    return sdlf_model_add(model, &sdlf_position_embedding_class, options, &x, 1);
}
