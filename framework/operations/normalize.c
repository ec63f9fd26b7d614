/* SPDX-License-Identifier: MIT */
/* normalize: rows of consecutive elements. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* `channel` is an operand with one value per channel, if present. */
static void expect_normalize(sdlf_check *check, const sdlf_tensor *x, const sdlf_tensor *const *channel, int channels,
                             const sdlf_tensor *const *row)
{
    int64_t length = check->operation->normalize.length, inner = check->operation->normalize.inner, c = -1;
    int64_t count = sdlf_tensor_count(x);
    sdlf_dtype t = sdlf_expect_floating(check, x);
    sdlf_expect(check, length >= 1 && inner >= 1 && length % inner == 0 && count % length == 0,
                "rows of %lld elements, %lld of a channel, were asked of operand 'x' of shape %s", (long long)length,
                (long long)inner, sdlf_shape_print(x->shape).text);
    for (int i = 0; i < channels && check->status == SDLF_OK; i++) {
        if (!sdlf_tensor_present(channel[i])) continue;
        if (c < 0) c = sdlf_tensor_count(channel[i]);
        sdlf_expect_operand(check, channel[i], t, sdlf_shape(c));
        sdlf_expect(check, c >= 1 && count % inner == 0 && count / inner % c == 0,
                    "%lld channels of %lld elements do not divide operand 'x' of shape %s", (long long)c,
                    (long long)inner, sdlf_shape_print(x->shape).text);
    }
    for (int i = 0; i < 2 && check->status == SDLF_OK; i++)
        sdlf_expect_operand(check, row[i], t, sdlf_shape(count / length));
}

static sdlf_status check_forward(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    sdlf_check check = {.operation = operation};
    expect_normalize(&check, x, (const sdlf_tensor *const[]){&operation->in[1], &operation->in[2]}, 2,
                     (const sdlf_tensor *const[]){&operation->out[1], &operation->out[2]});
    sdlf_expect_operand(&check, &operation->out[0], x->dtype, x->shape);
    sdlf_expect_between(&check, "epsilon", (double)operation->normalize.epsilon, 0, 1e30);
    return check.status;
}

static int64_t forward_flops(const sdlf_operation *operation)
{
    return sdlf_product(6, sdlf_tensor_count(&operation->in[0]), 1, 1);
}

const sdlf_operation_class sdlf_normalize_forward_operation = {
    .name = "normalize_forward",
    .in = {{.name = "x"}, {.name = "scale", .optional = true}, {.name = "shift", .optional = true}},
    .out = {{.name = "y"}, {.name = "mean"}, {.name = "inverse_std"}},
    .storage = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .check = check_forward,
    .flops = forward_flops,
};

static sdlf_status check_backward(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    sdlf_check check = {.operation = operation};
    expect_normalize(&check, x, (const sdlf_tensor *const[]){&operation->in[1], &operation->out[1], &operation->out[2]},
                     3, (const sdlf_tensor *const[]){&operation->in[2], &operation->in[3]});
    sdlf_expect_operand(&check, &operation->in[4], x->dtype, x->shape);
    sdlf_expect_operand(&check, &operation->out[0], x->dtype, x->shape);
    return check.status;
}

static int64_t backward_flops(const sdlf_operation *operation)
{
    return sdlf_product(11, sdlf_tensor_count(&operation->in[0]), 1, 1);
}

const sdlf_operation_class sdlf_normalize_backward_operation = {
    .name = "normalize_backward",
    .in =
        {{.name = "x"}, {.name = "scale", .optional = true}, {.name = "mean"}, {.name = "inverse_std"}, {.name = "dy"}},
    .out = {{.name = "dx", .optional = true},
            {.name = "dscale", .optional = true},
            {.name = "dshift", .optional = true}},
    .storage = 1u << 0 | 1u << 4 | 1u << SDLF_MAX_INPUTS,
    .check = check_backward,
    .flops = backward_flops,
};
