/* SPDX-License-Identifier: MIT */
/* The gradients of the reduce layer. With n elements reduced to one, and dy and y broadcast over them:
 *
 *   sum dy   mean dy / n   sum_squares 2 x dy   l2 x dy / y   l1 sign(x) dy   log_sum dy / exp(y)
 *   log_sum_exp dy exp(x - y)   product dy y / x   max, min: dy shared equally among the elements equal to y */
#include "layers/reduce.h"

typedef struct backward {
    sdlf_layer_context *context;
    sdlf_tensor x, y, dy, dx; /* y and dy with 1 for the reduced axes */
    unsigned axes;
} backward;

static sdlf_tensor wide(const backward *b, sdlf_tensor small)
{
    return sdlf_tensor_broadcast(small, b->x.shape);
}

static sdlf_tensor small(const backward *b)
{
    return sdlf_scratch(b->context, b->x.dtype, b->dy.shape);
}

/* dx = a op (dy function y), of which the second has the reduced shape. */
static sdlf_status with_quotient(const backward *b, sdlf_binary_function of_small, sdlf_binary_function of_x,
                                 bool x_first)
{
    sdlf_tensor factor = small(b);
    sdlf_status status = sdlf_layer_binary(b->context, of_small, b->dy, b->y, factor);
    if (status != SDLF_OK) return status;
    return x_first ? sdlf_layer_binary(b->context, of_x, b->x, wide(b, factor), b->dx)
                   : sdlf_layer_binary(b->context, of_x, wide(b, factor), b->x, b->dx);
}

static sdlf_status l1(const backward *b)
{
    sdlf_tensor spread = sdlf_scratch(b->context, b->x.dtype, b->x.shape);
    sdlf_status status = sdlf_layer_copy(b->context, wide(b, b->dy), spread);
    if (status != SDLF_OK) return status;
    return sdlf_emit(b->context, &(sdlf_operation){.kind = SDLF_ACTIVATION_BACKWARD,
                                                   .in = {b->x, spread},
                                                   .out = {b->dx},
                                                   .activation = {.function = SDLF_ABS}});
}

static sdlf_status log_sum(const backward *b)
{
    sdlf_tensor sum = small(b), factor = small(b);
    sdlf_status status = sdlf_layer_unary(b->context, SDLF_EXP, b->y, sum);
    if (status == SDLF_OK) status = sdlf_layer_binary(b->context, SDLF_BINARY_DIVIDE, b->dy, sum, factor);
    return status == SDLF_OK ? sdlf_layer_copy(b->context, wide(b, factor), b->dx) : status;
}

static sdlf_status log_sum_exp(const backward *b)
{
    sdlf_tensor shifted = sdlf_scratch(b->context, b->x.dtype, b->x.shape);
    sdlf_tensor share = sdlf_scratch(b->context, b->x.dtype, b->x.shape);
    sdlf_status status = sdlf_layer_binary(b->context, SDLF_BINARY_SUBTRACT, b->x, wide(b, b->y), shifted);
    if (status == SDLF_OK) status = sdlf_layer_unary(b->context, SDLF_EXP, shifted, share);
    if (status != SDLF_OK) return status;
    return sdlf_layer_binary(b->context, SDLF_BINARY_MULTIPLY, share, wide(b, b->dy), b->dx);
}

static sdlf_status extreme(const backward *b)
{
    sdlf_tensor attains = sdlf_scratch(b->context, SDLF_BOOL, b->x.shape);
    sdlf_tensor ones = sdlf_scratch(b->context, b->x.dtype, b->x.shape), count = small(b), share = small(b);
    sdlf_status status = sdlf_layer_binary(b->context, SDLF_BINARY_EQUAL, b->x, wide(b, b->y), attains);
    if (status == SDLF_OK) status = sdlf_layer_copy(b->context, attains, ones);
    if (status == SDLF_OK)
        status = sdlf_reduce_fold(b->context, ones, b->axes, SDLF_REDUCE_SUM, SDLF_REDUCE_SUM, count);
    if (status == SDLF_OK) status = sdlf_layer_binary(b->context, SDLF_BINARY_DIVIDE, b->dy, count, share);
    if (status != SDLF_OK) return status;
    return sdlf_emit(b->context,
                     &(sdlf_operation){.kind = SDLF_SELECT, .in = {attains, wide(b, share)}, .out = {b->dx}});
}

sdlf_status sdlf_reduce_backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    backward b = {.context = context, .x = context->input[0], .dx = context->input_gradient[0]};
    if (!sdlf_tensor_present(&b.dx)) return SDLF_OK;
    b.axes = sdlf_reduce_axes(layer, b.x.shape);
    sdlf_shape kept = sdlf_reduce_kept(b.x.shape, b.axes);
    b.y = sdlf_tensor_reshape(context->output[0], kept);
    b.dy = sdlf_tensor_reshape(context->output_gradient[0], kept);
    sdlf_tensor doubled;
    sdlf_status status;
    switch ((sdlf_reduce_function)((const sdlf_reduce_options *)layer->options)->function) {
    case SDLF_REDUCE_LAYER_SUM: return sdlf_layer_copy(context, wide(&b, b.dy), b.dx);
    case SDLF_REDUCE_LAYER_MEAN: {
        double share = (double)sdlf_shape_count(kept) / (double)sdlf_tensor_count(&b.x);
        return sdlf_layer_scale(context, wide(&b, b.dy), share, b.dx);
    }
    case SDLF_REDUCE_LAYER_SUM_SQUARES:
        doubled = small(&b);
        status = sdlf_layer_scale(context, b.dy, 2, doubled);
        if (status != SDLF_OK) return status;
        return sdlf_layer_binary(context, SDLF_BINARY_MULTIPLY, b.x, wide(&b, doubled), b.dx);
    case SDLF_REDUCE_LAYER_L2: return with_quotient(&b, SDLF_BINARY_DIVIDE, SDLF_BINARY_MULTIPLY, true);
    case SDLF_REDUCE_LAYER_PRODUCT: return with_quotient(&b, SDLF_BINARY_MULTIPLY, SDLF_BINARY_DIVIDE, false);
    case SDLF_REDUCE_LAYER_L1: return l1(&b);
    case SDLF_REDUCE_LAYER_LOG_SUM: return log_sum(&b);
    case SDLF_REDUCE_LAYER_LOG_SUM_EXP: return log_sum_exp(&b);
    default: return extreme(&b);
    }
}
