/* SPDX-License-Identifier: MIT */
/* layer_norm and group_norm: (x - mean) / sqrt(variance + epsilon) weight + bias, with mean and biased variance
 *
 *   layer_norm   over all axes from `axis` on; weight and bias have these axes' shape. Outputs 1 and 2 are the means
 *                and the inverse deviations, with size 1 for these axes; no gradient passes through them.
 *   group_norm   over the channels of a group and all axes after them; weight and bias (C). As many groups as
 *                channels, the default, is instance normalization. */
#include "layers/views.h"

static const sdlf_field layer_fields[] = {
    {.name = "axis",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_layer_norm_options, axis),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .fallback = -1,
     .zero_means_default = true,
     .help = "first of the axes that are normalised; -1 is the last"},
    {.name = "epsilon",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_layer_norm_options, epsilon),
     .minimum = 1e-12,
     .maximum = 1,
     .fallback = 1e-5,
     .zero_means_default = true,
     .help = "added to the variance"},
    {.name = NULL},
};

static const sdlf_field group_fields[] = {
    {.name = "groups",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_group_norm_options, groups),
     .minimum = 0,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "groups of channels; 0: as many as channels"},
    {.name = "epsilon",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_group_norm_options, epsilon),
     .minimum = 1e-12,
     .maximum = 1,
     .fallback = 1e-5,
     .zero_means_default = true,
     .help = "added to the variance"},
    {.name = NULL},
};

static sdlf_status add_parameters(sdlf_signature *signature, sdlf_shape shape)
{
    sdlf_parameter_spec weight = {.name = "weight", .shape = shape, .initializer = SDLF_INIT_ONE, .trainable = true};
    sdlf_parameter_spec bias = {.name = "bias", .shape = shape, .initializer = SDLF_INIT_ZERO, .trainable = true};
    sdlf_status status = sdlf_signature_add_parameter(signature, weight);
    return status == SDLF_OK ? sdlf_signature_add_parameter(signature, bias) : status;
}

static sdlf_status emit_forward(sdlf_layer_context *context, int64_t length, int64_t inner, float epsilon,
                                const sdlf_tensor *statistics)
{
    sdlf_tensor x = context->input[0];
    int64_t rows = sdlf_tensor_count(&x) / length, channels = sdlf_tensor_count(&context->parameter[0]);
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_NORMALIZE_FORWARD,
                                  .in = {x, sdlf_tensor_reshape(context->parameter[0], sdlf_shape(channels)),
                                         sdlf_tensor_reshape(context->parameter[1], sdlf_shape(channels))},
                                  .out = {context->output[0], sdlf_tensor_reshape(statistics[0], sdlf_shape(rows)),
                                          sdlf_tensor_reshape(statistics[1], sdlf_shape(rows))},
                                  .normalize = {.length = length, .inner = inner, .epsilon = epsilon},
                              });
}

static sdlf_status emit_backward(sdlf_layer_context *context, int64_t length, int64_t inner,
                                 const sdlf_tensor *statistics)
{
    sdlf_tensor x = context->input[0];
    int64_t rows = sdlf_tensor_count(&x) / length, channels = sdlf_tensor_count(&context->parameter[0]);
    sdlf_operation operation = {
        .kind = SDLF_NORMALIZE_BACKWARD,
        .in = {x, sdlf_tensor_reshape(context->parameter[0], sdlf_shape(channels)),
               sdlf_tensor_reshape(statistics[0], sdlf_shape(rows)),
               sdlf_tensor_reshape(statistics[1], sdlf_shape(rows)), context->output_gradient[0]},
        .out = {context->input_gradient[0]},
        .normalize = {.length = length, .inner = inner},
    };
    for (int i = 0; i < 2; i++) {
        if (!sdlf_tensor_present(&context->parameter_gradient[i])) continue;
        operation.out[1 + i] = sdlf_tensor_reshape(context->parameter_gradient[i], sdlf_shape(channels));
    }
    return sdlf_emit(context, &operation);
}

/* ---- layer_norm ---- */

static sdlf_status infer_layer(const sdlf_layer *layer, sdlf_signature *signature)
{
    int axis;
    sdlf_shape x = signature->input_shape[0], normal = {0}, rest = x;
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status == SDLF_OK) status = sdlf_layer_axis(&axis, ((const sdlf_layer_norm_options *)layer->options)->axis, x);
    if (status != SDLF_OK) return status;
    for (int i = axis; i < x.rank; i++) {
        normal.dim[normal.rank++] = x.dim[i];
        rest.dim[i] = 1;
    }
    status = sdlf_signature_add_output(signature, signature->dtype, x);
    if (status == SDLF_OK) status = sdlf_signature_add_output(signature, signature->dtype, rest);
    if (status == SDLF_OK) status = sdlf_signature_add_output(signature, signature->dtype, rest);
    return status == SDLF_OK ? add_parameters(signature, normal) : status;
}

static sdlf_status forward_layer(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_layer_norm_options *options = layer->options;
    return emit_forward(context, sdlf_tensor_count(&context->parameter[0]), 1, options->epsilon, &context->output[1]);
}

static sdlf_status backward_layer(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    return emit_backward(context, sdlf_tensor_count(&context->parameter[0]), 1, &context->output[1]);
}

const sdlf_layer_class sdlf_layer_norm_class = {
    .name = "layer_norm",
    .summary = "each sample's last axes normalised, scaled and shifted",
    .options_size = sizeof(sdlf_layer_norm_options),
    .fields = layer_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer_layer,
    .forward = forward_layer,
    .backward = backward_layer,
};

sdlf_node sdlf_layer_norm(sdlf_model *model, sdlf_node x, const sdlf_layer_norm_options *options)
{
    return sdlf_model_add(model, &sdlf_layer_norm_class, options, &x, 1);
}

/* ---- group_norm ---- */

static int64_t groups_of(const sdlf_layer *layer, sdlf_shape x)
{
    int groups = ((const sdlf_group_norm_options *)layer->options)->groups;
    return groups > 0 ? groups : x.dim[1];
}

static sdlf_status infer_group(const sdlf_layer *layer, sdlf_signature *signature)
{
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status != SDLF_OK) return status;
    if (x.rank < 2)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input (N,C,...), found %s", sdlf_shape_print(x).text);
    int64_t groups = groups_of(layer, x);
    if (x.dim[1] % groups != 0)
        return sdlf_fail(SDLF_ERROR_SHAPE, "its input's %lld channels do not divide into %lld groups",
                         (long long)x.dim[1], (long long)groups);
    status = sdlf_signature_add_output(signature, signature->dtype, x);
    if (status == SDLF_OK) status = add_parameters(signature, sdlf_shape(x.dim[1]));
    for (int i = 0; i < 2 && status == SDLF_OK; i++)
        status = sdlf_signature_add_saved(signature, signature->dtype, sdlf_shape(x.dim[0], groups));
    return status;
}

static sdlf_status forward_group(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_group_norm_options *options = layer->options;
    sdlf_shape x = context->input[0].shape;
    int64_t inner = sdlf_shape_span(x, 2, x.rank);
    return emit_forward(context, x.dim[1] / groups_of(layer, x) * inner, inner, options->epsilon, context->saved);
}

static sdlf_status backward_group(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_shape x = context->input[0].shape;
    int64_t inner = sdlf_shape_span(x, 2, x.rank);
    return emit_backward(context, x.dim[1] / groups_of(layer, x) * inner, inner, context->saved);
}

const sdlf_layer_class sdlf_group_norm_class = {
    .name = "group_norm",
    .summary = "groups of channels, or single ones, normalised, scaled and shifted",
    .options_size = sizeof(sdlf_group_norm_options),
    .fields = group_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer_group,
    .forward = forward_group,
    .backward = backward_group,
};

sdlf_node sdlf_group_norm(sdlf_model *model, sdlf_node x, const sdlf_group_norm_options *options)
{
    return sdlf_model_add(model, &sdlf_group_norm_class, options, &x, 1);
}
