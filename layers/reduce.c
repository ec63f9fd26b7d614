/* SPDX-License-Identifier: MIT */
/* reduce: y = sum, mean, max, min, product of x over some axes, or a norm or logarithm made of these:
 *
 *   l1 sum |x|   l2 sqrt(sum x^2)   sum_squares   log_sum log(sum x)   log_sum_exp m + log(sum exp(x - m)), m = max x
 *
 * Every run of neighbouring axes is one operation. The gradients are in reduce_backward.c. */
#include "layers/reduce.h"

#include <float.h>

static const char *const functions[] = {"sum", "mean",        "max",     "min",         "product", "l1",
                                        "l2",  "sum_squares", "log_sum", "log_sum_exp", NULL};

static const sdlf_field fields[] = {
    {.name = "function",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_reduce_options, function),
     .choices = functions,
     .help = "how the elements are combined"},
    {.name = "axes",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_reduce_options, axes),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .zero_means_default = true,
     .help = "axes to reduce, 0 being the batch, -1 the last; left out: all"},
    {.name = "keep",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_reduce_options, keep),
     .help = "the axes stay, with 1 element each"},
    {.name = NULL},
};

unsigned sdlf_reduce_axes(const sdlf_layer *layer, sdlf_shape x)
{
    const sdlf_shape *axes = &((const sdlf_reduce_options *)layer->options)->axes;
    unsigned mask = 0;
    if (axes->rank == 0) return (1u << x.rank) - 1;
    for (int i = 0; i < axes->rank; i++) mask |= 1u << sdlf_layer_axis_from_start((int)axes->dim[i], x.rank);
    return mask;
}

sdlf_shape sdlf_reduce_kept(sdlf_shape x, unsigned axes)
{
    for (int axis = 0; axis < x.rank; axis++)
        if (axes >> axis & 1) x.dim[axis] = 1;
    return x;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_reduce_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0], y = {0};
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    unsigned used = 0;
    for (int i = 0; i < options->axes.rank && status == SDLF_OK; i++) {
        int axis;
        status = sdlf_layer_axis(&axis, (int)options->axes.dim[i], x);
        if (status == SDLF_OK && used >> axis & 1) status = sdlf_fail(SDLF_ERROR_SHAPE, "axis %d is named twice", axis);
        used |= status == SDLF_OK ? 1u << axis : 0;
    }
    if (status != SDLF_OK) return status;
    unsigned axes = sdlf_reduce_axes(layer, x);
    for (int axis = 0; axis < x.rank; axis++) {
        bool folded = axes >> axis & 1;
        if (!folded || options->keep) y.dim[y.rank++] = folded ? 1 : x.dim[axis];
    }
    return sdlf_signature_add_output(signature, signature->dtype, y);
}

sdlf_status sdlf_reduce_fold(sdlf_layer_context *context, sdlf_tensor x, unsigned axes, sdlf_reduction first,
                             sdlf_reduction rest, sdlf_tensor y)
{
    sdlf_tensor now = x;
    sdlf_shape left = x.shape;
    sdlf_reduction function = first;
    for (int axis = 0; axis < x.shape.rank; axis++) /* an axis of one element needs no reduction, and joins any run */
        if (x.shape.dim[axis] == 1) axes &= ~(1u << axis);
    for (int start = 0; start < x.shape.rank; start++) {
        if (!(axes >> start & 1)) continue;
        int end = start + 1;
        while (end < x.shape.rank && (axes >> end & 1 || x.shape.dim[end] == 1)) end++;
        int64_t outer = sdlf_shape_span(left, 0, start), length = sdlf_shape_span(left, start, end);
        int64_t inner = sdlf_shape_span(left, end, left.rank);
        for (int axis = start; axis < end; axis++) left.dim[axis] = 1;
        bool done = axes >> end == 0;
        sdlf_tensor next = done ? y : sdlf_scratch(context, x.dtype, left);
        sdlf_status status = sdlf_layer_reduce(context, now, outer, length, inner, function, next);
        if (status != SDLF_OK || done) return status;
        now = next;
        function = rest;
        start = end;
    }
    /* a scalar has no axes: treat it as a line of one element */
    return sdlf_layer_reduce(context, now, sdlf_tensor_count(&now), 1, 1, function, y);
}

/* m + log(sum exp(x - m)), with m clamped to be finite: infinity minus itself is NaN. (For float64 clip has no bounds.) */
static sdlf_status log_sum_exp(sdlf_layer_context *context, sdlf_tensor x, unsigned axes, sdlf_tensor y)
{
    sdlf_tensor largest = sdlf_scratch(context, x.dtype, sdlf_reduce_kept(x.shape, axes));
    sdlf_tensor finite = x.dtype == SDLF_FLOAT64 ? largest : sdlf_scratch(context, x.dtype, largest.shape);
    sdlf_tensor shifted = sdlf_scratch(context, x.dtype, x.shape), power = sdlf_scratch(context, x.dtype, x.shape);
    sdlf_tensor sum = sdlf_scratch(context, x.dtype, y.shape), logarithm = sdlf_scratch(context, x.dtype, y.shape);
    sdlf_status status = sdlf_reduce_fold(context, x, axes, SDLF_REDUCE_MAX, SDLF_REDUCE_MAX, largest);
    if (status == SDLF_OK && x.dtype != SDLF_FLOAT64)
        status = sdlf_emit(context, &(sdlf_operation){
                                        .kind = SDLF_ACTIVATION_FORWARD,
                                        .in = {largest},
                                        .out = {finite},
                                        .activation = {.function = SDLF_CLIP, .low = -FLT_MAX, .high = FLT_MAX},
                                    });
    if (status == SDLF_OK)
        status = sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, x, sdlf_tensor_broadcast(finite, x.shape), shifted);
    if (status == SDLF_OK) status = sdlf_layer_unary(context, SDLF_EXP, shifted, power);
    if (status == SDLF_OK) status = sdlf_reduce_fold(context, power, axes, SDLF_REDUCE_SUM, SDLF_REDUCE_SUM, sum);
    if (status == SDLF_OK) status = sdlf_layer_unary(context, SDLF_LOG, sum, logarithm);
    if (status != SDLF_OK) return status;
    return sdlf_layer_binary(context, SDLF_BINARY_ADD, logarithm, sdlf_tensor_reshape(finite, y.shape), y);
}

/* Reduces into a scratch tensor, then applies a function. */
static sdlf_status fold_then(sdlf_layer_context *context, sdlf_tensor x, unsigned axes, sdlf_reduction first,
                             sdlf_activation_function function, sdlf_tensor y)
{
    sdlf_tensor folded = sdlf_scratch(context, x.dtype, y.shape);
    sdlf_status status = sdlf_reduce_fold(context, x, axes, first, SDLF_REDUCE_SUM, folded);
    return status == SDLF_OK ? sdlf_layer_unary(context, function, folded, y) : status;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_tensor x = context->input[0], y = context->output[0], absolute;
    unsigned axes = sdlf_reduce_axes(layer, x.shape);
    sdlf_status status;
    switch ((sdlf_reduce_function)((const sdlf_reduce_options *)layer->options)->function) {
    case SDLF_REDUCE_LAYER_SUM: return sdlf_reduce_fold(context, x, axes, SDLF_REDUCE_SUM, SDLF_REDUCE_SUM, y);
    case SDLF_REDUCE_LAYER_MEAN: return sdlf_reduce_fold(context, x, axes, SDLF_REDUCE_MEAN, SDLF_REDUCE_MEAN, y);
    case SDLF_REDUCE_LAYER_MAX: return sdlf_reduce_fold(context, x, axes, SDLF_REDUCE_MAX, SDLF_REDUCE_MAX, y);
    case SDLF_REDUCE_LAYER_MIN: return sdlf_reduce_fold(context, x, axes, SDLF_REDUCE_MIN, SDLF_REDUCE_MIN, y);
    case SDLF_REDUCE_LAYER_PRODUCT:
        return sdlf_reduce_fold(context, x, axes, SDLF_REDUCE_PRODUCT, SDLF_REDUCE_PRODUCT, y);
    case SDLF_REDUCE_LAYER_SUM_SQUARES:
        return sdlf_reduce_fold(context, x, axes, SDLF_REDUCE_SUM_SQUARES, SDLF_REDUCE_SUM, y);
    case SDLF_REDUCE_LAYER_L1:
        absolute = sdlf_scratch(context, x.dtype, x.shape);
        status = sdlf_layer_unary(context, SDLF_ABS, x, absolute);
        if (status != SDLF_OK) return status;
        return sdlf_reduce_fold(context, absolute, axes, SDLF_REDUCE_SUM, SDLF_REDUCE_SUM, y);
    case SDLF_REDUCE_LAYER_L2: return fold_then(context, x, axes, SDLF_REDUCE_SUM_SQUARES, SDLF_SQRT, y);
    case SDLF_REDUCE_LAYER_LOG_SUM: return fold_then(context, x, axes, SDLF_REDUCE_SUM, SDLF_LOG, y);
    default: return log_sum_exp(context, x, axes, y);
    }
}

const sdlf_layer_class sdlf_reduce_class = {
    .name = "reduce",
    .summary = "some axes reduced to one element",
    .options_size = sizeof(sdlf_reduce_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = sdlf_reduce_backward,
};

sdlf_node sdlf_reduce(sdlf_model *model, sdlf_node x, const sdlf_reduce_options *options)
{
    return sdlf_model_add(model, &sdlf_reduce_class, options, &x, 1);
}
