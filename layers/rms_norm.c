/* SPDX-License-Identifier: MIT */
/* rms_norm: y = x r weight, r = 1 / sqrt(mean of x^2 + epsilon) of each row of the last axis.
 *
 *   x (...,C), weight (C) -> y; r (rows) is saved. With g = dy weight and h = x r:
 *   dx = r (g - h mean of g h); dweight = the sum of dy h over the rows. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "epsilon",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_rms_norm_options, epsilon),
     .minimum = 1e-12,
     .maximum = 1,
     .fallback = 1e-5,
     .zero_means_default = true,
     .help = "added to the mean of the squares"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status != SDLF_OK) return status;
    if (x.rank < 2) return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input (N,...), found %s", sdlf_shape_print(x).text);
    int64_t length = x.dim[x.rank - 1];
    status = sdlf_signature_add_output(signature, signature->dtype, x);
    if (status == SDLF_OK)
        status = sdlf_signature_add_parameter(signature, (sdlf_parameter_spec){.name = "weight",
                                                                               .shape = sdlf_shape(length),
                                                                               .initializer = SDLF_INIT_ONE,
                                                                               .trainable = true});
    if (status != SDLF_OK || !signature->training) return status;
    return sdlf_signature_add_saved(signature, signature->dtype, sdlf_shape(sdlf_shape_count(x) / length, 1));
}

/* A tensor with rows along the last axis, viewed as a matrix. */
static sdlf_tensor rows(const sdlf_layer_context *context, sdlf_tensor tensor)
{
    int64_t length = context->parameter[0].shape.dim[0];
    return sdlf_tensor_reshape(tensor, sdlf_shape(sdlf_tensor_count(&context->input[0]) / length, length));
}

/* y = a b, both broadcast to y. */
static sdlf_status multiply(sdlf_layer_context *context, sdlf_tensor a, sdlf_tensor b, sdlf_tensor y)
{
    return sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, sdlf_tensor_broadcast(a, y.shape),
                             sdlf_tensor_broadcast(b, y.shape), y);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_rms_norm_options *options = layer->options;
    sdlf_tensor x = rows(context, context->input[0]), y = rows(context, context->output[0]);
    int64_t count = x.shape.dim[0], length = x.shape.dim[1];
    sdlf_tensor r = context->training ? context->saved[0] : sdlf_scratch(context, x.dtype, sdlf_shape(count, 1));
    sdlf_tensor t[3];
    for (int i = 0; i < 3; i++) t[i] = sdlf_scratch(context, x.dtype, r.shape);
    sdlf_tensor normal = sdlf_scratch(context, x.dtype, x.shape);
    sdlf_status status = sdlf_layer_reduce(context, x, count, length, 1, SDLF_REDUCE_SUM_SQUARES, t[0]);
    if (status == SDLF_OK) status = sdlf_layer_scale(context, t[0], 1.0 / (double)length, t[1]);
    if (status == SDLF_OK)
        status = sdlf_emit(context, &(sdlf_operation){
                                        .kind = SDLF_BINARY,
                                        .in = {t[1]},
                                        .out = {t[2]},
                                        .binary = {.function = SDLF_BINARY_ADD, .scalar = (double)options->epsilon},
                                    });
    if (status == SDLF_OK)
        status = sdlf_emit(context, &(sdlf_operation){
                                        .kind = SDLF_BINARY,
                                        .in = {t[2]},
                                        .out = {r},
                                        .binary = {.function = SDLF_BINARY_POWER, .scalar = -0.5},
                                    });
    if (status == SDLF_OK) status = multiply(context, x, r, normal);
    return status == SDLF_OK ? multiply(context, normal, context->parameter[0], y) : status;
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    sdlf_tensor x = rows(context, context->input[0]), dy = rows(context, context->output_gradient[0]);
    sdlf_tensor r = context->saved[0], weight = context->parameter[0], dx = context->input_gradient[0];
    int64_t count = x.shape.dim[0], length = x.shape.dim[1];
    sdlf_tensor t[6];
    for (int i = 0; i < 6; i++) t[i] = sdlf_scratch(context, x.dtype, x.shape);
    sdlf_tensor mean = sdlf_scratch(context, x.dtype, r.shape);
    sdlf_tensor h = t[0], dyh = t[1], g = t[2], gh = t[3];
    sdlf_status status = multiply(context, x, r, h);
    if (status == SDLF_OK) status = multiply(context, dy, h, dyh);
    if (status == SDLF_OK) status = sdlf_layer_sum_to(context, dyh, context->parameter_gradient[0]);
    if (status != SDLF_OK || !sdlf_tensor_present(&dx)) return status;
    status = multiply(context, dy, weight, g);
    if (status == SDLF_OK) status = multiply(context, dyh, weight, gh);
    if (status == SDLF_OK) status = sdlf_layer_reduce(context, gh, count, length, 1, SDLF_REDUCE_MEAN, mean);
    if (status == SDLF_OK) status = multiply(context, h, mean, t[4]);
    if (status == SDLF_OK) status = sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, g, t[4], t[5]);
    return status == SDLF_OK ? multiply(context, t[5], r, rows(context, dx)) : status;
}

const sdlf_layer_class sdlf_rms_norm_class = {
    .name = "rms_norm",
    .summary = "each row divided by the root of the mean of its squares",
    .options_size = sizeof(sdlf_rms_norm_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_rms_norm(sdlf_model *model, sdlf_node x, const sdlf_rms_norm_options *options)
{
    return sdlf_model_add(model, &sdlf_rms_norm_class, options, &x, 1);
}
