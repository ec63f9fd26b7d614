/* SPDX-License-Identifier: MIT */
/* integer_matmul: batched products of 8-bit integer matrices. Contract: <sdlf/operations/quantization.h>. */
#include <math.h>

#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* One value, or `count` of them. */
static void expect_line(sdlf_check *check, const sdlf_tensor *x, sdlf_dtype dtype, int64_t count)
{
    if (!sdlf_tensor_present(x)) return;
    bool one = x->shape.rank == 1 && x->shape.dim[0] == 1;
    sdlf_expect_operand(check, x, dtype, sdlf_shape(one ? 1 : count));
}

/* Checks the options that convert the int32 sums to y. */
static void expect_scaled(sdlf_check *check)
{
    const sdlf_operation *operation = check->operation;
    const sdlf_tensor *y = &operation->out[0];
    const sdlf_integer_matmul_options *o = &operation->integer_matmul;
    if (!sdlf_tensor_present(&operation->in[4]))
        sdlf_expect(check, fabsf(o->scale) < INFINITY, "scale is %g", (double)o->scale);
    if (y->dtype == SDLF_FLOAT32) {
        sdlf_expect(check, o->low <= o->high, "low is %g, and high %g", (double)o->low, (double)o->high);
        return;
    }
    sdlf_expect_quantised(check, y, "y_zero", o->y_zero);
    sdlf_expect_bounds(check, y, (double)o->low, (double)o->high);
}

static sdlf_status check_integer_matmul(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    const sdlf_integer_matmul_options *o = &operation->integer_matmul;
    sdlf_check check = {.operation = operation};
    int rank = a->shape.rank;
    sdlf_expect_quantised(&check, a, "a_zero", o->a_zero);
    sdlf_expect_quantised(&check, b, "b_zero", o->b_zero);
    sdlf_expect(&check, rank >= 2, "operand 'a' has shape %s, expected a matrix or a batch of them",
                sdlf_shape_print(a->shape).text);
    sdlf_expect_rank(&check, b, rank);
    if (check.status != SDLF_OK) return check.status;
    sdlf_shape b_shape = a->shape, y_shape = a->shape;
    int64_t rows = a->shape.dim[rank - 2], columns = b->shape.dim[rank - 1];
    b_shape.dim[rank - 2] = a->shape.dim[rank - 1];
    b_shape.dim[rank - 1] = y_shape.dim[rank - 1] = columns;
    sdlf_expect_shape(&check, b, b_shape);
    sdlf_expect_shape(&check, y, y_shape);
    expect_line(&check, &operation->in[2], a->dtype, rows);
    expect_line(&check, &operation->in[3], b->dtype, columns);
    expect_line(&check, &operation->in[4], SDLF_FLOAT32, columns);
    expect_line(&check, &operation->in[5], SDLF_FLOAT32, columns);
    bool scaled = sdlf_tensor_present(&operation->in[4]) || sdlf_tensor_present(&operation->in[5]);
    if (y->dtype == SDLF_INT32)
        sdlf_expect(&check, !scaled, "there is a scale or bias: sums of int32 have none");
    else
        expect_scaled(&check);
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
    .in = {{.name = "a"},
           {.name = "b"},
           {.name = "a_zero", .optional = true},
           {.name = "b_zero", .optional = true},
           {.name = "scale", .optional = true},
           {.name = "bias", .optional = true}},
    .out = {{.name = "y"}},
    .any_strides = 1u << 0 | 1u << 1,
    .packed = 1u << 1,
    .unread = 1u << 1,
    .check = check_integer_matmul,
    .flops = integer_matmul_flops,
};
