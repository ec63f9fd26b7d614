/* SPDX-License-Identifier: MIT */
/* batch_norm2d: each channel is normalized to mean 0 and variance 1, then scaled and shifted (Ioffe and Szegedy 2015).
 *
 *   x (N,C,H,W) or (N,C), weight (C), bias (C) -> y of x's shape
 *   training:  y = (x - mean) / sqrt(variance + epsilon) weight + bias, with the batch's own mean and biased variance;
 *              running_mean and running_var move towards them (the unbiased variance) by `momentum`.
 *   inference, and training in eval mode: the same with running_mean and running_var.
 *   With xhat = (x - mean) / sqrt(variance + epsilon) and n = N H W: dbias = sum dy; dweight = sum dy xhat;
 *   dx = weight / sqrt(variance + epsilon) (dy - dbias / n - xhat dweight / n); in eval mode weight / sqrt(variance +
 *   epsilon) dy. */
#include "layers/layers_internal.h"
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "epsilon",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_batch_norm2d_options, epsilon),
     .minimum = 1e-12,
     .maximum = 1,
     .fallback = 1e-5,
     .zero_means_default = true,
     .help = "added to the variance"},
    {.name = "momentum",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_batch_norm2d_options, momentum),
     .minimum = 1e-6,
     .maximum = 1,
     .fallback = 0.1,
     .zero_means_default = true,
     .help = "weight of the newest batch in the running statistics"},
    {.name = "no_scale",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_batch_norm2d_options, no_scale),
     .help = "leave the scale at 1: its weight is not trained"},
    {.name = NULL},
};

/* Indices of the parameters and of the saved tensors. */
enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR };
enum { SAVED_MEAN, SAVED_INVERSE_STD };

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_batch_norm2d_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0];
    if (x.rank != 2 && x.rank != 4)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input (N,C,H,W) or (N,C), found %s", sdlf_shape_print(x).text);
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status == SDLF_OK) status = sdlf_signature_add_output(signature, signature->dtype, x);
    const sdlf_parameter_spec parameters[] = {
        [WEIGHT] = {.name = "weight", .initializer = SDLF_INIT_ONE, .trainable = !options->no_scale},
        [BIAS] = {.name = "bias", .initializer = SDLF_INIT_ZERO, .trainable = true},
        [RUNNING_MEAN] = {.name = "running_mean", .initializer = SDLF_INIT_ZERO},
        [RUNNING_VAR] = {.name = "running_var", .initializer = SDLF_INIT_ONE},
    };
    for (int index = WEIGHT; index <= RUNNING_VAR && status == SDLF_OK; index++) {
        sdlf_parameter_spec parameter = parameters[index];
        parameter.shape = sdlf_shape(x.dim[1]);
        status = sdlf_signature_add_parameter(signature, parameter);
    }
    for (int index = SAVED_MEAN;
         index <= SAVED_INVERSE_STD && signature->training && !signature->eval_mode && status == SDLF_OK; index++)
        status = sdlf_signature_add_saved(signature, signature->dtype, sdlf_shape(x.dim[1]));
    return status;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_batch_norm2d_options *options = layer->options;
    const sdlf_tensor *parameter = context->parameter;
    if (!context->training || context->eval_mode)
        return sdlf_emit(context, &(sdlf_operation){
                                      .kind = SDLF_BATCH_NORM2D_INFER,
                                      .in = {context->input[0], parameter[WEIGHT], parameter[BIAS],
                                             parameter[RUNNING_MEAN], parameter[RUNNING_VAR]},
                                      .out = {context->output[0]},
                                      .batch_norm = {.epsilon = options->epsilon},
                                  });
    return sdlf_emit(context,
                     &(sdlf_operation){
                         .kind = SDLF_BATCH_NORM2D_FORWARD,
                         .in = {context->input[0], parameter[WEIGHT], parameter[BIAS]},
                         .out = {context->output[0], context->saved[SAVED_MEAN], context->saved[SAVED_INVERSE_STD],
                                 parameter[RUNNING_MEAN], parameter[RUNNING_VAR]},
                         .batch_norm = {.epsilon = options->epsilon, .momentum = options->momentum},
                     });
}

/* 1 / sqrt(running_var + epsilon). */
static sdlf_status running_inverse_std(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_tensor result)
{
    const sdlf_batch_norm2d_options *options = layer->options;
    sdlf_tensor variance = context->parameter[RUNNING_VAR], sum = sdlf_scratch(context, result.dtype, result.shape);
    sdlf_tensor root = sdlf_scratch(context, result.dtype, result.shape);
    sdlf_status status = sdlf_emit(
        context, &(sdlf_operation){.kind = SDLF_BINARY,
                                   .in = {variance},
                                   .out = {sum},
                                   .binary = {.function = SDLF_BINARY_ADD, .scalar = (double)options->epsilon}});
    if (status == SDLF_OK) status = sdlf_layer_unary(context, SDLF_SQRT, sum, root);
    return status == SDLF_OK ? sdlf_layer_unary(context, SDLF_RECIPROCAL, root, result) : status;
}

/* The statistics are constants: dx is batch normalisation of dy in place of x, with mean 0 and no shift. */
static sdlf_status backward_in_eval_mode(const sdlf_layer *layer, sdlf_layer_context *context, bool parameters)
{
    const sdlf_batch_norm2d_options *options = layer->options;
    const sdlf_tensor *parameter = context->parameter, dy = context->output_gradient[0];
    sdlf_shape channels = parameter[WEIGHT].shape;
    sdlf_status status = SDLF_OK;
    if (parameters) {
        sdlf_tensor inverse_std = sdlf_scratch(context, dy.dtype, channels);
        status = running_inverse_std(layer, context, inverse_std);
        if (status == SDLF_OK)
            status = sdlf_emit(
                context,
                &(sdlf_operation){
                    .kind = SDLF_BATCH_NORM2D_BACKWARD,
                    .in = {context->input[0], parameter[WEIGHT], parameter[RUNNING_MEAN], inverse_std, dy},
                    .out = {[1] = sdlf_layer_gradient(context, WEIGHT), [2] = sdlf_layer_gradient(context, BIAS)},
                    .batch_norm = {.epsilon = options->epsilon, .momentum = options->momentum},
                });
    }
    if (status != SDLF_OK || !sdlf_tensor_present(&context->input_gradient[0])) return status;
    sdlf_tensor zero = sdlf_scratch(context, dy.dtype, channels);
    status = sdlf_layer_fill(context, zero, 0);
    if (status != SDLF_OK) return status;
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_BATCH_NORM2D_INFER,
                                  .in = {dy, parameter[WEIGHT], zero, zero, parameter[RUNNING_VAR]},
                                  .out = {context->input_gradient[0]},
                                  .batch_norm = {.epsilon = options->epsilon},
                              });
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_batch_norm2d_options *options = layer->options;
    bool parameters = false;
    for (int i = WEIGHT; i <= BIAS; i++)
        parameters = parameters || sdlf_tensor_present(&context->parameter_gradient[i]);
    if (!parameters && !sdlf_tensor_present(&context->input_gradient[0])) return SDLF_OK;
    if (context->eval_mode) return backward_in_eval_mode(layer, context, parameters);
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_BATCH_NORM2D_BACKWARD,
                                  .in = {context->input[0], context->parameter[WEIGHT], context->saved[SAVED_MEAN],
                                         context->saved[SAVED_INVERSE_STD], context->output_gradient[0]},
                                  .out = {context->input_gradient[0], sdlf_layer_gradient(context, WEIGHT),
                                          sdlf_layer_gradient(context, BIAS)},
                                  .batch_norm = {.epsilon = options->epsilon, .momentum = options->momentum},
                              });
}

const sdlf_layer_class sdlf_batch_norm2d_class = {
    .name = "batch_norm2d",
    .summary = "each channel normalised, scaled and shifted",
    .options_size = sizeof(sdlf_batch_norm2d_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_batch_norm2d(sdlf_model *model, sdlf_node x, const sdlf_batch_norm2d_options *options)
{
    return sdlf_model_add(model, &sdlf_batch_norm2d_class, options, &x, 1);
}
