/* SPDX-License-Identifier: MIT */
/* The checks of the operation classes, kind by kind: options out of range and mismatched shapes.
 * (Convolutions: test_operation_convolutions.c.) */
#include "operation_examples.h"
#include "testing.h"

#include <math.h>

#define REFUSES(operation, status, text) CHECK_FAILS(sdlf_operation_check(&(operation)), status, text)

static void pools(void)
{
    sdlf_operation good = example(SDLF_MAX_POOL2D_FORWARD), bad = good;
    bad.pool2d.window.stride[0] = 1, bad.out[0] = t(sdlf_shape(N, C, 5, 3));
    bad.out[1] = of(SDLF_UINT8, bad.out[0].shape);
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "the pool's stride is 1x2, expected its window's size 2x2");
    bad = sdlf_operation_channels_last(&good);
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'mask' is given, but others are channels last");
    good.out[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    bad = good, bad.pool2d.activation.function = SDLF_TANH;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "expected the identity or ReLU");
    bad = example(SDLF_MAX_POOL2D_BACKWARD), bad.in[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "expected operand 'mask', or operands 'x' and 'y'");
    bad = good, bad.pool2d.ties = (sdlf_ties)-1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "ties");
    bad = good, bad.pool2d.window.size[0] = 7;
    REFUSES(bad, SDLF_ERROR_SHAPE, "the window 7x2 (dilation 1x1) is larger than its input 6x6");
    bad = good, bad.pool2d.window.padding_before[0] = 2, bad.out[0] = t(sdlf_shape(N, C, 4, 3));
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "nothing but padding");
    bad = good, bad.pool2d.window.padding_after[1] = 2, bad.out[0] = t(sdlf_shape(N, C, 3, 4));
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "nothing but padding");

    /* Positions -1 and 2 around an input of two: both in the padding. */
    sdlf_window2d wide = {{2, 1}, {1, 1}, {3, 1}, {1, 0}, {1, 0}};
    sdlf_operation gap = {.kind = SDLF_MAX_POOL2D_FORWARD, .pool2d.window = wide};
    gap.in[0] = t(sdlf_shape(1, 1, 2, 1)), gap.out[0] = t(sdlf_shape(1, 1, 1, 1));
    REFUSES(gap, SDLF_ERROR_ARGUMENT, "nothing but padding");
    gap.kind = SDLF_AVG_POOL2D_FORWARD;
    REFUSES(gap, SDLF_ERROR_ARGUMENT, "nothing but padding");
    gap.pool2d.count_padding = true;
    CHECK_OK(sdlf_operation_check(&gap));
    gap.kind = SDLF_MAX_POOL2D_FORWARD; /* an input of three reaches position 2 */
    gap.in[0] = t(sdlf_shape(1, 1, 3, 1)), gap.out[0] = t(sdlf_shape(1, 1, 2, 1));
    CHECK_OK(sdlf_operation_check(&gap));

    bad = example(SDLF_GLOBAL_AVG_POOL2D_FORWARD);
    bad.in[0] = t(sdlf_shape(N, C, 0, W));
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "nothing to average");
}

static void quantised_numbers(void)
{
    sdlf_operation good = example(SDLF_QUANTIZE), bad = good;
    bad.quantize.zero = 256;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "zero is 256, expected 0 to 255");
    bad.out[0].dtype = SDLF_INT8;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "zero is 256, expected -128 to 127");
    bad = good, bad.quantize.low = 0.5f;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "expected whole numbers");
    bad = good, bad.quantize.low = 9, bad.quantize.high = 8;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "high is 8, expected 9 to 255");
    bad = good, bad.quantize.scale = NAN;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "scale is nan");
    bad = example(SDLF_DEQUANTIZE), bad.quantize.scale = INFINITY;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "scale is inf");

    good = example(SDLF_QUANTIZED_CONV2D), bad = good;
    bad.quantized_conv2d.x_zero = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "x_zero is -1");
    bad = good, bad.in[1].dtype = SDLF_UINT8;
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'w' is uint8, expected int8");
    bad = good, bad.in[3] = t(sdlf_shape(1));
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'multiplier' has shape 1, expected 8");
    bad = good, bad.out[0].dtype = SDLF_FLOAT32, bad.quantized_conv2d.low = -INFINITY;
    CHECK_OK(sdlf_operation_check(&bad));
    bad.quantized_conv2d.high = NAN;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "high nan");
    bad = good, bad.quantized_conv2d.groups = 3;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "groups");

    good = example(SDLF_QUANTIZED_ADD), bad = good;
    bad.quantized_add.b_scale = 0;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "b_scale is 0");
    bad.in[1] = (sdlf_tensor){0}; /* not checked without b */
    CHECK_OK(sdlf_operation_check(&bad));
    bad = example(SDLF_QUANTIZED_POOL2D), bad.quantized_pool2d.window.padding_after[1] = 2;
    bad.out[0] = of(SDLF_UINT8, sdlf_shape(N, C, 3, 4));
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "nothing but padding");
}

static void products_and_sums(void)
{
    sdlf_operation good = example(SDLF_GEMM), bad = good;
    bad.gemm.transpose_a = true;
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'b' has shape 3x4, expected 2x4");
    bad = good, bad.in[1] = t(sdlf_shape(4, 3)), bad.gemm.transpose_b = true;
    CHECK_OK(sdlf_operation_check(&bad));
    bad = good, bad.gemm.alpha = NAN;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "alpha");
    bad = good, bad.gemm.activation.function = SDLF_CLIP, bad.gemm.activation.low = 1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "clip's low 1 is above its high 0");
    bad = good, bad.in[2] = t(sdlf_shape(2));
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'bias' has shape 2, expected 4");
    sdlf_operation empty = good;
    empty.in[0] = t(sdlf_shape(2, 0)), empty.in[1] = t(sdlf_shape(0, 4));
    CHECK_OK(sdlf_operation_check(&empty));

    bad = example(SDLF_REDUCE), bad.reduce.axis = 2;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "axis is 2, expected 0 to 1");
    bad.reduce.axis = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "axis is -1");
    bad = example(SDLF_REDUCE), bad.reduce.function = SDLF_REDUCTION_COUNT;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "not a valid reduction");
    bad = example(SDLF_REDUCE), bad.in[0] = t(sdlf_shape(3, 0));
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "nothing to reduce");
    good = example(SDLF_REDUCE), good.out[0] = t(sdlf_shape(3, 1));
    CHECK_OK(sdlf_operation_check(&good));
    good.in[0] = t(sdlf_shape(7)), good.out[0] = t(SDLF_SCALAR), good.reduce.axis = 0;
    CHECK_OK(sdlf_operation_check(&good));

    bad = example(SDLF_ADD), bad.add.activation.function = SDLF_LEAKY_RELU, bad.add.activation.slope = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "slope is -1");
    bad = example(SDLF_BINARY), bad.binary.function = SDLF_BINARY_AND;
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'a' is float32, which the function does not accept");
    bad.binary.function = SDLF_BINARY_EQUAL;
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'y' is float32, expected bool");
    bad.binary.function = SDLF_BINARY_FUNCTION_COUNT;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "not a valid function of two operands");
    bad = example(SDLF_BINARY), bad.in[0] = bad.in[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "found neither");
    bad = example(SDLF_BINARY_BACKWARD), bad.in[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "operand 'db' is the gradient of a number");
    bad = example(SDLF_MATMUL), bad.in[0].stride[1] = 6;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "the matrices of operand 'a' of shape 2x3x5 have gaps");
    bad = example(SDLF_NORMALIZE_FORWARD), bad.normalize.length = 4;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "rows of 4 elements");
    bad = example(SDLF_RESAMPLE), bad.resample.scale = 0;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "scale is 0");
    bad = example(SDLF_TOP_K), bad.out[0].shape.dim[1] = bad.out[1].shape.dim[1] = 6;
    bad.out[0].stride[0] = bad.out[1].stride[0] = 6;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "6 elements are asked of 5");
    bad = example(SDLF_GATHER), bad.index.axis = 2;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "axis is 2");

    bad = example(SDLF_ACTIVATION_FORWARD), bad.activation = (sdlf_activation){.function = SDLF_CELU};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "celu's alpha is 0, expected more than 0");
    bad.activation = (sdlf_activation){.function = SDLF_ELU, .alpha = -1};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "alpha is -1");
    bad.activation = (sdlf_activation){.function = SDLF_SELU, .alpha = 1};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "selu's beta is 0");
    bad.activation = (sdlf_activation){.function = SDLF_HARD_SIGMOID, .beta = NAN};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "hard_sigmoid's beta");
    bad = example(SDLF_ACTIVATION_FORWARD), bad.activation.function = (sdlf_activation_function)-1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "not a valid activation function");
}

static void gathering(void)
{
    sdlf_operation good = example(SDLF_GATHER_BATCH), bad = good;
    bad.in[2] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "needs operand 'epoch'");
    bad.gather.augment.shift = 0;
    CHECK_OK(sdlf_operation_check(&bad));
    bad = good, bad.gather.augment.scale = 1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "scale is 1, expected at least 0 and less than 1");
    bad = good, bad.gather.augment.shift = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "shift is -1");
    bad = good, bad.gather.augment.rotate = 361;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "rotate is 361");
    bad = good, bad.gather.augment.elastic = NAN;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "elastic");
    bad = good, bad.gather.mean = INFINITY;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "mean");
    bad = good, bad.in[0] = of(SDLF_UINT8, sdlf_shape(9, H, W)), bad.out[0] = t(sdlf_shape(3, H, W));
    REFUSES(bad, SDLF_ERROR_SHAPE, "expected 4 dimensions, found 3");
    bad.gather.augment.shift = 0;
    CHECK_OK(sdlf_operation_check(&bad));
    bad = good, bad.in[0].dtype = SDLF_FLOAT64;
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'x' is float64, expected float32");
    bad = good, bad.out[0].dtype = SDLF_UINT8;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "floating operand 'y'");
    bad.gather.augment.shift = 0;
    CHECK_OK(sdlf_operation_check(&bad));
    bad.out[0].dtype = SDLF_INT32;
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'x' is uint8, expected int32");
    bad = good, bad.in[1] = of(SDLF_INT32, sdlf_shape(4));
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'y' has shape 3x4x6x6, expected 4x4x6x6");
    bad = good, bad.gather.augment.hue = 0.6f;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "hue is 0.6");

    good.gather.augment.shift = 0;
    good.gather.automatic = (sdlf_auto_augment){.rand_augment = 2, .rand_magnitude = 9};
    good.in[0].dtype = SDLF_UINT8;
    CHECK_OK(sdlf_operation_check(&good));
    bad = good, bad.gather.automatic.rand_augment = 9;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "rand_augment is 9");
    bad = good, bad.gather.automatic.rand_magnitude = 0;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "rand_magnitude is 0");
    bad = good, bad.gather.automatic.trivial = true;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "TrivialAugment or RandAugment, not both");
    bad = good, bad.in[0].dtype = SDLF_FLOAT32;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "operand 'x' is float32: TrivialAugment and RandAugment take uint8");
    bad = good, bad.in[2] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "needs operand 'epoch'");

    bad = example(SDLF_NEXT_BATCH), bad.in[3] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "'labels' and 'batch_labels'");
    bad = example(SDLF_NEXT_BATCH), bad.out[4] = of(SDLF_INT32, sdlf_shape(4));
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'batch_labels' has shape 4, expected 3");
}

static void normalizing(void)
{
    sdlf_operation bad = example(SDLF_BATCH_NORM2D_FORWARD);
    bad.batch_norm.momentum = 1.5f;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "momentum is 1.5");
    bad = example(SDLF_BATCH_NORM2D_FORWARD), bad.batch_norm.epsilon = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "epsilon is -1");
    bad = example(SDLF_BATCH_NORM2D_FORWARD), bad.in[0] = bad.out[0] = t(sdlf_shape(0, C));
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "no values");
    bad = example(SDLF_BATCH_NORM2D_INFER), bad.in[0] = bad.out[0] = t(sdlf_shape(N, C));
    CHECK_OK(sdlf_operation_check(&bad));
    bad.in[0] = bad.out[0] = t(sdlf_shape(N, C, H));
    REFUSES(bad, SDLF_ERROR_SHAPE, "expected 4 dimensions, found 3");
    bad = example(SDLF_BATCH_NORM2D_INFER), bad.batch_norm.epsilon = NAN;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "epsilon");
}

static void probabilities(void)
{
    sdlf_operation bad = example(SDLF_DROPOUT_FORWARD);
    bad.dropout.probability = 1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "probability is 1");
    bad = example(SDLF_DROPOUT_BACKWARD), bad.dropout.probability = -0.1f;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "probability is -0.1");
    bad = example(SDLF_DROPOUT_FORWARD), bad.dropout.first = -4;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "first is -4");
    bad = example(SDLF_SOFTMAX_FORWARD), bad.softmax.axis = 2;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "axis is 2");
    bad = example(SDLF_LOG_SOFTMAX_BACKWARD), bad.softmax.axis = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "axis is -1");
    bad = example(SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD), bad.cross_entropy.smoothing = 1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "smoothing is 1");
    bad = example(SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD), bad.in[2] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "'dloss' and 'dlogits'");
    bad = example(SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD), bad.in[0] = bad.out[0] = t(sdlf_shape(3, 0));
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "at least one row and one class");
    bad = example(SDLF_RANDOM_UNIFORM), bad.random.b = NAN;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "high");
    bad = example(SDLF_RANDOM_NORMAL), bad.random.b = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "deviation is -1");
    bad = example(SDLF_RANDOM_NORMAL), bad.out[0].dtype = SDLF_FLOAT16;
    CHECK_OK(sdlf_operation_check(&bad));
}

static void updates(void)
{
    sdlf_operation bad = example(SDLF_SGD_UPDATE);
    bad.out[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "momentum needs operand 'v'");
    bad.sgd.momentum = 0;
    CHECK_OK(sdlf_operation_check(&bad));
    bad.sgd.momentum = 1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "momentum is 1");
    bad = example(SDLF_SGD_UPDATE), bad.sgd.decay = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "decay is -1");
    bad = example(SDLF_ADAM_UPDATE), bad.adam.beta1 = 1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "beta1 is 1");
    bad = example(SDLF_ADAM_UPDATE), bad.adam.beta2 = -0.5f;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "beta2 is -0.5");
    bad = example(SDLF_ADAM_UPDATE), bad.adam.epsilon = NAN;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "epsilon");
    bad = example(SDLF_RMSPROP_UPDATE), bad.rmsprop.rho = 1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "rho is 1");
    bad = example(SDLF_RMSPROP_UPDATE), bad.out[2] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "momentum needs operand 'b'");
    bad = gemm_backward_sgd(), bad.out[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "momentum needs operand 'v'");
    gemm_backward_sgd_options_in(&bad)->sgd.momentum = 0;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "operand 'bv' is given without 'b' and 'v'");
    bad = gemm_backward_sgd(), bad.out[4] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "operand 'bv' is missing with 'b' and 'v'");
    bad = gemm_backward_sgd(), bad.out[3] = bad.out[4] = t(sdlf_shape(5));
    REFUSES(bad, SDLF_ERROR_SHAPE, "operand 'b' has shape 5, expected 3");
    bad = gemm_backward_sgd(), gemm_backward_sgd_options_in(&bad)->sgd.bias_decay = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "bias_decay is -1");
    bad = gemm_backward_sgd(), gemm_backward_sgd_options_in(&bad)->activation.function = SDLF_SILU;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "needs its input");
    bad = example_at(CONV2D_POOL_BACKWARD_SGD), bad.out[3] = (sdlf_tensor){.dtype = SDLF_NONE};
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "operand 'bv' is missing");
    bad = example_at(CONV2D_POOL_BACKWARD_SGD), conv2d_pool_options_in(&bad)->sgd.momentum = NAN;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "momentum");
    bad = example(SDLF_CLIP_SCALE), bad.clip.max_norm = 0;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "max_norm is 0");
    bad.clip.max_norm = NAN;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "max_norm");
    bad = example(SDLF_LOSS_SCALE_UPDATE), bad.loss_scale.growth = 0.5f;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "growth");
    bad = example(SDLF_LOSS_SCALE_UPDATE), bad.loss_scale.backoff = 2;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "backoff");
    bad = example(SDLF_LOSS_SCALE_UPDATE), bad.loss_scale.interval = -1;
    REFUSES(bad, SDLF_ERROR_ARGUMENT, "interval is -1");
}

int main(void)
{
    RUN(pools);
    RUN(quantised_numbers);
    RUN(products_and_sums);
    RUN(gathering);
    RUN(normalizing);
    RUN(probabilities);
    RUN(updates);
    return test_summary();
}
