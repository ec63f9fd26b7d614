/* SPDX-License-Identifier: MIT */
/* dropout: in training, y = x m / (1 - p) with m = 0 with probability p, drawn anew for each element and each step
 * (Srivastava and others 2014); dx = dy m / (1 - p) with the same m. In inference, and in eval mode, y = x. */
#include "layers/layers_internal.h"

static const sdlf_field fields[] = {
    {.name = "probability",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_dropout_options, probability),
     .maximum = 0.999999,
     .help = "share of the elements that become zero"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status != SDLF_OK) return status;
    return sdlf_signature_add_output(signature, signature->dtype, signature->input_shape[0]);
}

/* Forward and backward are the same operation, on values and on gradients. */
static sdlf_operation describe(const sdlf_layer *layer, const sdlf_layer_context *context)
{
    const sdlf_dropout_options *options = layer->options;
    int64_t sample = context->batch > 0 ? sdlf_tensor_count(&context->output[0]) / context->batch : 0;
    return (sdlf_operation){
        .dropout = {.probability = options->probability,
                    .seed = context->seed,
                    .stream = context->stream,
                    .first = context->first_sample * sample},
    };
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_operation operation = describe(layer, context);
    bool drops = context->training && !context->eval_mode;
    operation.kind = drops ? SDLF_DROPOUT_FORWARD : SDLF_COPY;
    operation.in[0] = context->input[0];
    if (drops) operation.in[1] = context->step;
    operation.out[0] = context->output[0];
    return sdlf_emit(context, &operation);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    if (context->eval_mode) {
        context->input_gradient[0] = context->output_gradient[0];
        return SDLF_OK;
    }
    sdlf_operation operation = describe(layer, context);
    operation.kind = SDLF_DROPOUT_BACKWARD;
    operation.in[0] = context->output_gradient[0];
    operation.in[1] = context->step;
    operation.out[0] = context->input_gradient[0];
    return sdlf_emit(context, &operation);
}

static bool is_identity(const sdlf_layer *layer)
{
    (void)layer;
    return true;
}

const sdlf_layer_class sdlf_dropout_class = {
    .name = "dropout",
    .summary = "zeroes elements at random while training",
    .options_size = sizeof(sdlf_dropout_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .is_identity_in_inference = is_identity,
};

sdlf_node sdlf_dropout(sdlf_model *model, sdlf_node x, const sdlf_dropout_options *options)
{
    return sdlf_model_add(model, &sdlf_dropout_class, options, &x, 1);
}
