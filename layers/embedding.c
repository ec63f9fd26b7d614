/* SPDX-License-Identifier: MIT */
/* embedding: a row of the weight for each token.
 *
 *   tokens (N,...), weight (V,U) -> y (N,...,U), y[...,u] = weight[token,u]
 *   dweight[v] = the sum of dy over the tokens equal to v, in order: bit-identical for any thread count.
 *   Tokens stored as floats, as data sets supply them, are first converted to int32. */
#include "layers/embedding.h"

static const sdlf_field fields[] = {
    {.name = "vocabulary",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_embedding_options, vocabulary),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "number of different tokens (vocabulary size)"},
    {.name = "units",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_embedding_options, units),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "elements for each token (embedding size)"},
    SDLF_EMBEDDING_DEVIATION(sdlf_embedding_options, 1),
    {.name = NULL},
};

sdlf_status sdlf_embedding_add_weight(sdlf_signature *signature, sdlf_shape shape, float deviation, bool decay)
{
    return sdlf_signature_add_parameter(signature, (sdlf_parameter_spec){.name = "weight",
                                                                         .shape = shape,
                                                                         .initializer = SDLF_INIT_NORMAL,
                                                                         .scale = deviation,
                                                                         .trainable = true,
                                                                         .decay = decay});
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_embedding_options *options = layer->options;
    sdlf_dtype dtype = signature->input_dtype[0];
    sdlf_shape y = signature->input_shape[0];
    if (dtype != SDLF_INT32 && dtype != SDLF_INT64 && dtype != signature->dtype)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected tokens of int32, int64 or floating type, found %s",
                         sdlf_dtype_name(dtype));
    if (y.rank < 1 || y.rank >= SDLF_MAX_RANK)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected tokens of 1 to %d dimensions, found %s", SDLF_MAX_RANK - 1,
                         sdlf_shape_print(y).text);
    y.dim[y.rank++] = options->units;
    sdlf_status status = sdlf_signature_add_output(signature, signature->dtype, y);
    if (status != SDLF_OK) return status;
    return sdlf_embedding_add_weight(signature, sdlf_shape(options->vocabulary, options->units), options->deviation,
                                     true);
}

/* The tokens as integers; floats are converted. */
static sdlf_status take_tokens(sdlf_layer_context *context, sdlf_tensor *tokens)
{
    *tokens = context->input[0];
    if (!sdlf_dtype_is_float(tokens->dtype)) return SDLF_OK;
    *tokens = sdlf_scratch(context, SDLF_INT32, tokens->shape);
    return sdlf_layer_copy(context, context->input[0], *tokens);
}

static sdlf_status emit(sdlf_layer_context *context, sdlf_operation_kind kind, sdlf_tensor from, sdlf_tensor to)
{
    sdlf_tensor tokens;
    sdlf_status status = take_tokens(context, &tokens);
    if (status != SDLF_OK) return status;
    return sdlf_emit(context, &(sdlf_operation){.kind = kind, .in = {from, tokens}, .out = {to}, .index = {.axis = 0}});
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return emit(context, SDLF_GATHER, context->parameter[0], context->output[0]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    if (!sdlf_tensor_present(&context->parameter_gradient[0])) return SDLF_OK;
    return emit(context, SDLF_GATHER_BACKWARD, context->output_gradient[0], context->parameter_gradient[0]);
}

const sdlf_layer_class sdlf_embedding_class = {
    .name = "embedding",
    .summary = "a row of weights for each token",
    .options_size = sizeof(sdlf_embedding_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_embedding(sdlf_model *model, sdlf_node tokens, const sdlf_embedding_options *options)
{
    return sdlf_model_add(model, &sdlf_embedding_class, options, &tokens, 1);
}
