/* SPDX-License-Identifier: MIT */
/* random_uniform, random_normal. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static sdlf_status check_random(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    const sdlf_tensor *y = &operation->out[0];
    sdlf_expect(&check, sdlf_dtype_is_float(y->dtype), "operand 'y' is %s, expected a floating type",
                sdlf_dtype_name(y->dtype));
    bool uniform = operation->kind == SDLF_RANDOM_UNIFORM;
    sdlf_expect_between(&check, uniform ? "low" : "mean", (double)operation->random.a, -1e30, 1e30);
    sdlf_expect_between(&check, uniform ? "high" : "deviation", (double)operation->random.b, uniform ? -1e30 : 0, 1e30);
    return check.status;
}

const sdlf_operation_class sdlf_random_uniform_operation = {
    .name = "random_uniform",
    .out = {{.name = "y"}},
    .check = check_random,
};

const sdlf_operation_class sdlf_random_normal_operation = {
    .name = "random_normal",
    .out = {{.name = "y"}},
    .check = check_random,
};
