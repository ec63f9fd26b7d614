/* SPDX-License-Identifier: MIT */
/* conv2d_inverted_residual, forward: a 1x1 convolution, the depthwise one behind it, and the 1x1 convolution behind
 * that. Contract: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* Nothing to expand with, and nothing that goes with it. */
static void expect_no_expansion(sdlf_check *check, const sdlf_operation *operation)
{
    if (check->status != SDLF_OK) return;
    if (sdlf_tensor_present(&operation->in[4]))
        check->status = sdlf_fail(SDLF_ERROR_ARGUMENT, "operand 'bias' is there, but not 'expand'");
    else if (operation->conv2d_inverted.expanded.function != SDLF_IDENTITY)
        check->status =
            sdlf_fail(SDLF_ERROR_ARGUMENT, "there is an activation behind operand 'expand', which is missing");
}

/* x (N,C,H,W), depthwise (M,1,R,S), project (K,M,1,1), expand (M,C,1,1), biases (M), (M), (K), residual and y
 * (N,K,P,Q). */
static sdlf_status check_inverted(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *project = &operation->in[2], *expand = &operation->in[3];
    const sdlf_window2d *window = &operation->conv2d_inverted.window;
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_expect_rank(&check, x, 4);
    sdlf_expect_rank(&check, project, 4);
    if (check.status != SDLF_OK) return check.status;
    int64_t c = x->shape.dim[1], k = project->shape.dim[0], m = project->shape.dim[1];
    if (!sdlf_tensor_present(expand)) m = c;
    sdlf_expect_operand(&check, project, t, sdlf_shape(k, m, 1, 1));
    sdlf_expect_operand(&check, expand, t, sdlf_shape(m, c, 1, 1));
    if (!sdlf_tensor_present(expand)) expect_no_expansion(&check, operation);
    if (check.status != SDLF_OK) return check.status;
    sdlf_size2d output = sdlf_expect_window(&check, window, x->shape.dim[2], x->shape.dim[3]);
    if (check.status != SDLF_OK) return check.status;
    sdlf_shape made = sdlf_shape(x->shape.dim[0], k, output.side[0], output.side[1]);
    sdlf_expect_operand(&check, &operation->in[1], t, sdlf_shape(m, 1, window->size[0], window->size[1]));
    sdlf_expect_operand(&check, &operation->in[4], t, sdlf_shape(m));
    sdlf_expect_operand(&check, &operation->in[5], t, sdlf_shape(m));
    sdlf_expect_operand(&check, &operation->in[6], t, sdlf_shape(k));
    sdlf_expect_operand(&check, &operation->in[7], t, made);
    sdlf_expect_operand(&check, &operation->out[0], t, made);
    sdlf_expect_activation(&check, &operation->conv2d_inverted.expanded);
    sdlf_expect_activation(&check, &operation->conv2d_inverted.filtered);
    sdlf_expect_activation(&check, &operation->conv2d_inverted.activation);
    return check.status;
}

static int64_t inverted_flops(const sdlf_operation *operation)
{
    const int64_t *x = operation->in[0].shape.dim, *y = operation->out[0].shape.dim;
    int64_t taps = sdlf_shape_span(operation->in[1].shape, 2, 4), m = operation->in[1].shape.dim[0];
    int64_t expanded = sdlf_tensor_present(&operation->in[3]) ? sdlf_product(x[0], m, x[2], x[3]) : 0;
    int64_t filtered = sdlf_product(y[0], m, y[2], y[3]);
    return sdlf_sum(sdlf_product(2, expanded, x[1], 1), sdlf_product(2, filtered, sdlf_sum(taps, y[1]), 1));
}

const sdlf_operation_class sdlf_conv2d_inverted_residual_forward_operation = {
    .name = "conv2d_inverted_residual_forward",
    .in = {{.name = "x"},
           {.name = "depthwise"},
           {.name = "project"},
           {.name = "expand", .optional = true},
           {.name = "bias", .optional = true},
           {.name = "depthwise_bias", .optional = true},
           {.name = "project_bias", .optional = true},
           {.name = "residual", .optional = true}},
    .out = {{.name = "y"}},
    .channels_last = 1u << 0 | 1u << 7 | 1u << SDLF_MAX_INPUTS,
    .epilogue = offsetof(sdlf_operation, conv2d_inverted.activation),
    .check = check_inverted,
    .flops = inverted_flops,
};
