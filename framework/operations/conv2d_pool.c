/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool, forward, backward, and backward with its update: convolution, ReLU and max-pool in one.
 * Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* A byte of the mask has a bit for each position of the window. */
enum { MAX_POSITIONS = 8 };

static void expect_pool(sdlf_check *check, const sdlf_window2d *pool)
{
    for (int i = 0; i < 2; i++) {
        sdlf_expect(check, pool->size[i] >= 1 && pool->size[i] <= MAX_POSITIONS,
                    "the pool window is %dx%d, expected 1 to %d positions", pool->size[0], pool->size[1],
                    MAX_POSITIONS);
        sdlf_expect(check, pool->stride[i] == pool->size[i],
                    "the pool's stride is %dx%d, expected its window's size %dx%d", pool->stride[0], pool->stride[1],
                    pool->size[0], pool->size[1]);
        sdlf_expect(check, pool->dilation[i] == 1, "the pool's dilation is %dx%d, expected 1x1", pool->dilation[0],
                    pool->dilation[1]);
        sdlf_expect(check, pool->padding_before[i] == 0 && pool->padding_after[i] == 0,
                    "the pool has padding, expected none");
    }
    if (check->status != SDLF_OK) return;
    sdlf_expect(check, pool->size[0] * pool->size[1] <= MAX_POSITIONS,
                "the pool window is %dx%d, expected at most %d positions", pool->size[0], pool->size[1], MAX_POSITIONS);
}

/* x (N,C,H,W), w (K,C/G,R,S), bias (K), y and mask (N,K,P,Q). */
static sdlf_status check_conv2d_pool(const sdlf_operation *operation, const sdlf_tensor *w, const sdlf_tensor *y,
                                     const sdlf_tensor *mask)
{
    const sdlf_tensor *x = &operation->in[0];
    const sdlf_window2d *window = &operation->conv2d_pool.window, *pool = &operation->conv2d_pool.pool;
    int groups = operation->conv2d_pool.groups;
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_size2d convolved = sdlf_expect_convolution(&check, x, w, window, groups);
    int64_t n = x->shape.dim[0], c = x->shape.dim[1], k = w->shape.dim[0];
    expect_pool(&check, pool);
    sdlf_expect(&check, (unsigned)operation->conv2d_pool.ties <= SDLF_TIES_FIRST, "%d is not a valid rule for ties",
                (int)operation->conv2d_pool.ties);
    if (check.status != SDLF_OK) return check.status;

    sdlf_size2d pooled = sdlf_expect_window(&check, pool, convolved.side[0], convolved.side[1]);
    sdlf_shape y_shape = sdlf_shape(n, k, pooled.side[0], pooled.side[1]);
    sdlf_expect_operand(&check, w, t, sdlf_shape(k, c / groups, window->size[0], window->size[1]));
    sdlf_expect_operand(&check, y, t, y_shape);
    sdlf_expect_operand(&check, mask, SDLF_UINT8, y_shape);
    return check.status;
}

static sdlf_status check_forward(const sdlf_operation *operation)
{
    sdlf_status status = check_conv2d_pool(operation, &operation->in[1], &operation->out[0], &operation->out[1]);
    sdlf_check check = {.operation = operation, .status = status};
    sdlf_expect_operand(&check, &operation->in[2], operation->in[0].dtype, sdlf_shape(operation->in[1].shape.dim[0]));
    if (check.status == SDLF_OK && sdlf_tensor_present(&operation->out[1]) &&
        sdlf_operation_is_channels_last(operation))
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "operand 'mask' is there, and others lie channels last: only row-major ones have masks");
    return check.status;
}

/* Every position of every window is convolved, and compared. */
static int64_t forward_flops(const sdlf_operation *operation)
{
    const int *pool = operation->conv2d_pool.pool.size;
    int64_t positions = sdlf_product(sdlf_tensor_count(&operation->out[0]), pool[0], pool[1], 1);
    return sdlf_sum(sdlf_product(2, positions, sdlf_shape_span(operation->in[1].shape, 1, 4), 1), positions);
}

const sdlf_operation_class sdlf_conv2d_relu_max_pool_forward_operation = {
    .name = "conv2d_relu_max_pool_forward",
    .in = {{.name = "x"}, {.name = "w"}, {.name = "bias", .optional = true}},
    .out = {{.name = "y"}, {.name = "mask", .optional = true}},
    .channels_last = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .stays_row_major = 1u << SDLF_MAX_INPUTS,
    .check = check_forward,
    .flops = forward_flops,
};

static sdlf_status check_backward(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *w = &operation->in[1];
    sdlf_status status = check_conv2d_pool(operation, w, &operation->in[2], &operation->in[3]);
    sdlf_check check = {.operation = operation, .status = status};
    sdlf_expect_operand(&check, &operation->out[0], x->dtype, w->shape);
    sdlf_expect_operand(&check, &operation->out[1], x->dtype, sdlf_shape(w->shape.dim[0]));
    sdlf_expect_operand(&check, &operation->out[2], x->dtype, x->shape);
    return check.status;
}

/* Only the marked positions carry a gradient: about one a window, for each of dw and dx that is wanted. */
static int64_t backward_flops(const sdlf_operation *operation)
{
    int64_t wanted = sdlf_tensor_present(&operation->out[0]) + sdlf_tensor_present(&operation->out[2]);
    return sdlf_product(2 * wanted, sdlf_tensor_count(&operation->in[2]), sdlf_shape_span(operation->in[1].shape, 1, 4),
                        1);
}

const sdlf_operation_class sdlf_conv2d_relu_max_pool_backward_operation = {
    .name = "conv2d_relu_max_pool_backward",
    .in = {{.name = "x"}, {.name = "w"}, {.name = "dy"}, {.name = "mask"}},
    .out = {{.name = "dw", .optional = true}, {.name = "db", .optional = true}, {.name = "dx", .optional = true}},
    .check = check_backward,
    .flops = backward_flops,
};

static sdlf_status check_backward_sgd(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *w = &operation->out[0];
    sdlf_status status = check_conv2d_pool(operation, w, &operation->in[1], &operation->in[2]);
    sdlf_check check = {.operation = operation, .status = status};
    sdlf_expect_operand(&check, &operation->in[3], x->dtype, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[1], x->dtype, w->shape);
    sdlf_expect_operand(&check, &operation->out[2], x->dtype, sdlf_shape(w->shape.dim[0]));
    sdlf_expect_operand(&check, &operation->out[3], x->dtype, sdlf_shape(w->shape.dim[0]));
    sdlf_expect_operand(&check, &operation->out[4], x->dtype, x->shape);
    sdlf_expect_sgd(&check, &operation->conv2d_pool.sgd, &operation->out[1]);
    sdlf_expect_bias_velocity(&check, &operation->out[1], &operation->out[2], &operation->out[3]);
    return check.status;
}

/* The backward pass for dw and the dx that is wanted, and the updates. */
static int64_t backward_sgd_flops(const sdlf_operation *operation)
{
    int64_t wanted = 1 + sdlf_tensor_present(&operation->out[4]);
    int64_t update = sdlf_tensor_present(&operation->out[1]) ? 4 : 2;
    int64_t updated = sdlf_sum(sdlf_tensor_count(&operation->out[0]), sdlf_tensor_count(&operation->out[2]));
    int64_t products = sdlf_product(2 * wanted, sdlf_tensor_count(&operation->in[1]),
                                    sdlf_shape_span(operation->out[0].shape, 1, 4), 1);
    return sdlf_sum(products, sdlf_product(update, updated, 1, 1));
}

const sdlf_operation_class sdlf_conv2d_relu_max_pool_backward_sgd_operation = {
    .name = "conv2d_relu_max_pool_backward_sgd",
    .in = {{.name = "x"}, {.name = "dy"}, {.name = "mask"}, {.name = "rate"}},
    .out = {{.name = "w", .updated = true},
            {.name = "v", .optional = true, .updated = true},
            {.name = "b", .optional = true, .updated = true},
            {.name = "bv", .optional = true, .updated = true},
            {.name = "dx", .optional = true}},
    .check = check_backward_sgd,
    .flops = backward_sgd_flops,
};
