/* SPDX-License-Identifier: MIT */
/* matmul: y = a b of matrices, or of batches of them: a (...,m,k), b (...,k,n), y (...,m,n), with numpy broadcasting of
 * the leading axes. A vector is a row on the left and a column on the right, and that axis is absent from y. If b is
 * one matrix for the whole batch, it is a single GEMM. da = dy b^T, db = a^T dy, summed over the broadcast axes.
 *
 * For bytes, y is int32, and the optional inputs 2 and 3 are zero points, which are subtracted first
 * (matmul_integers.c). */
#include "layers/matmul.h"

static const sdlf_field fields[] = {
    {.name = "transpose_a",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_matmul_options, transpose_a),
     .help = "the left matrices are transposed first"},
    {.name = "transpose_b",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_matmul_options, transpose_b),
     .help = "the right matrices are transposed first"},
    {.name = NULL},
};

/* A vector as a matrix. */
static sdlf_shape as_matrix(sdlf_shape x, int side)
{
    if (x.rank != 1) return x;
    return side == 0 ? sdlf_shape(1, x.dim[0]) : sdlf_shape(x.dim[0], 1);
}

static sdlf_shape batch_of(sdlf_shape x)
{
    sdlf_shape batch = {.rank = x.rank - 2};
    for (int axis = 0; axis < batch.rank; axis++) batch.dim[axis] = x.dim[axis];
    return batch;
}

sdlf_shape sdlf_matmul_with_matrix(sdlf_shape batch, int64_t rows, int64_t columns)
{
    batch.dim[batch.rank++] = rows;
    batch.dim[batch.rank++] = columns;
    return batch;
}

static bool sizes_of(sdlf_matmul_sizes *s, const sdlf_layer *layer, sdlf_shape a, sdlf_shape b)
{
    const sdlf_matmul_options *options = layer->options;
    if (a.rank < 1 || b.rank < 1) return false;
    *s = (sdlf_matmul_sizes){.a = as_matrix(a, 0), .b = as_matrix(b, 1)};
    s->turn_a = options->transpose_a && a.rank > 1;
    s->turn_b = options->transpose_b && b.rank > 1;
    const int64_t *left = &s->a.dim[s->a.rank - 2], *right = &s->b.dim[s->b.rank - 2];
    s->m = left[s->turn_a], s->k = left[!s->turn_a];
    s->inner = right[s->turn_b], s->n = right[!s->turn_b];
    return s->k == s->inner && sdlf_shape_broadcast(&s->batch, batch_of(s->a), batch_of(s->b));
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    sdlf_matmul_sizes s;
    sdlf_shape a = signature->input_shape[0], b = signature->input_shape[1];
    sdlf_status status = SDLF_OK;
    const bool bytes = sdlf_matmul_is_of_bytes(signature);
    for (int i = 0; i < 2 && !bytes && status == SDLF_OK; i++) status = sdlf_layer_check_float(signature, i);
    if (status != SDLF_OK) return status;
    if (signature->input_count > 2 && !bytes)
        return sdlf_fail(SDLF_ERROR_SHAPE, "it has zero points, but its inputs are %s and %s, expected bytes",
                         sdlf_dtype_name(signature->input_dtype[0]), sdlf_dtype_name(signature->input_dtype[1]));
    if (!sizes_of(&s, layer, a, b))
        return sdlf_fail(SDLF_ERROR_SHAPE, "its inputs %s and %s cannot be multiplied", sdlf_shape_print(a).text,
                         sdlf_shape_print(b).text);
    if (bytes) status = sdlf_matmul_check_bytes(signature, &s);
    if (status != SDLF_OK) return status;
    sdlf_shape y = s.batch;
    if (a.rank > 1) y.dim[y.rank++] = s.m;
    if (b.rank > 1) y.dim[y.rank++] = s.n;
    return sdlf_signature_add_output(signature, bytes ? SDLF_INT32 : signature->dtype, y);
}

sdlf_status sdlf_matmul_multiply(sdlf_layer_context *context, sdlf_shape batch, sdlf_tensor a, bool turn_a,
                                 sdlf_tensor b, bool turn_b, sdlf_tensor y)
{
    const int64_t *left = &a.shape.dim[a.shape.rank - 2], *right = &b.shape.dim[b.shape.rank - 2];
    int64_t k = left[!turn_a], m = left[turn_a], n = right[!turn_b], rows = sdlf_shape_count(batch) * m;
    bool whole = sdlf_shape_count(batch_of(a.shape)) == sdlf_shape_count(batch);
    if (sdlf_shape_count(batch_of(b.shape)) == 1 && whole && (!turn_a || sdlf_shape_count(batch) == 1)) {
        sdlf_operation gemm = {
            .kind = SDLF_GEMM,
            .in = {sdlf_tensor_reshape(a, turn_a ? sdlf_shape(k, m) : sdlf_shape(rows, k)),
                   sdlf_tensor_reshape(b, sdlf_shape(right[0], right[1]))},
            .out = {sdlf_tensor_reshape(y, sdlf_shape(rows, n))},
            .gemm = {.transpose_a = turn_a, .transpose_b = turn_b, .alpha = 1},
        };
        return sdlf_emit(context, &gemm);
    }
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_MATMUL,
                                  .in = {sdlf_tensor_broadcast(a, sdlf_matmul_with_matrix(batch, left[0], left[1])),
                                         sdlf_tensor_broadcast(b, sdlf_matmul_with_matrix(batch, right[0], right[1]))},
                                  .out = {sdlf_tensor_reshape(y, sdlf_matmul_with_matrix(batch, m, n))},
                                  .matmul = {.transpose_a = turn_a, .transpose_b = turn_b},
                              });
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_matmul_sizes s;
    sizes_of(&s, layer, context->input[0].shape, context->input[1].shape);
    if (context->output[0].dtype == SDLF_INT32) return sdlf_matmul_of_bytes(context, &s);
    return sdlf_matmul_multiply(context, s.batch, sdlf_tensor_reshape(context->input[0], s.a), s.turn_a,
                                sdlf_tensor_reshape(context->input[1], s.b), s.turn_b, context->output[0]);
}

/* The gradient of one side, which was viewed as `shape`: a product over the whole batch, then summed. */
static sdlf_status gradient(sdlf_layer_context *context, const sdlf_matmul_sizes *s, sdlf_tensor left, bool turn_left,
                            sdlf_tensor right, bool turn_right, sdlf_shape shape, sdlf_tensor dx)
{
    if (!sdlf_tensor_present(&dx)) return SDLF_OK;
    sdlf_tensor to = sdlf_tensor_reshape(dx, shape);
    sdlf_shape wide = sdlf_matmul_with_matrix(s->batch, shape.dim[shape.rank - 2], shape.dim[shape.rank - 1]);
    bool stretched = sdlf_shape_count(wide) != sdlf_shape_count(shape);
    sdlf_tensor product = stretched ? sdlf_scratch(context, dx.dtype, wide) : to;
    sdlf_status status = sdlf_matmul_multiply(context, s->batch, left, turn_left, right, turn_right, product);
    return status == SDLF_OK && stretched ? sdlf_layer_sum_to(context, product, to) : status;
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_matmul_sizes s;
    sizes_of(&s, layer, context->input[0].shape, context->input[1].shape);
    sdlf_tensor a = sdlf_tensor_reshape(context->input[0], s.a), b = sdlf_tensor_reshape(context->input[1], s.b);
    sdlf_tensor dy = sdlf_tensor_reshape(context->output_gradient[0], sdlf_matmul_with_matrix(s.batch, s.m, s.n));
    sdlf_tensor da = context->input_gradient[0], db = context->input_gradient[1];
    sdlf_status status = s.turn_a ? gradient(context, &s, b, s.turn_b, dy, true, s.a, da)
                                  : gradient(context, &s, dy, false, b, !s.turn_b, s.a, da);
    if (status != SDLF_OK) return status;
    return s.turn_b ? gradient(context, &s, dy, true, a, s.turn_a, s.b, db)
                    : gradient(context, &s, a, !s.turn_a, dy, false, s.b, db);
}

const sdlf_layer_class sdlf_matmul_class = {
    .name = "matmul",
    .summary = "products of matrices",
    .options_size = sizeof(sdlf_matmul_options),
    .fields = fields,
    .minimum_inputs = 2,
    .maximum_inputs = 4,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_matmul(sdlf_model *model, sdlf_node a, sdlf_node b, const sdlf_matmul_options *options)
{
    return sdlf_model_add(model, &sdlf_matmul_class, options, (const sdlf_node[]){a, b}, 2);
}
