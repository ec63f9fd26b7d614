/* SPDX-License-Identifier: MIT */
/* The checks of convolutions, including fused ones: options out of range, mismatched shapes, and valid combinations of
 * channels-last operands. */
#include "operation_examples.h"
#include "testing.h"

#include "framework/operand.h"

#define REFUSES(operation, status, text) CHECK_FAILS(sdlf_operation_check(&(operation)), status, text)

static void convolutions(void)
{
    static const sdlf_operation_kind kinds[] = {SDLF_CONV2D_FORWARD, SDLF_CONV2D_BACKWARD_INPUT,
                                                SDLF_CONV2D_BACKWARD_WEIGHTS};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        sdlf_operation good = example(kinds[i]), bad = good;
        bad.conv2d.groups = 0;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "groups is 0");
        bad.conv2d.groups = 3;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "groups is 3");
        bad.conv2d.groups = 1;
        REFUSES(bad, SDLF_ERROR_SHAPE, "8x4x3x3");
        bad = good, bad.conv2d.window.stride[1] = 0;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "horizontal stride is 0");
        bad = good, bad.conv2d.window.dilation[0] = -1;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "vertical dilation is -1");
        bad = good, bad.conv2d.window.size[0] = 0;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "vertical size is 0");
        bad = good, bad.conv2d.window.padding_after[1] = -1;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "horizontal padding is 1 and -1");
        bad = good, bad.conv2d.window.size[0] = 9;
        REFUSES(bad, SDLF_ERROR_SHAPE, "9x3 (dilation 1x1) is larger than its input 6x6 (plus padding 1,1,1,1)");
        bad = good, bad.conv2d.window.dilation[1] = 4;
        REFUSES(bad, SDLF_ERROR_SHAPE, "larger than its input");
        bad = good, bad.conv2d.window.stride[0] = 2;
        REFUSES(bad, SDLF_ERROR_SHAPE, "expected 2x8x");
    }
    sdlf_operation bad = example(SDLF_CONV2D_FORWARD);
    bad.conv2d.activation.function = SDLF_ACTIVATION_FUNCTION_COUNT;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "not a valid activation function");
}

static void fused_pools(void)
{
    for (int index = CONV2D_POOL_FORWARD; index <= CONV2D_POOL_BACKWARD_SGD; index++) {
        sdlf_operation good = example_at(index), bad = good;
        conv2d_pool_options *options = conv2d_pool_options_in(&bad);
        options->pool.size[0] = options->pool.stride[0] = options->pool.size[1] = options->pool.stride[1] = 3;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "3x3, expected at most 8 positions");
        bad = good, options->pool.stride[0] = 1;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "stride is 1x2, expected its window's size 2x2");
        bad = good, options->pool.dilation[0] = 2;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "dilation is 2x1");
        bad = good, options->pool.padding_before[0] = 1;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "padding");
        bad = good, options->ties = (sdlf_ties)2;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "ties");
        bad = good, options->groups = 0;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "groups is 0");
        bad = good, options->groups = 1;
        REFUSES(bad, SDLF_ERROR_SHAPE, "8x4x3x3");
        bad = good, options->window.stride[1] = 0;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "horizontal stride is 0");
        bad = good, options->window.size[0] = 9;
        REFUSES(bad, SDLF_ERROR_SHAPE, "9x3 (dilation 1x1) is larger than its input 6x6 (plus padding 1,1,1,1)");
        bad = good, options->window.stride[0] = 2;
        REFUSES(bad, SDLF_ERROR_SHAPE, "expected 2x8x1x3");
    }
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    sdlf_operation bad = example_at(CONV2D_POOL_BACKWARD);
    bad.out[0] = none;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "expected operand 'x' with 'dw'");
    bad.in[0] = none;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "operand 'db' is given without 'dw'");
    bad.out[1] = none;
    CHECK_OK(sdlf_operation_check(&bad));
    bad.in[1] = none;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "and 'w' with 'dx'");
    bad.out[2] = none;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "expected operand 'dw' or operand 'dx'");
}

/* A block of MobileNetV2. */
static void inverted_residuals(void)
{
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    sdlf_operation good = inverted_residual(), bad = good;
    inverted_residual_options *options = inverted_residual_options_in(&bad);
    bad.in[2] = t(sdlf_shape(C, K, 3, 1));
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'project' has shape 4x8x3x1, expected 4x8x1x1");
    bad = good, bad.in[3] = t(sdlf_shape(K, K, 1, 1));
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'expand' has shape 8x8x1x1, expected 8x4x1x1");
    bad = good, bad.in[1] = t(sdlf_shape(C, 1, 3, 3));
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'depthwise' has shape 4x1x3x3, expected 8x1x3x3");
    bad = good, options->window.stride[1] = 2;
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'residual' has shape 2x4x6x6, expected 2x4x6x3");
    bad.in[7] = none;
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'y' has shape 2x4x6x6, expected 2x4x6x3");
    sdlf_activation *const activations[] = {&options->expanded, &options->filtered, &options->activation};
    for (int i = 0; i < 3; i++) {
        bad = good, activations[i]->function = SDLF_ACTIVATION_FUNCTION_COUNT;
        REFUSES(bad, SDLF_ERROR_ARGUMENT, "not a valid activation function");
    }
    CHECK_EQUAL(sdlf_operation_cost(&good).flops, 2LL * N * K * H * W * (C + 9 + C));

    /* without an expansion: M is C, and the operands of the expansion are absent */
    sdlf_operation separable = good;
    separable.in[1] = t(sdlf_shape(C, 1, 3, 3)), separable.in[2] = t(sdlf_shape(C, C, 1, 1));
    separable.in[3] = separable.in[4] = none, separable.in[5] = t(sdlf_shape(C));
    inverted_residual_options_in(&separable)->expanded.function = SDLF_IDENTITY;
    CHECK_OK(sdlf_operation_check(&separable));
    CHECK_EQUAL(sdlf_operation_cost(&separable).flops, 2LL * N * C * H * W * (9 + C));
    bad = separable, bad.in[4] = t(sdlf_shape(C));
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "operand 'bias' is given without 'expand'");
    bad = separable, options->expanded.function = SDLF_RELU;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "an activation is given for operand 'expand', which is missing");
    bad = separable, bad.in[2] = t(sdlf_shape(C, K, 1, 1));
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'project' has shape 4x8x1x1, expected 4x4x1x1");
}

/* ---- layouts ---- */

/* Check that operands are only channels last together; one may be row-major if `row_major` has its bit. */
static void expect_layouts(sdlf_operation operation, unsigned channels_last, unsigned row_major)
{
    const sdlf_operation last = sdlf_operation_channels_last(&operation);
    CHECK_OK(sdlf_operation_check(&last));
    CHECK(sdlf_operation_is_channels_last(&last) && !sdlf_operation_is_mixed(&last));
    CHECK(!sdlf_operation_is_channels_last(&operation) && !sdlf_operation_is_mixed(&operation));
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        sdlf_operation mixed = last;
        if (!sdlf_tensor_present(sdlf_operand_at(&mixed, i))) continue;
        CHECK_EQUAL(!sdlf_tensor_is_contiguous(sdlf_operand_at(&mixed, i)), channels_last >> i & 1);
        if (!(channels_last >> i & 1)) continue;
        *sdlf_operand_at(&mixed, i) = *sdlf_operand_at(&operation, i);
        CHECK(sdlf_operation_is_mixed(&mixed));
        if (row_major >> i & 1)
            CHECK_OK(sdlf_operation_check(&mixed));
        else
            REFUSES(mixed, SDLF_ERROR_SHAPE, "gaps or another order than channels last");
    }
}

static void layouts(void)
{
    const unsigned x = 1u << 0, y = 1u << SDLF_MAX_INPUTS;
    expect_layouts(example(SDLF_CONV2D_FORWARD), x | y | 1u << 3, x);
    expect_layouts(inverted_residual(), x | y | 1u << 7, 0);
    sdlf_operation pooled = example_at(CONV2D_POOL_FORWARD);
    sdlf_operation last = sdlf_operation_channels_last(&pooled);
    REFUSES(last, SDLF_ERROR_SHAPE, "operand 'mask' is given, but others are channels last");
    pooled.out[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    expect_layouts(pooled, x | y, y);
}

int main(void)
{
    RUN(convolutions);
    RUN(fused_pools);
    RUN(inverted_residuals);
    RUN(layouts);
    return test_summary();
}
