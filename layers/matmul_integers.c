/* SPDX-License-Identifier: MIT */
/* matmul of bytes: y = (a - a_zero) (b - b_zero) in int32, modulo 2^32. It uses the calculator's integer_matmul; if
 * there is none, or if matrices of a batch have zero points of their own, the product is composed of other operations:
 * float32 represents every integer up to 2^24, and so dot products of up to MOST differences, which are at most 255 in
 * magnitude; longer ones are split, and added in int32. */
#include "layers/matmul.h"

enum { MOST = (1 << 24) / (255 * 255) };

static bool is_byte(sdlf_dtype dtype)
{
    return dtype == SDLF_INT8 || dtype == SDLF_UINT8;
}

bool sdlf_matmul_is_of_bytes(const sdlf_signature *signature)
{
    return is_byte(signature->input_dtype[0]) && is_byte(signature->input_dtype[1]);
}

/* The shape to which a zero point is broadcast: a vector has one for each row of a, or for each column of b. */
static sdlf_shape zero_shape(sdlf_shape zero, int side)
{
    if (zero.rank == 1 && side == 0 && zero.dim[0] > 1) return sdlf_shape(zero.dim[0], 1);
    return zero;
}

sdlf_status sdlf_matmul_check_bytes(const sdlf_signature *signature, const sdlf_matmul_sizes *sizes)
{
    const sdlf_shape operand[] = {sizes->a, sizes->b};
    if (sizes->turn_a || sizes->turn_b)
        return sdlf_fail(SDLF_ERROR_SHAPE, "its inputs are bytes, expected matrices that are not transposed");
    for (int i = 2; i < signature->input_count; i++) {
        sdlf_shape zero = signature->input_shape[i], whole;
        bool fits = sdlf_shape_broadcast(&whole, operand[i - 2], zero_shape(zero, i - 2)) &&
                    sdlf_shape_equal(whole, operand[i - 2]);
        if (signature->input_dtype[i] != signature->input_dtype[i - 2] || !fits)
            return sdlf_fail(SDLF_ERROR_SHAPE, "expected zero points of %s that fit %s, found %s of %s",
                             sdlf_dtype_name(signature->input_dtype[i - 2]), sdlf_shape_print(operand[i - 2]).text,
                             sdlf_shape_print(zero).text, sdlf_dtype_name(signature->input_dtype[i]));
    }
    return SDLF_OK;
}

/* Builds the operation, with the rows of all matrices as rows of one if b is the same for all; returns false for
 * per-matrix zero points. */
static bool as_operation(const sdlf_layer_context *context, const sdlf_matmul_sizes *s, sdlf_operation *op)
{
    int64_t matrices = sdlf_shape_count(s->batch), of_side[] = {s->m, s->n};
    bool one_b = sdlf_shape_span(s->b, 0, s->b.rank - 2) == 1;
    bool whole_a = sdlf_shape_span(s->a, 0, s->a.rank - 2) == matrices;
    bool one_zero = context->input_count < 3 || sdlf_tensor_count(&context->input[2]) == 1;
    *op = (sdlf_operation){.kind = SDLF_INTEGER_MATMUL};
    for (int i = 2; i < context->input_count; i++) {
        int64_t count = sdlf_tensor_count(&context->input[i]);
        if (count != 1 && count != of_side[i - 2]) return false;
        if (count > 1 && i == 3 && context->input[i].shape.dim[context->input[i].shape.rank - 1] != count) return false;
        if (count > 1 && i == 2 && context->input[i].shape.rank > 1 &&
            context->input[i].shape.dim[context->input[i].shape.rank - 2] != count)
            return false;
        op->in[i] = sdlf_tensor_reshape(context->input[i], sdlf_shape(count));
    }
    sdlf_tensor a = sdlf_tensor_reshape(context->input[0], s->a), b = sdlf_tensor_reshape(context->input[1], s->b);
    if (one_b && whole_a && one_zero) {
        op->in[0] = sdlf_tensor_reshape(a, sdlf_shape(matrices * s->m, s->k));
        op->in[1] = sdlf_tensor_reshape(b, sdlf_shape(s->k, s->n));
        op->out[0] = sdlf_tensor_reshape(context->output[0], sdlf_shape(matrices * s->m, s->n));
        return true;
    }
    op->in[0] = sdlf_tensor_broadcast(a, sdlf_matmul_with_matrix(s->batch, s->m, s->k));
    op->in[1] = sdlf_tensor_broadcast(b, sdlf_matmul_with_matrix(s->batch, s->k, s->n));
    op->out[0] = sdlf_tensor_reshape(context->output[0], sdlf_matmul_with_matrix(s->batch, s->m, s->n));
    return true;
}

/* `count` elements of x - zero along an axis, as float32. */
static sdlf_status centred(sdlf_layer_context *context, int side, sdlf_shape shape, int axis, int64_t first,
                           int64_t count, sdlf_tensor *to)
{
    sdlf_tensor x = sdlf_tensor_narrow(sdlf_tensor_reshape(context->input[side], shape), axis, first, count);
    *to = sdlf_scratch(context, SDLF_FLOAT32, x.shape);
    sdlf_status status = sdlf_layer_copy(context, x, *to);
    if (status != SDLF_OK || context->input_count < 3 + side) return status;
    sdlf_tensor zero = context->input[2 + side];
    zero = sdlf_tensor_broadcast(sdlf_tensor_reshape(zero, zero_shape(zero.shape, side)), shape);
    zero = sdlf_tensor_narrow(zero, axis, first, count);
    sdlf_tensor subtracted = sdlf_scratch(context, SDLF_FLOAT32, x.shape);
    status = sdlf_layer_copy(context, zero, subtracted);
    return status == SDLF_OK ? sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, *to, subtracted, *to) : status;
}

/* y = the product over MOST elements of k, or y += it. */
static sdlf_status add_part(sdlf_layer_context *context, const sdlf_matmul_sizes *s, int64_t first, sdlf_tensor y)
{
    int64_t count = s->k - first < MOST ? s->k - first : MOST;
    sdlf_tensor a, b, product = sdlf_scratch(context, SDLF_FLOAT32, y.shape);
    sdlf_tensor part = first == 0 ? y : sdlf_scratch(context, SDLF_INT32, y.shape);
    sdlf_status status = centred(context, 0, s->a, s->a.rank - 1, first, count, &a);
    if (status == SDLF_OK) status = centred(context, 1, s->b, s->b.rank - 2, first, count, &b);
    if (status == SDLF_OK) status = sdlf_matmul_multiply(context, s->batch, a, false, b, false, product);
    if (status == SDLF_OK) status = sdlf_layer_copy(context, product, part);
    if (status != SDLF_OK || first == 0) return status;
    return sdlf_layer_binary(context, SDLF_BINARY_ADD, y, part, y);
}

sdlf_status sdlf_matmul_of_bytes(sdlf_layer_context *context, const sdlf_matmul_sizes *s)
{
    sdlf_operation whole;
    if (as_operation(context, s, &whole) && sdlf_layer_supports(context, &whole)) return sdlf_emit(context, &whole);
    sdlf_tensor y = sdlf_tensor_reshape(context->output[0], sdlf_matmul_with_matrix(s->batch, s->m, s->n));
    sdlf_status status = SDLF_OK;
    for (int64_t first = 0; first < s->k && status == SDLF_OK; first += MOST) status = add_part(context, s, first, y);
    return status;
}
