/* SPDX-License-Identifier: MIT */
/* mse, mae, huber, bce_with_logits: losses against float targets, means over all elements.
 *
 *   x (N,...), t (the same shape) -> loss (1) = sum over E elements of l(x, t) / E; with d = x - t
 *
 *     mse              l = d^2                                             dl/dx = 2 d
 *     mae              l = |d|                                             dl/dx = sign(d), 0 at 0
 *     huber            l = c (d - c / 2), c = min(max(d, -delta), delta)   dl/dx = c: d^2 / 2 near 0, delta (|d| -
 *                      delta / 2) beyond
 *     bce_with_logits  l = softplus(x) - x t = -t log s(x) - (1 - t) log(1 - s(x))   dl/dx = s(x) - t
 *
 *   dl/dt is -dl/dx, for bce_with_logits -x. Huber: Robust estimation of a location parameter, 1964.
 *
 * They use only operations that every calculator has. Metrics accumulate N times the loss, and as correct samples N times
 * the fraction of elements for which x > 0 exactly where t > 1/2 (only bce_with_logits; the others report none). */
#include "layers/views.h"

typedef enum target_loss { MSE, MAE, HUBER, BCE } target_loss;

static const sdlf_field huber_fields[] = {
    {.name = "delta",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_huber_options, delta),
     .minimum = 1e-6,
     .maximum = 1e6,
     .fallback = 1,
     .zero_means_default = true,
     .help = "difference from which on the loss is linear"},
    {.name = NULL},
};

static target_loss kind_of(const sdlf_layer *layer)
{
    if (layer->type == &sdlf_mse_class) return MSE;
    if (layer->type == &sdlf_mae_class) return MAE;
    return layer->type == &sdlf_huber_class ? HUBER : BCE;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    for (int i = 0; i < 2; i++) {
        sdlf_status status = sdlf_layer_check_float(signature, i);
        if (status != SDLF_OK) return status;
    }
    if (!sdlf_shape_equal(signature->input_shape[0], signature->input_shape[1]))
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected targets of shape %s, as what is compared with them, found %s",
                         sdlf_shape_print(signature->input_shape[0]).text,
                         sdlf_shape_print(signature->input_shape[1]).text);
    return sdlf_signature_add_output(signature, signature->dtype, sdlf_shape(1));
}

/* A flat view: the loss is elementwise. */
static sdlf_tensor flat(sdlf_tensor tensor)
{
    return sdlf_tensor_present(&tensor) ? sdlf_tensor_reshape(tensor, sdlf_shape(sdlf_tensor_count(&tensor))) : tensor;
}

static sdlf_tensor scratch(sdlf_layer_context *context)
{
    return sdlf_scratch(context, context->input[0].dtype, flat(context->input[0]).shape);
}

/* c = the difference, clamped to [-delta, delta]. */
static sdlf_status clip(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_tensor d, sdlf_tensor c)
{
    float delta = ((const sdlf_huber_options *)layer->options)->delta;
    return sdlf_emit(context, &(sdlf_operation){.kind = SDLF_ACTIVATION_FORWARD,
                                                .in = {d},
                                                .out = {c},
                                                .activation = {.function = SDLF_CLIP, .low = -delta, .high = delta}});
}

/* ---- forward ---- */

/* The elements whose sum, or sum of squares, is the loss. */
static sdlf_status terms(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_tensor l)
{
    sdlf_tensor x = flat(context->input[0]), t = flat(context->input[1]), c, half;
    target_loss kind = kind_of(layer);
    sdlf_status status;
    if (kind == BCE) {
        sdlf_tensor product = scratch(context), soft = scratch(context);
        status = sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, x, t, product);
        if (status == SDLF_OK) status = sdlf_layer_unary(context, SDLF_SOFTPLUS, x, soft);
        return status == SDLF_OK ? sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, soft, product, l) : status;
    }
    if (kind == MSE) return sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, x, t, l);
    sdlf_tensor d = scratch(context);
    status = sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, x, t, d);
    if (status != SDLF_OK || kind == MAE) return status == SDLF_OK ? sdlf_layer_unary(context, SDLF_ABS, d, l) : status;
    c = scratch(context), half = scratch(context);
    sdlf_tensor rest = scratch(context);
    status = clip(layer, context, d, c);
    if (status == SDLF_OK) status = sdlf_layer_scale(context, c, 0.5, half);
    if (status == SDLF_OK) status = sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, d, half, rest);
    return status == SDLF_OK ? sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, c, rest, l) : status;
}

/* metrics[at] += factor times value (1); value absent: 1. */
static sdlf_status add_metric(sdlf_layer_context *context, int at, sdlf_tensor value, double factor)
{
    sdlf_tensor sum = sdlf_tensor_narrow(context->metrics, 0, at, 1);
    sdlf_operation add = {
        .kind = SDLF_BINARY, .in = {sum}, .out = {sum}, .binary = {.function = SDLF_BINARY_ADD, .scalar = factor}};
    if (!sdlf_tensor_present(&value)) return sdlf_emit(context, &add);
    sdlf_tensor wide = sdlf_scratch(context, SDLF_FLOAT64, sdlf_shape(1));
    sdlf_tensor scaled = sdlf_scratch(context, SDLF_FLOAT64, sdlf_shape(1));
    sdlf_status status = sdlf_layer_copy(context, value, wide);
    if (status == SDLF_OK) status = sdlf_layer_scale(context, wide, factor, scaled);
    add.in[1] = scaled;
    return status == SDLF_OK ? sdlf_emit(context, &add) : status;
}

/* The fraction of elements for which x > 0 exactly where t > 1/2. */
static sdlf_status share_right(sdlf_layer_context *context, sdlf_tensor share)
{
    sdlf_tensor x = flat(context->input[0]), t = flat(context->input[1]), right = scratch(context);
    sdlf_tensor above[2], differ = sdlf_scratch(context, SDLF_BOOL, x.shape),
                          equal = sdlf_scratch(context, SDLF_BOOL, x.shape);
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < 2 && status == SDLF_OK; i++) {
        above[i] = sdlf_scratch(context, SDLF_BOOL, x.shape);
        status =
            sdlf_emit(context, &(sdlf_operation){.kind = SDLF_BINARY,
                                                 .in = {{.dtype = SDLF_NONE}, i == 0 ? x : t},
                                                 .out = {above[i]},
                                                 .binary = {.function = SDLF_BINARY_LESS, .scalar = i == 0 ? 0 : 0.5}});
    }
    if (status == SDLF_OK) status = sdlf_layer_binary(context, SDLF_BINARY_XOR, above[0], above[1], differ);
    if (status == SDLF_OK)
        status = sdlf_emit(context, &(sdlf_operation){.kind = SDLF_BINARY,
                                                      .in = {differ},
                                                      .out = {equal},
                                                      .binary = {.function = SDLF_BINARY_XOR, .scalar = 1}});
    if (status == SDLF_OK) status = sdlf_layer_copy(context, equal, right);
    return status == SDLF_OK ? sdlf_layer_reduce(context, right, 1, x.shape.dim[0], 1, SDLF_REDUCE_MEAN, share)
                             : status;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_tensor l = scratch(context), loss = context->output[0];
    sdlf_tensor sum = sdlf_scratch(context, l.dtype, sdlf_shape(1));
    int64_t count = l.shape.dim[0];
    double samples = (double)context->input[0].shape.dim[0];
    target_loss kind = kind_of(layer);
    sdlf_status status = terms(layer, context, l);
    if (status == SDLF_OK)
        status =
            sdlf_layer_reduce(context, l, 1, count, 1, kind == MSE ? SDLF_REDUCE_SUM_SQUARES : SDLF_REDUCE_SUM, sum);
    if (status == SDLF_OK) status = sdlf_layer_scale(context, sum, 1 / (double)count, loss);
    if (status != SDLF_OK || !sdlf_tensor_present(&context->metrics)) return status;
    status = add_metric(context, 0, loss, samples);
    if (status == SDLF_OK) status = add_metric(context, 2, (sdlf_tensor){.dtype = SDLF_NONE}, samples);
    if (status != SDLF_OK || kind != BCE) return status;
    sdlf_tensor share = sdlf_scratch(context, l.dtype, sdlf_shape(1));
    status = share_right(context, share);
    return status == SDLF_OK ? add_metric(context, 1, share, samples) : status;
}

/* ---- backward ---- */

/* Computes dl/dx up to a factor, which is returned. */
static sdlf_status derivative(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_tensor to, double *factor)
{
    sdlf_tensor x = flat(context->input[0]), t = flat(context->input[1]), d = scratch(context);
    target_loss kind = kind_of(layer);
    sdlf_status status;
    *factor = kind == MSE ? 2 : 1;
    if (kind == BCE) {
        status = sdlf_layer_unary(context, SDLF_SIGMOID, x, d);
        return status == SDLF_OK ? sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, d, t, to) : status;
    }
    if (kind == MSE) return sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, x, t, to);
    status = sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, x, t, d);
    if (status != SDLF_OK || kind == HUBER) return status == SDLF_OK ? clip(layer, context, d, to) : status;
    sdlf_tensor ones = scratch(context);
    status = sdlf_layer_fill(context, ones, 1);
    if (status != SDLF_OK) return status;
    return sdlf_emit(context, &(sdlf_operation){.kind = SDLF_ACTIVATION_BACKWARD,
                                                .in = {d, ones},
                                                .out = {to},
                                                .activation = {.function = SDLF_ABS}});
}

/* to = from dloss factor. */
static sdlf_status scale_by_loss(sdlf_layer_context *context, sdlf_tensor from, double factor, sdlf_tensor to)
{
    if (!sdlf_tensor_present(&to)) return SDLF_OK;
    sdlf_tensor share = sdlf_scratch(context, from.dtype, sdlf_shape(1));
    sdlf_status status = sdlf_layer_scale(context, context->output_gradient[0], factor, share);
    if (status != SDLF_OK) return status;
    return sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, from, sdlf_tensor_broadcast(share, from.shape), to);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_tensor dx = flat(context->input_gradient[0]), dt = flat(context->input_gradient[1]), d = scratch(context);
    double factor, share = 1 / (double)d.shape.dim[0];
    sdlf_status status = derivative(layer, context, d, &factor);
    if (status == SDLF_OK) status = scale_by_loss(context, d, factor * share, dx);
    if (status != SDLF_OK) return status;
    if (kind_of(layer) == BCE) return scale_by_loss(context, flat(context->input[0]), -share, dt);
    return scale_by_loss(context, d, -factor * share, dt);
}

/* ---- classes ---- */

const sdlf_layer_class sdlf_mse_class = {
    .name = "mse",
    .summary = "mean squared difference from float targets: a loss",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 2,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .is_loss = true,
    .has_metrics = true,
};

const sdlf_layer_class sdlf_mae_class = {
    .name = "mae",
    .summary = "mean absolute difference from float targets: a loss",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 2,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .is_loss = true,
    .has_metrics = true,
};

const sdlf_layer_class sdlf_huber_class = {
    .name = "huber",
    .summary = "Huber loss against float targets: squared where small, linear beyond",
    .options_size = sizeof(sdlf_huber_options),
    .fields = huber_fields,
    .minimum_inputs = 2,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .is_loss = true,
    .has_metrics = true,
};

const sdlf_layer_class sdlf_bce_with_logits_class = {
    .name = "bce_with_logits",
    .summary = "binary cross-entropy of logits against targets from 0 to 1: a loss",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 2,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .is_loss = true,
    .has_metrics = true,
};

sdlf_node sdlf_mse(sdlf_model *model, sdlf_node x, sdlf_node targets)
{
    return sdlf_model_add(model, &sdlf_mse_class, NULL, (const sdlf_node[]){x, targets}, 2);
}

sdlf_node sdlf_mae(sdlf_model *model, sdlf_node x, sdlf_node targets)
{
    return sdlf_model_add(model, &sdlf_mae_class, NULL, (const sdlf_node[]){x, targets}, 2);
}

sdlf_node sdlf_huber(sdlf_model *model, sdlf_node x, sdlf_node targets, const sdlf_huber_options *options)
{
    return sdlf_model_add(model, &sdlf_huber_class, options, (const sdlf_node[]){x, targets}, 2);
}

sdlf_node sdlf_bce_with_logits(sdlf_model *model, sdlf_node logits, sdlf_node targets)
{
    return sdlf_model_add(model, &sdlf_bce_with_logits_class, NULL, (const sdlf_node[]){logits, targets}, 2);
}
