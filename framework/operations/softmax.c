/* SPDX-License-Identifier: MIT */
/* softmax, log_softmax and softmax_cross_entropy, forward and backward. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* All operands have the same shape. */
static sdlf_status check_softmax(const sdlf_operation *operation)
{
    const sdlf_tensor *first = &operation->in[0];
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, first);
    sdlf_expect_axis(&check, operation->softmax.axis, first);
    sdlf_expect_operand(&check, &operation->in[1], t, first->shape); /* backward's dy */
    sdlf_expect_operand(&check, &operation->out[0], t, first->shape);
    return check.status;
}

/* Maximum, difference, exponential, sum and quotient; or product, sum, difference and product. */
static int64_t softmax_flops(const sdlf_operation *operation)
{
    return sdlf_product(5, sdlf_tensor_count(&operation->out[0]), 1, 1);
}

const sdlf_operation_class sdlf_softmax_forward_operation = {
    .name = "softmax_forward",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 0,
    .check = check_softmax,
    .flops = softmax_flops,
};

const sdlf_operation_class sdlf_softmax_backward_operation = {
    .name = "softmax_backward",
    .in = {{.name = "y"}, {.name = "dy"}},
    .out = {{.name = "dx"}},
    .may_alias = 1u << 1,
    .check = check_softmax,
    .flops = softmax_flops,
};

const sdlf_operation_class sdlf_log_softmax_forward_operation = {
    .name = "log_softmax_forward",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 0,
    .check = check_softmax,
    .flops = softmax_flops,
};

const sdlf_operation_class sdlf_log_softmax_backward_operation = {
    .name = "log_softmax_backward",
    .in = {{.name = "y"}, {.name = "dy"}},
    .out = {{.name = "dx"}},
    .may_alias = 1u << 1,
    .check = check_softmax,
    .flops = softmax_flops,
};

/* `rows` is (N,C): logits or probabilities. */
static sdlf_check expect_cross_entropy(const sdlf_operation *operation, const sdlf_tensor *rows)
{
    sdlf_check check = {.operation = operation};
    sdlf_expect_floating(&check, rows);
    sdlf_expect_rank(&check, rows, 2);
    sdlf_expect(&check, rows->shape.dim[0] > 0 && rows->shape.dim[1] > 0,
                "operand '%s' has shape %s, expected at least one row and one class",
                sdlf_operation_type(operation)->in[0].name, sdlf_shape_print(rows->shape).text);
    sdlf_expect_operand(&check, &operation->in[1], SDLF_INT32, sdlf_shape(rows->shape.dim[0]));
    sdlf_expect_operand(&check, &operation->in[3], rows->dtype, sdlf_shape(rows->shape.dim[0]));
    sdlf_expect_operand(&check, &operation->out[0], rows->dtype, rows->shape);
    sdlf_expect_below(&check, "smoothing", (double)operation->cross_entropy.smoothing, 0, 1);
    return check;
}

static sdlf_status check_cross_entropy_forward(const sdlf_operation *operation)
{
    const sdlf_tensor *logits = &operation->in[0];
    sdlf_check check = expect_cross_entropy(operation, logits);
    sdlf_expect_operand(&check, &operation->out[1], logits->dtype, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[2], SDLF_FLOAT64, sdlf_shape(3));
    sdlf_expect_operand(&check, &operation->in[2], logits->dtype, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[3], logits->dtype, logits->shape);
    sdlf_expect(&check, sdlf_tensor_present(&operation->in[2]) == sdlf_tensor_present(&operation->out[3]),
                "expected both operands 'dloss' and 'dlogits', or neither");
    return check.status;
}

static int64_t cross_entropy_forward_flops(const sdlf_operation *operation)
{
    return sdlf_sum(softmax_flops(operation), sdlf_product(2, sdlf_tensor_count(&operation->out[3]), 1, 1));
}

const sdlf_operation_class sdlf_softmax_cross_entropy_forward_operation = {
    .name = "softmax_cross_entropy_forward",
    .in = {{.name = "logits"},
           {.name = "labels"},
           {.name = "dloss", .optional = true},
           {.name = "weights", .optional = true}},
    .out = {{.name = "p"},
            {.name = "loss"},
            {.name = "metrics", .optional = true, .updated = true},
            {.name = "dlogits", .optional = true}},
    .check = check_cross_entropy_forward,
    .flops = cross_entropy_forward_flops,
};

static sdlf_status check_cross_entropy_backward(const sdlf_operation *operation)
{
    const sdlf_tensor *p = &operation->in[0];
    sdlf_check check = expect_cross_entropy(operation, p);
    sdlf_expect_operand(&check, &operation->in[2], p->dtype, sdlf_shape(1));
    return check.status;
}

static int64_t cross_entropy_backward_flops(const sdlf_operation *operation)
{
    return sdlf_product(2, sdlf_tensor_count(&operation->out[0]), 1, 1);
}

const sdlf_operation_class sdlf_softmax_cross_entropy_backward_operation = {
    .name = "softmax_cross_entropy_backward",
    .in = {{.name = "p"}, {.name = "labels"}, {.name = "dloss"}, {.name = "weights", .optional = true}},
    .out = {{.name = "dlogits"}},
    .check = check_cross_entropy_backward,
    .flops = cross_entropy_backward_flops,
};
