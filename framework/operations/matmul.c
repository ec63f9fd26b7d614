/* SPDX-License-Identifier: MIT */
/* matmul: batched matrix products. Contract: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static sdlf_status check_matmul(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    sdlf_check check = {.operation = operation};
    int rank = a->shape.rank;
    bool turn_a = operation->matmul.transpose_a, turn_b = operation->matmul.transpose_b;
    sdlf_dtype t = sdlf_expect_floating(&check, a);
    sdlf_expect(&check, rank >= 2, "operand 'a' has shape %s, expected a matrix or a batch of them",
                sdlf_shape_print(a->shape).text);
    sdlf_expect_rank(&check, b, rank);
    if (check.status != SDLF_OK) return check.status;
    sdlf_shape b_shape = a->shape, y_shape = a->shape;
    int64_t m = a->shape.dim[rank - (turn_a ? 1 : 2)], k = a->shape.dim[rank - (turn_a ? 2 : 1)];
    int64_t n = b->shape.dim[rank - (turn_b ? 2 : 1)];
    b_shape.dim[rank - 2] = turn_b ? n : k;
    b_shape.dim[rank - 1] = turn_b ? k : n;
    y_shape.dim[rank - 2] = m;
    y_shape.dim[rank - 1] = n;
    sdlf_expect_operand(&check, b, t, b_shape);
    sdlf_expect_operand(&check, y, t, y_shape);
    sdlf_expect_matrices(&check, a, "a");
    sdlf_expect_matrices(&check, b, "b");
    return check.status;
}

static int64_t matmul_flops(const sdlf_operation *operation)
{
    const sdlf_shape *a = &operation->in[0].shape;
    int64_t k = a->dim[a->rank - (operation->matmul.transpose_a ? 2 : 1)];
    return sdlf_product(2, sdlf_tensor_count(&operation->out[0]), k, 1);
}

const sdlf_operation_class sdlf_matmul_operation = {
    .name = "matmul",
    .in = {{.name = "a"}, {.name = "b"}},
    .out = {{.name = "y"}},
    .any_strides = 1u << 0 | 1u << 1,
    .check = check_matmul,
    .flops = matmul_flops,
};
