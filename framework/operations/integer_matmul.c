/* SPDX-License-Identifier: MIT */
/* integer_matmul: products of batches of matrices of bytes. Contract: <sdlf/operations/kinds.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static void expect_bytes(sdlf_check *check, const sdlf_tensor *x)
{
    if (x->dtype != SDLF_INT8) sdlf_expect_dtype(check, x, SDLF_UINT8);
}

/* One number, or `count` of them, of x's type. */
static void expect_zero(sdlf_check *check, const sdlf_tensor *zero, const sdlf_tensor *x, int64_t count)
{
    if (!sdlf_tensor_present(zero)) return;
    bool one = zero->shape.rank == 1 && zero->shape.dim[0] == 1;
    sdlf_expect_operand(check, zero, x->dtype, sdlf_shape(one ? 1 : count));
}

static sdlf_status check_integer_matmul(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    sdlf_check check = {.operation = operation};
    int rank = a->shape.rank;
    expect_bytes(&check, a);
    expect_bytes(&check, b);
    sdlf_expect(&check, rank >= 2, "operand 'a' has shape %s, expected a matrix or a batch of them",
                sdlf_shape_print(a->shape).text);
    sdlf_expect_rank(&check, b, rank);
    if (check.status != SDLF_OK) return check.status;
    sdlf_shape b_shape = a->shape, y_shape = a->shape;
    b_shape.dim[rank - 2] = a->shape.dim[rank - 1];
    b_shape.dim[rank - 1] = y_shape.dim[rank - 1] = b->shape.dim[rank - 1];
    sdlf_expect_shape(&check, b, b_shape);
    sdlf_expect_operand(&check, y, SDLF_INT32, y_shape);
    expect_zero(&check, &operation->in[2], a, a->shape.dim[rank - 2]);
    expect_zero(&check, &operation->in[3], b, b->shape.dim[rank - 1]);
    sdlf_expect_matrices(&check, a, "a");
    sdlf_expect_matrices(&check, b, "b");
    return check.status;
}

static int64_t integer_matmul_flops(const sdlf_operation *operation)
{
    const sdlf_shape *a = &operation->in[0].shape;
    return sdlf_product(2, sdlf_tensor_count(&operation->out[0]), a->dim[a->rank - 1], 1);
}

const sdlf_operation_class sdlf_integer_matmul_operation = {
    .name = "integer_matmul",
    .in = {{.name = "a"}, {.name = "b"}, {.name = "a_zero", .optional = true}, {.name = "b_zero", .optional = true}},
    .out = {{.name = "y"}},
    .any_strides = 1u << 0 | 1u << 1,
    .check = check_integer_matmul,
    .flops = integer_matmul_flops,
};
