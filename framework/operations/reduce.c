/* SPDX-License-Identifier: MIT */
/* reduce: one axis reduced to one value. Contract: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static sdlf_status check_reduce(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int axis = operation->reduce.axis;
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_expect(&check, (unsigned)operation->reduce.function < SDLF_REDUCTION_COUNT, "%d is not a valid reduction",
                (int)operation->reduce.function);
    sdlf_expect_axis(&check, axis, x);
    if (check.status != SDLF_OK) return check.status;
    sdlf_expect(&check, x->shape.dim[axis] > 0, "operand 'x' has shape %s: axis %d holds nothing to reduce",
                sdlf_shape_print(x->shape).text, axis);
    sdlf_shape kept = x->shape;
    kept.dim[axis] = 1;
    sdlf_expect_operand(&check, y, t, y->shape.rank == x->shape.rank ? kept : sdlf_shape_without(x->shape, axis));
    return check.status;
}

static int64_t reduce_flops(const sdlf_operation *operation)
{
    int64_t each = operation->reduce.function == SDLF_REDUCE_SUM_SQUARES ? 2 : 1;
    return sdlf_product(each, sdlf_tensor_count(&operation->in[0]), 1, 1);
}

const sdlf_operation_class sdlf_reduce_operation = {
    .name = "reduce",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .storage = 1u << 0,
    .check = check_reduce,
    .flops = reduce_flops,
};
