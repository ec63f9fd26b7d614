/* SPDX-License-Identifier: MIT */
/* arg_reduce, gather, gather_backward, top_k: picking elements along one axis. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static sdlf_status check_arg_reduce(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int axis = operation->arg_reduce.axis;
    sdlf_check check = {.operation = operation};
    sdlf_expect_floating(&check, x);
    sdlf_expect_axis(&check, axis, x);
    if (check.status != SDLF_OK) return check.status;
    sdlf_expect(&check, x->shape.dim[axis] > 0, "operand 'x' has shape %s: axis %d holds nothing to choose from",
                sdlf_shape_print(x->shape).text, axis);
    sdlf_shape kept = x->shape;
    kept.dim[axis] = 1;
    sdlf_expect_operand(&check, y, SDLF_INT64,
                        y->shape.rank == x->shape.rank ? kept : sdlf_shape_without(x->shape, axis));
    return check.status;
}

static int64_t arg_reduce_flops(const sdlf_operation *operation)
{
    return sdlf_tensor_count(&operation->in[0]);
}

const sdlf_operation_class sdlf_arg_reduce_operation = {
    .name = "arg_reduce",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .check = check_arg_reduce,
    .flops = arg_reduce_flops,
};

/* y's shape is x's with its axis replaced by index's. */
static void expect_gather(sdlf_check *check, const sdlf_tensor *x, const sdlf_tensor *y)
{
    const sdlf_tensor *index = &check->operation->in[1];
    int axis = check->operation->index.axis;
    sdlf_expect_axis(check, axis, x);
    if (index->dtype != SDLF_INT64) sdlf_expect_dtype(check, index, SDLF_INT32);
    if (check->status != SDLF_OK) return;
    sdlf_shape shape = {.rank = x->shape.rank - 1 + index->shape.rank};
    sdlf_expect(check, shape.rank <= SDLF_MAX_RANK, "the output would have %d dimensions, at most %d are possible",
                shape.rank, SDLF_MAX_RANK);
    if (check->status != SDLF_OK) return;
    for (int i = 0; i < shape.rank; i++) {
        bool before = i < axis, inside = !before && i < axis + index->shape.rank;
        shape.dim[i] = before   ? x->shape.dim[i]
                       : inside ? index->shape.dim[i - axis]
                                : x->shape.dim[i - index->shape.rank + 1];
    }
    sdlf_expect_operand(check, y, x->dtype, shape);
}

static int64_t no_flops(const sdlf_operation *operation)
{
    (void)operation;
    return 0;
}

static sdlf_status check_gather(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    expect_gather(&check, &operation->in[0], &operation->out[0]);
    return check.status;
}

const sdlf_operation_class sdlf_gather_operation = {
    .name = "gather",
    .in = {{.name = "x"}, {.name = "index"}},
    .out = {{.name = "y"}},
    .check = check_gather,
    .flops = no_flops,
};

static sdlf_status check_gather_backward(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    sdlf_expect_floating(&check, &operation->out[0]);
    expect_gather(&check, &operation->out[0], &operation->in[0]);
    return check.status;
}

static int64_t gather_backward_flops(const sdlf_operation *operation)
{
    return sdlf_tensor_count(&operation->in[0]);
}

const sdlf_operation_class sdlf_gather_backward_operation = {
    .name = "gather_backward",
    .in = {{.name = "dy"}, {.name = "index"}},
    .out = {{.name = "dx"}},
    .check = check_gather_backward,
    .flops = gather_backward_flops,
};

static sdlf_status check_top_k(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int axis = operation->top_k.axis;
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_expect_axis(&check, axis, x);
    sdlf_expect_rank(&check, y, x->shape.rank);
    if (check.status != SDLF_OK) return check.status;
    sdlf_shape shape = x->shape;
    shape.dim[axis] = y->shape.dim[axis];
    sdlf_expect(&check, shape.dim[axis] <= x->shape.dim[axis], "%lld elements are asked of %lld",
                (long long)shape.dim[axis], (long long)x->shape.dim[axis]);
    sdlf_expect_operand(&check, y, t, shape);
    sdlf_expect_operand(&check, &operation->out[1], SDLF_INT64, shape);
    return check.status;
}

/* One search for each. */
static int64_t top_k_flops(const sdlf_operation *operation)
{
    int64_t k = operation->out[0].shape.dim[operation->top_k.axis];
    return sdlf_product(k, sdlf_tensor_count(&operation->in[0]), 1, 1);
}

const sdlf_operation_class sdlf_top_k_operation = {
    .name = "top_k",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}, {.name = "index"}},
    .check = check_top_k,
    .flops = top_k_flops,
};
