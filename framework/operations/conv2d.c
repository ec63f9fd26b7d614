/* SPDX-License-Identifier: MIT */
/* conv2d: forward and its two gradients. Contracts: <sdlf/operation.h>.
 *
 * One rule relates the operands of all three: x (N,C,H,W), w (K,C/G,R,S), y (N,K,P,Q), bias (K), where R and S are the
 * window's size and P, Q its output size. */
#include <stdio.h>

#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* x and w determine the other operands; y, bias and residual may be absent. */
static sdlf_status check_conv2d(const sdlf_operation *operation, const sdlf_tensor *x, const sdlf_tensor *w,
                                const sdlf_tensor *y, const sdlf_tensor *bias, const sdlf_tensor *residual)
{
    const sdlf_window2d *window = &operation->conv2d.window;
    int groups = operation->conv2d.groups;
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_size2d output = sdlf_expect_convolution(&check, x, w, window, groups);
    int64_t n = x->shape.dim[0], c = x->shape.dim[1], k = w->shape.dim[0];
    if (check.status != SDLF_OK) return check.status;

    sdlf_expect_operand(&check, w, t, sdlf_shape(k, c / groups, window->size[0], window->size[1]));
    sdlf_shape y_shape = sdlf_shape(n, k, output.side[0], output.side[1]);
    sdlf_expect_operand(&check, y, t, y_shape);
    if (bias) sdlf_expect_operand(&check, bias, t, sdlf_shape(k));
    if (residual) sdlf_expect_operand(&check, residual, t, y_shape);
    return check.status;
}

static void print_conv2d(const sdlf_operation *operation, char *text, size_t size)
{
    const sdlf_window2d *w = &operation->conv2d.window;
    snprintf(text, size, " stride %d,%d dilation %d,%d before %d,%d after %d,%d groups %d", w->stride[0], w->stride[1],
             w->dilation[0], w->dilation[1], w->padding_before[0], w->padding_before[1], w->padding_after[0],
             w->padding_after[1], operation->conv2d.groups);
}

static int64_t conv2d_flops(const sdlf_tensor *w, const sdlf_tensor *y)
{
    return sdlf_product(2, sdlf_tensor_count(y), sdlf_shape_span(w->shape, 1, 4), 1);
}

static sdlf_status check_conv2d_forward(const sdlf_operation *operation)
{
    sdlf_status status = check_conv2d(operation, &operation->in[0], &operation->in[1], &operation->out[0],
                                      &operation->in[2], &operation->in[3]);
    sdlf_check check = {.operation = operation, .status = status};
    sdlf_expect_activation(&check, &operation->conv2d.activation);
    return check.status;
}

static int64_t conv2d_forward_flops(const sdlf_operation *operation)
{
    return conv2d_flops(&operation->in[1], &operation->out[0]);
}

const sdlf_operation_class sdlf_conv2d_forward_operation = {
    .name = "conv2d_forward",
    .in = {{.name = "x"}, {.name = "w"}, {.name = "bias", .optional = true}, {.name = "residual", .optional = true}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 3,
    .channels_last = 1u << 0 | 1u << 3 | 1u << SDLF_MAX_INPUTS,
    .stays_row_major = 1u << 0,
    .storage = 1u << 0 | 1u << 1 | 1u << 3 | 1u << SDLF_MAX_INPUTS,
    .float32_beside = 1u << 1,
    .epilogue = offsetof(sdlf_operation, conv2d.activation),
    .request = SDLF_REQUEST_CONV,
    .packed = 1u << 1,
    .unread = 1u << 1,
    .check = check_conv2d_forward,
    .flops = conv2d_forward_flops,
    .print_options = print_conv2d,
};

static sdlf_status check_conv2d_backward_input(const sdlf_operation *operation)
{
    const sdlf_tensor *dx = &operation->out[0];
    sdlf_status status = check_conv2d(operation, dx, &operation->in[1], &operation->in[0], NULL, NULL);
    sdlf_check check = {.operation = operation, .status = status};
    if (status == SDLF_OK) sdlf_expect_operand(&check, &operation->in[2], dx->dtype, dx->shape);
    return check.status;
}

static int64_t conv2d_backward_input_flops(const sdlf_operation *operation)
{
    return conv2d_flops(&operation->in[1], &operation->in[0]);
}

const sdlf_operation_class sdlf_conv2d_backward_input_operation = {
    .name = "conv2d_backward_input",
    .in = {{.name = "dy"}, {.name = "w"}, {.name = "residual", .optional = true}},
    .out = {{.name = "dx"}},
    .may_alias = 1u << 2,
    .channels_last = 1u << 0 | 1u << 2 | 1u << SDLF_MAX_INPUTS,
    .storage = 1u << 0 | 1u << 1 | 1u << 2 | 1u << SDLF_MAX_INPUTS,
    .float32_beside = 1u << 1,
    .request = SDLF_REQUEST_CONV,
    .packed = 1u << 1,
    .unread = 1u << 1,
    .check = check_conv2d_backward_input,
    .flops = conv2d_backward_input_flops,
    .print_options = print_conv2d,
};

static sdlf_status check_conv2d_backward_weights(const sdlf_operation *operation)
{
    return check_conv2d(operation, &operation->in[0], &operation->out[0], &operation->in[1], &operation->out[1], NULL);
}

static int64_t conv2d_backward_weights_flops(const sdlf_operation *operation)
{
    return conv2d_flops(&operation->out[0], &operation->in[1]);
}

const sdlf_operation_class sdlf_conv2d_backward_weights_operation = {
    .name = "conv2d_backward_weights",
    .in = {{.name = "x"}, {.name = "dy"}},
    .out = {{.name = "dw"}, {.name = "db", .optional = true}},
    .channels_last = 1u << 0 | 1u << 1,
    .storage = 1u << 0 | 1u << 1,
    .request = SDLF_REQUEST_CONV,
    .check = check_conv2d_backward_weights,
    .flops = conv2d_backward_weights_flops,
    .print_options = print_conv2d,
};
