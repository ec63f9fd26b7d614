/* SPDX-License-Identifier: MIT */
/* max_pool2d, avg_pool2d, global_avg_pool2d, forward and backward. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* x (or dx) determines y (or dy), with the window. */
static sdlf_size2d expect_pool2d(sdlf_check *check, const sdlf_tensor *x, const sdlf_tensor *y)
{
    const sdlf_window2d *window = &check->operation->pool2d.window;
    sdlf_dtype t = sdlf_expect_floating(check, x);
    sdlf_expect_rank(check, x, 4);
    const int64_t *dim = x->shape.dim;
    sdlf_size2d output = sdlf_expect_window(check, window, dim[2], dim[3]);
    sdlf_expect_operand(check, y, t, sdlf_shape(dim[0], dim[1], output.side[0], output.side[1]));
    return output;
}

static int64_t pool2d_flops(const sdlf_operation *operation, const sdlf_tensor *y)
{
    const int *size = operation->pool2d.window.size;
    return sdlf_product(sdlf_tensor_count(y), size[0], size[1], 1);
}

static int64_t flops_of_output(const sdlf_operation *operation)
{
    return pool2d_flops(operation, &operation->out[0]);
}

static int64_t flops_of_gradient(const sdlf_operation *operation)
{
    return pool2d_flops(operation, &operation->in[0]);
}

/* A mask byte has one bit per position of its window, and windows must not overlap. */
enum { MAX_POSITIONS = 8 };

static void expect_mask(sdlf_check *check, const sdlf_tensor *mask, const sdlf_tensor *y)
{
    const sdlf_window2d *window = &check->operation->pool2d.window;
    sdlf_expect_operand(check, mask, SDLF_UINT8, y->shape);
    if (check->status != SDLF_OK || !sdlf_tensor_present(mask)) return;
    for (int i = 0; i < 2; i++) {
        sdlf_expect(check, window->size[i] >= 1 && window->size[i] <= MAX_POSITIONS,
                    "the pool window is %dx%d, expected 1 to %d positions", window->size[0], window->size[1],
                    MAX_POSITIONS);
        sdlf_expect(check, window->stride[i] == window->size[i],
                    "the pool's stride is %dx%d, expected its window's size %dx%d", window->stride[0],
                    window->stride[1], window->size[0], window->size[1]);
        sdlf_expect(check, window->dilation[i] == 1, "the pool's dilation is %dx%d, expected 1x1", window->dilation[0],
                    window->dilation[1]);
        sdlf_expect(check, window->padding_before[i] == 0 && window->padding_after[i] == 0,
                    "the pool has padding, expected none");
    }
    if (check->status != SDLF_OK) return;
    sdlf_expect(check, window->size[0] * window->size[1] <= MAX_POSITIONS,
                "the pool window is %dx%d, expected at most %d positions", window->size[0], window->size[1],
                MAX_POSITIONS);
    if (check->status == SDLF_OK && sdlf_operation_is_channels_last(check->operation))
        check->status = sdlf_fail(
            SDLF_ERROR_SHAPE, "operand 'mask' is given, but others are channels last: only row-major ones have masks");
}

static void expect_max_pool2d(sdlf_check *check, const sdlf_tensor *x, const sdlf_tensor *y)
{
    expect_pool2d(check, x, y);
    sdlf_expect_no_empty_window(check, &check->operation->pool2d.window, x->shape.dim[2], x->shape.dim[3]);
    sdlf_expect(check, (unsigned)check->operation->pool2d.ties <= SDLF_TIES_FIRST, "%d is not a valid rule for ties",
                (int)check->operation->pool2d.ties);
}

static sdlf_status check_max_pool2d_forward(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    const sdlf_activation_function function = operation->pool2d.activation.function;
    expect_mask(&check, &operation->out[1], &operation->out[0]);
    expect_max_pool2d(&check, &operation->in[0], &operation->out[0]);
    sdlf_expect(&check, function == SDLF_IDENTITY || function == SDLF_RELU,
                "activation %d, expected the identity or ReLU", (int)function);
    return check.status;
}

const sdlf_operation_class sdlf_max_pool2d_forward_operation = {
    .name = "max_pool2d_forward",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}, {.name = "mask", .optional = true}},
    .channels_last = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .storage = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .check = check_max_pool2d_forward,
    .flops = flops_of_output,
};

static sdlf_status check_max_pool2d_backward(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->in[1], *dy = &operation->in[2], *dx = &operation->out[0];
    const bool has_mask = sdlf_tensor_present(&operation->in[3]);
    sdlf_check check = {.operation = operation};
    if (sdlf_tensor_present(x) == has_mask || sdlf_tensor_present(y) == has_mask)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected operand 'mask', or operands 'x' and 'y'");
    expect_mask(&check, &operation->in[3], dy);
    expect_max_pool2d(&check, dx, dy);
    sdlf_expect_operand(&check, x, dx->dtype, dx->shape);
    sdlf_expect_operand(&check, y, dx->dtype, dy->shape);
    return check.status;
}

static int64_t max_pool2d_backward_flops(const sdlf_operation *operation)
{
    return pool2d_flops(operation, &operation->in[2]);
}

const sdlf_operation_class sdlf_max_pool2d_backward_operation = {
    .name = "max_pool2d_backward",
    .in = {{.name = "x", .optional = true},
           {.name = "y", .optional = true},
           {.name = "dy"},
           {.name = "mask", .optional = true}},
    .out = {{.name = "dx"}},
    .channels_last = 1u << 0 | 1u << 1 | 1u << 2 | 1u << SDLF_MAX_INPUTS,
    .storage = 1u << 0 | 1u << 1 | 1u << 2 | 1u << SDLF_MAX_INPUTS,
    .check = check_max_pool2d_backward,
    .flops = max_pool2d_backward_flops,
};

/* Without count_padding the mean is over the positions inside the input; there must be at least one. */
static void expect_avg_pool2d(sdlf_check *check, const sdlf_tensor *x, const sdlf_tensor *y)
{
    expect_pool2d(check, x, y);
    if (check->operation->pool2d.count_padding) return;
    sdlf_expect_no_empty_window(check, &check->operation->pool2d.window, x->shape.dim[2], x->shape.dim[3]);
}

static sdlf_status check_avg_pool2d_forward(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    expect_avg_pool2d(&check, &operation->in[0], &operation->out[0]);
    return check.status;
}

const sdlf_operation_class sdlf_avg_pool2d_forward_operation = {
    .name = "avg_pool2d_forward",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .channels_last = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .storage = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .check = check_avg_pool2d_forward,
    .flops = flops_of_output,
};

static sdlf_status check_avg_pool2d_backward(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    expect_avg_pool2d(&check, &operation->out[0], &operation->in[0]);
    return check.status;
}

const sdlf_operation_class sdlf_avg_pool2d_backward_operation = {
    .name = "avg_pool2d_backward",
    .in = {{.name = "dy"}},
    .out = {{.name = "dx"}},
    .channels_last = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .storage = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .check = check_avg_pool2d_backward,
    .flops = flops_of_gradient,
};

static sdlf_status check_global(const sdlf_operation *operation, const sdlf_tensor *x, const sdlf_tensor *y)
{
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_expect_rank(&check, x, 4);
    const int64_t *dim = x->shape.dim;
    sdlf_expect(&check, dim[2] > 0 && dim[3] > 0, "the input has shape %s: its channels hold nothing to average",
                sdlf_shape_print(x->shape).text);
    sdlf_expect_operand(&check, y, t, sdlf_shape(dim[0], dim[1], 1, 1));
    return check.status;
}

static sdlf_status check_global_forward(const sdlf_operation *operation)
{
    return check_global(operation, &operation->in[0], &operation->out[0]);
}

static int64_t global_forward_flops(const sdlf_operation *operation)
{
    return sdlf_tensor_count(&operation->in[0]);
}

const sdlf_operation_class sdlf_global_avg_pool2d_forward_operation = {
    .name = "global_avg_pool2d_forward",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .channels_last = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .storage = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .check = check_global_forward,
    .flops = global_forward_flops,
};

static sdlf_status check_global_backward(const sdlf_operation *operation)
{
    return check_global(operation, &operation->out[0], &operation->in[0]);
}

const sdlf_operation_class sdlf_global_avg_pool2d_backward_operation = {
    .name = "global_avg_pool2d_backward",
    .in = {{.name = "dy"}},
    .out = {{.name = "dx"}},
    .channels_last = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .storage = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .check = check_global_backward,
};
