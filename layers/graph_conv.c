/* SPDX-License-Identifier: MIT */
/* graph_conv: y = A (x weight) + bias, a convolution over a graph (T. Kipf, M. Welling: Semi-supervised classification
 * with graph convolutional networks, ICLR 2017). The batch is the graph's nodes.
 *
 *   x (N,I), A (N,N) sparse, A's transpose (N,N)? sparse, weight (I,U), bias (U) -> y (N,U)
 *   dbias = the sum of dy over n; dh = A^T dy; dweight = x^T dh; dx = dh weight^T.
 *
 * The user builds A from the graph: with sdlf_graph_matrix, D^-1/2 (B + I) D^-1/2 of the adjacency B. Without a third
 * input A is assumed to be symmetric. The product with the weight is computed first: the sparse product, which is
 * memory-bound, then has U columns instead of I. */
#include "layers/layers_internal.h"

static const sdlf_field fields[] = {
    {.name = "units",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_graph_conv_options, units),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "outputs of a node"},
    {.name = "no_bias",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_graph_conv_options, no_bias),
     .help = "leave the bias out"},
    {.name = "no_decay",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_graph_conv_options, no_decay),
     .help = "no weight decay of the weight"},
    {.name = "initializer",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_graph_conv_options, initializer),
     .choices = sdlf_initializer_names,
     .help = "initial weight; xavier_uniform by default"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_graph_conv_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 2, "(N,I) of nodes");
    if (status != SDLF_OK) return status;
    for (int i = 1; i < signature->input_count; i++) {
        if (!sdlf_shape_equal(signature->input_shape[i], sdlf_shape(x.dim[0], x.dim[0])))
            return sdlf_fail(SDLF_ERROR_SHAPE, "expected a matrix over %lld nodes, found %s", (long long)x.dim[0],
                             sdlf_shape_print(signature->input_shape[i]).text);
    }
    int64_t inputs = x.dim[1], units = options->units;
    status = sdlf_signature_add_output(signature, signature->dtype, sdlf_shape(x.dim[0], units));
    if (status != SDLF_OK) return status;
    int kind = options->initializer == SDLF_INIT_DEFAULT ? SDLF_INIT_XAVIER_UNIFORM : options->initializer;
    status = sdlf_signature_add_parameter(signature, (sdlf_parameter_spec){.name = "weight",
                                                                           .shape = sdlf_shape(inputs, units),
                                                                           .initializer = kind,
                                                                           .scale = 0.1f,
                                                                           .fan_in = inputs,
                                                                           .fan_out = units,
                                                                           .trainable = true,
                                                                           .decay = !options->no_decay});
    if (status != SDLF_OK || options->no_bias) return status;
    return sdlf_signature_add_parameter(
        signature, (sdlf_parameter_spec){
                       .name = "bias", .shape = sdlf_shape(units), .initializer = SDLF_INIT_ZERO, .trainable = true});
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_graph_conv_options *options = layer->options;
    sdlf_operation product = {
        .kind = SDLF_GEMM,
        .in = {context->input[0], context->parameter[0]},
        .out = {sdlf_scratch(context, context->output[0].dtype, context->output[0].shape)},
        .gemm = {.alpha = 1},
    };
    sdlf_operation spread = {
        .kind = SDLF_SPMM_CSR,
        .in = {context->input[1], product.out[0]},
        .out = {context->output[0]},
    };
    if (!options->no_bias) spread.in[2] = context->parameter[1];
    sdlf_status status = sdlf_emit(context, &product);
    return status == SDLF_OK ? sdlf_emit(context, &spread) : status;
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_graph_conv_options *options = layer->options;
    sdlf_tensor dy = context->output_gradient[0], dh = sdlf_scratch(context, dy.dtype, dy.shape);
    sdlf_operation bias = {
        .kind = SDLF_REDUCE,
        .in = {dy},
        .reduce = {.function = SDLF_REDUCE_SUM, .axis = 0},
    };
    const sdlf_operation gather = {
        .kind = SDLF_SPMM_CSR,
        .in = {context->input[context->input_count - 1], dy},
        .out = {dh},
    };
    const sdlf_operation weight = {
        .kind = SDLF_GEMM,
        .in = {context->input[0], dh},
        .out = {context->parameter_gradient[0]},
        .gemm = {.transpose_a = true, .alpha = 1},
    };
    const sdlf_operation input = {
        .kind = SDLF_GEMM,
        .in = {dh, context->parameter[0]},
        .out = {context->input_gradient[0]},
        .gemm = {.transpose_b = true, .alpha = 1},
    };
    sdlf_status status = SDLF_OK;
    if (!options->no_bias) {
        bias.out[0] = context->parameter_gradient[1];
        status = sdlf_emit(context, &bias);
    }
    if (status == SDLF_OK) status = sdlf_emit(context, &gather);
    if (status == SDLF_OK) status = sdlf_emit(context, &weight);
    return status == SDLF_OK ? sdlf_emit(context, &input) : status;
}

const sdlf_layer_class sdlf_graph_conv_class = {
    .name = "graph_conv",
    .summary = "each node a weighted sum over its neighbours, times a matrix",
    .options_size = sizeof(sdlf_graph_conv_options),
    .fields = fields,
    .minimum_inputs = 2,
    .maximum_inputs = 3,
    .sparse_inputs = 1u << 1 | 1u << 2,
    .backward_inputs = 1u << 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_graph_conv(sdlf_model *model, sdlf_node x, sdlf_node matrix, const sdlf_graph_conv_options *options)
{
    return sdlf_model_add(model, &sdlf_graph_conv_class, options, (const sdlf_node[]){x, matrix}, 2);
}

sdlf_node sdlf_graph_conv_directed(sdlf_model *model, sdlf_node x, sdlf_node matrix, sdlf_node transposed,
                                   const sdlf_graph_conv_options *options)
{
    return sdlf_model_add(model, &sdlf_graph_conv_class, options, (const sdlf_node[]){x, matrix, transposed}, 3);
}
