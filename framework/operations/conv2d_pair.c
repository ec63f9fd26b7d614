/* SPDX-License-Identifier: MIT */
/* conv2d_pointwise_depthwise, forward: a 1x1 convolution and the depthwise one behind it. Contract:
 * <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* x (N,C,H,W), w (K,C,1,1), depthwise (K,1,R,S), biases (K), y (N,K,P,Q). */
static sdlf_status check_pair(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *w = &operation->in[1];
    const sdlf_window2d *window = &operation->conv2d_pair.window;
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_expect_rank(&check, x, 4);
    sdlf_expect_rank(&check, w, 4);
    if (check.status != SDLF_OK) return check.status;
    int64_t k = w->shape.dim[0];
    sdlf_expect_operand(&check, w, t, sdlf_shape(k, x->shape.dim[1], 1, 1));
    sdlf_size2d output = sdlf_expect_window(&check, window, x->shape.dim[2], x->shape.dim[3]);
    if (check.status != SDLF_OK) return check.status;
    sdlf_expect_operand(&check, &operation->in[2], t, sdlf_shape(k, 1, window->size[0], window->size[1]));
    sdlf_expect_operand(&check, &operation->in[3], t, sdlf_shape(k));
    sdlf_expect_operand(&check, &operation->in[4], t, sdlf_shape(k));
    sdlf_expect_operand(&check, &operation->out[0], t, sdlf_shape(x->shape.dim[0], k, output.side[0], output.side[1]));
    sdlf_expect_activation(&check, &operation->conv2d_pair.between);
    sdlf_expect_activation(&check, &operation->conv2d_pair.activation);
    return check.status;
}

static int64_t pair_flops(const sdlf_operation *operation)
{
    const int64_t *x = operation->in[0].shape.dim;
    int64_t taps = sdlf_shape_span(operation->in[2].shape, 2, 4);
    int64_t between = sdlf_product(x[0], operation->in[1].shape.dim[0], x[2], x[3]);
    return sdlf_sum(sdlf_product(2, between, x[1], 1), sdlf_product(2, sdlf_tensor_count(&operation->out[0]), taps, 1));
}

const sdlf_operation_class sdlf_conv2d_pointwise_depthwise_forward_operation = {
    .name = "conv2d_pointwise_depthwise_forward",
    .in = {{.name = "x"},
           {.name = "w"},
           {.name = "depthwise"},
           {.name = "bias", .optional = true},
           {.name = "depthwise_bias", .optional = true}},
    .out = {{.name = "y"}},
    .epilogue = offsetof(sdlf_operation, conv2d_pair.activation),
    .check = check_pair,
    .flops = pair_flops,
};
