/* SPDX-License-Identifier: MIT */
/* batch_norm2d: training, inference, gradient. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* x is (N,C,H,W) or (N,C); returns the shape of the operands with one value per channel. */
static sdlf_shape expect_channels(sdlf_check *check, const sdlf_tensor *x)
{
    sdlf_expect_floating(check, x);
    if (x->shape.rank != 2) sdlf_expect_rank(check, x, 4);
    return sdlf_shape(x->shape.dim[1]);
}

bool sdlf_batch_norm2d_is_fused(const sdlf_operation *operation)
{
    if (operation == NULL || operation->kind == SDLF_BATCH_NORM2D_INFER) return false;
    bool forward = operation->kind == SDLF_BATCH_NORM2D_FORWARD;
    return operation->batch_norm.activation.function != SDLF_IDENTITY ||
           sdlf_tensor_present(forward ? &operation->in[3] : &operation->out[3]);
}

static void expect_values(sdlf_check *check, const sdlf_tensor *x)
{
    int64_t channels = x->shape.dim[1];
    sdlf_expect(check, channels == 0 || sdlf_tensor_count(x) > 0,
                "operand 'x' has shape %s: its channels hold no values to take a mean of",
                sdlf_shape_print(x->shape).text);
}

static sdlf_status check_forward(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    sdlf_check check = {.operation = operation};
    sdlf_shape channels = expect_channels(&check, x);
    expect_values(&check, x);
    for (int i = 1; i <= 2; i++) sdlf_expect_operand(&check, &operation->in[i], x->dtype, channels);
    sdlf_expect_operand(&check, &operation->in[3], x->dtype, x->shape);
    sdlf_expect_operand(&check, &operation->out[0], x->dtype, x->shape);
    for (int i = 1; i <= 4; i++) sdlf_expect_operand(&check, &operation->out[i], x->dtype, channels);
    sdlf_expect_activation(&check, &operation->batch_norm.activation);
    sdlf_expect_between(&check, "epsilon", (double)operation->batch_norm.epsilon, 0, 1e30);
    sdlf_expect_between(&check, "momentum", (double)operation->batch_norm.momentum, 0, 1);
    return check.status;
}

/* Mean, variance, and the affine map. */
static int64_t forward_flops(const sdlf_operation *operation)
{
    return sdlf_product(6, sdlf_tensor_count(&operation->in[0]), 1, 1);
}

const sdlf_operation_class sdlf_batch_norm2d_forward_operation = {
    .name = "batch_norm2d_forward",
    .in = {{.name = "x"}, {.name = "scale"}, {.name = "shift"}, {.name = "residual", .optional = true}},
    .out = {{.name = "y"},
            {.name = "saved_mean"},
            {.name = "saved_inverse_std"},
            {.name = "running_mean", .updated = true},
            {.name = "running_variance", .updated = true}},
    .may_alias = 1u << 3,
    .epilogue = offsetof(sdlf_operation, batch_norm.activation),
    .nhwc_rule = SDLF_NHWC_ROWS,
    .storage = 1u << 0 | 1u << 3 | 1u << SDLF_MAX_INPUTS,
    .check = check_forward,
    .flops = forward_flops,
};

static sdlf_status check_infer(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    sdlf_check check = {.operation = operation};
    sdlf_shape channels = expect_channels(&check, x);
    for (int i = 1; i <= 4; i++) sdlf_expect_operand(&check, &operation->in[i], x->dtype, channels);
    sdlf_expect_operand(&check, &operation->out[0], x->dtype, x->shape);
    sdlf_expect_between(&check, "epsilon", (double)operation->batch_norm.epsilon, 0, 1e30);
    sdlf_expect_activation(&check, &operation->batch_norm.activation);
    return check.status;
}

static int64_t infer_flops(const sdlf_operation *operation)
{
    return sdlf_product(2, sdlf_tensor_count(&operation->in[0]), 1, 1);
}

const sdlf_operation_class sdlf_batch_norm2d_infer_operation = {
    .name = "batch_norm2d_infer",
    .in = {{.name = "x"}, {.name = "scale"}, {.name = "shift"}, {.name = "mean"}, {.name = "variance"}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 0,
    .epilogue = offsetof(sdlf_operation, batch_norm.activation),
    .nhwc_rule = SDLF_NHWC_ROWS,
    .storage = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .check = check_infer,
    .flops = infer_flops,
};

static sdlf_status check_backward(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    sdlf_check check = {.operation = operation};
    sdlf_shape channels = expect_channels(&check, x);
    expect_values(&check, x);
    for (int i = 1; i <= 3; i++) sdlf_expect_operand(&check, &operation->in[i], x->dtype, channels);
    const sdlf_activation *activation = &operation->batch_norm.activation;
    for (int i = 4; i <= 5; i++) sdlf_expect_operand(&check, &operation->in[i], x->dtype, x->shape);
    sdlf_expect_operand(&check, &operation->in[6], x->dtype, channels);
    sdlf_expect_operand(&check, &operation->out[0], x->dtype, x->shape);
    for (int i = 1; i <= 2; i++) sdlf_expect_operand(&check, &operation->out[i], x->dtype, channels);
    sdlf_expect_operand(&check, &operation->out[3], x->dtype, x->shape);
    sdlf_expect_activation(&check, activation);
    bool output = sdlf_tensor_present(&operation->in[5]) || sdlf_tensor_present(&operation->in[6]);
    sdlf_expect(&check, output == (activation->function != SDLF_IDENTITY),
                "operand 'y', or 'shift', belongs to an activation: both or none");
    sdlf_expect(&check, !sdlf_activation_reads_input(activation->function) || !sdlf_tensor_present(&operation->in[5]),
                "the slope of this activation is computed from 'shift', not from its output 'y'");
    return check.status;
}

static int64_t backward_flops(const sdlf_operation *operation)
{
    int64_t each = sdlf_tensor_present(&operation->out[0]) ? 9 : 5;
    return sdlf_product(each, sdlf_tensor_count(&operation->in[0]), 1, 1);
}

const sdlf_operation_class sdlf_batch_norm2d_backward_operation = {
    .name = "batch_norm2d_backward",
    .in = {{.name = "x"},
           {.name = "scale"},
           {.name = "saved_mean"},
           {.name = "saved_inverse_std"},
           {.name = "dy"},
           {.name = "y", .optional = true},
           {.name = "shift", .optional = true}},
    .out = {{.name = "dx", .optional = true},
            {.name = "dscale"},
            {.name = "dshift"},
            {.name = "dresidual", .optional = true}},
    .nhwc_rule = SDLF_NHWC_ROWS,
    .storage = 1u << 0 | 1u << 4 | 1u << 5 | 1u << SDLF_MAX_INPUTS | 1u << (SDLF_MAX_INPUTS + 3),
    .check = check_backward,
    .flops = backward_flops,
};
