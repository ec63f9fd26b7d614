/* SPDX-License-Identifier: MIT */
/* sgd_update, adam_update, rmsprop_update, clip_scale, check_finite, loss_scale_update. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* g, rate, scale? and every state have the type of w; g and the states have its shape. */
static sdlf_check expect_update(const sdlf_operation *operation)
{
    const sdlf_tensor *w = &operation->out[0];
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, w);
    sdlf_expect_operand(&check, &operation->in[0], t, w->shape);
    sdlf_expect_operand(&check, &operation->in[1], t, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->in[2], t, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[1], t, w->shape);
    sdlf_expect_operand(&check, &operation->out[2], t, w->shape);
    return check;
}

static int64_t flops(const sdlf_operation *operation, int64_t each)
{
    if (sdlf_tensor_present(&operation->in[2])) each++;
    return sdlf_product(each, sdlf_tensor_count(&operation->out[0]), 1, 1);
}

static sdlf_status check_sgd(const sdlf_operation *operation)
{
    sdlf_check check = expect_update(operation);
    sdlf_expect_sgd(&check, &operation->sgd, &operation->out[1]);
    return check.status;
}

static int64_t sgd_flops(const sdlf_operation *operation)
{
    return flops(operation, sdlf_tensor_present(&operation->out[1]) ? 4 : 2);
}

const sdlf_operation_class sdlf_sgd_update_operation = {
    .name = "sgd_update",
    .in = {{.name = "g"}, {.name = "rate"}, {.name = "scale", .optional = true}},
    .out = {{.name = "w", .updated = true}, {.name = "v", .optional = true, .updated = true}},
    .updates = true,
    .check = check_sgd,
    .flops = sgd_flops,
};

static sdlf_status check_adam(const sdlf_operation *operation)
{
    sdlf_check check = expect_update(operation);
    sdlf_expect_operand(&check, &operation->in[3], SDLF_INT64, sdlf_shape(1));
    sdlf_expect_below(&check, "beta1", operation->adam.beta1, 0, 1);
    sdlf_expect_below(&check, "beta2", operation->adam.beta2, 0, 1);
    sdlf_expect_between(&check, "epsilon", operation->adam.epsilon, 0, 1e30);
    sdlf_expect_between(&check, "decay", operation->adam.decay, 0, 1e30);
    return check.status;
}

static int64_t adam_flops(const sdlf_operation *operation)
{
    return flops(operation, 12);
}

const sdlf_operation_class sdlf_adam_update_operation = {
    .name = "adam_update",
    .in = {{.name = "g"}, {.name = "rate"}, {.name = "scale", .optional = true}, {.name = "step"}},
    .out = {{.name = "w", .updated = true}, {.name = "m", .updated = true}, {.name = "v", .updated = true}},
    .updates = true,
    .check = check_adam,
    .flops = adam_flops,
};

static sdlf_status check_rmsprop(const sdlf_operation *operation)
{
    sdlf_check check = expect_update(operation);
    sdlf_expect_below(&check, "rho", operation->rmsprop.rho, 0, 1);
    sdlf_expect_between(&check, "epsilon", operation->rmsprop.epsilon, 0, 1e30);
    sdlf_expect_below(&check, "momentum", operation->rmsprop.momentum, 0, 1);
    sdlf_expect_between(&check, "decay", operation->rmsprop.decay, 0, 1e30);
    sdlf_expect(&check, operation->rmsprop.momentum == 0 || sdlf_tensor_present(&operation->out[2]),
                "momentum needs operand 'b'");
    return check.status;
}

static int64_t rmsprop_flops(const sdlf_operation *operation)
{
    return flops(operation, sdlf_tensor_present(&operation->out[2]) ? 10 : 8);
}

const sdlf_operation_class sdlf_rmsprop_update_operation = {
    .name = "rmsprop_update",
    .in = {{.name = "g"}, {.name = "rate"}, {.name = "scale", .optional = true}},
    .out = {{.name = "w", .updated = true},
            {.name = "v", .updated = true},
            {.name = "b", .optional = true, .updated = true}},
    .updates = true,
    .check = check_rmsprop,
    .flops = rmsprop_flops,
};

static sdlf_status check_clip_scale(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, &operation->in[0]);
    sdlf_expect_operand(&check, &operation->in[1], t, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[0], t, sdlf_shape(1));
    sdlf_expect(&check, operation->clip.max_norm > 0, "max_norm is %g, expected more than 0",
                (double)operation->clip.max_norm);
    return check.status;
}

static int64_t clip_scale_flops(const sdlf_operation *operation)
{
    return sdlf_tensor_count(&operation->in[0]);
}

const sdlf_operation_class sdlf_clip_scale_operation = {
    .name = "clip_scale",
    .in = {{.name = "squares"}, {.name = "factor", .optional = true}},
    .out = {{.name = "scale"}},
    .check = check_clip_scale,
    .flops = clip_scale_flops,
};

static sdlf_status check_check_finite(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, &operation->in[0]);
    sdlf_expect_operand(&check, &operation->out[0], t, sdlf_shape(1));
    return check.status;
}

static int64_t check_finite_flops(const sdlf_operation *operation)
{
    return sdlf_tensor_count(&operation->in[0]);
}

const sdlf_operation_class sdlf_check_finite_operation = {
    .name = "check_finite",
    .in = {{.name = "x"}},
    .out = {{.name = "found", .updated = true}},
    .check = check_check_finite,
    .flops = check_finite_flops,
};

static sdlf_status check_loss_scale(const sdlf_operation *operation)
{
    const sdlf_loss_scale_rule *rule = &operation->loss_scale;
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, &operation->out[0]);
    sdlf_expect_operand(&check, &operation->out[0], t, sdlf_shape(3));
    sdlf_expect_operand(&check, &operation->in[0], t, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->in[1], SDLF_INT64, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[1], t, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[2], SDLF_INT64, sdlf_shape(1));
    sdlf_expect_between(&check, "growth", (double)rule->growth, 1, 1e30);
    sdlf_expect_between(&check, "backoff", (double)rule->backoff, 1e-30, 1);
    sdlf_expect(&check, rule->interval >= 0, "interval is %d, expected 0 or more", rule->interval);
    return check.status;
}

static int64_t loss_scale_flops(const sdlf_operation *operation)
{
    (void)operation;
    return 5;
}

const sdlf_operation_class sdlf_loss_scale_update_operation = {
    .name = "loss_scale_update",
    .in = {{.name = "found"}, {.name = "step"}},
    .out = {{.name = "state", .updated = true}, {.name = "factor"}, {.name = "done"}},
    .check = check_loss_scale,
    .flops = loss_scale_flops,
};
