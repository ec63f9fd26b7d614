/* SPDX-License-Identifier: MIT */
/* sdlf_quantize: the results of its files, the steps of their plans, and rejected arguments. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/plan/networks.h"
#include "onnx/fixtures.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, BATCH = 4 };

static sdlf_dataset *digits;
static sdlf_calculator *cpu;

/* Batch normalisation, a residual sum, pooling, a reshape, a product; statistics and weights of various magnitudes. */
static sdlf_model *residual_net(void)
{
    sdlf_model *net = sdlf_model_create("residual");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE)), y;
    x = sdlf_conv2d(
        net, x,
        &(sdlf_conv2d_options){.name = "stem", .filters = 16, .kernel = {3, 3}, .padding = {1, 1}, .no_bias = true});
    x = sdlf_relu(net, sdlf_batch_norm2d(net, x, NULL));
    x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}});
    y = sdlf_conv2d(net, x,
                    &(sdlf_conv2d_options){.name = "inner", .filters = 16, .kernel = {3, 3}, .padding = {1, 1}});
    y = sdlf_batch_norm2d(net, y, NULL);
    x = sdlf_relu(net, sdlf_add(net, x, y));
    x = sdlf_flatten(net, sdlf_global_avg_pool2d(net, x));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.name = "head", .units = CLASSES});
    sdlf_output(net, "scores", x);
    CHECK_OK(sdlf_model_build(net, 5));
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *p = sdlf_model_parameter(net, i);
        if (p->spec.shape.rank > 1) continue;
        for (int64_t k = 0; k < sdlf_tensor_count(&p->value); k++)
            ((float *)p->value.data)[k] += 0.05f * (float)(k % 5);
    }
    return net;
}

static void run_net(sdlf_model *net, sdlf_calculator *calculator, float *scores, int *integers)
{
    static float image[BATCH * PIXELS];
    sdlf_plan *plan = NULL;
    for (int i = 0; i < BATCH * PIXELS; i++)
        image[i] = ((const uint8_t *)digits->samples.data)[i] * digits->scale - digits->mean * digits->scale;
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator}));
    if (plan == NULL) return;
    CHECK_OK(sdlf_plan_write(plan, "image", image, SDLF_FLOAT32, sizeof image));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(sdlf_plan_read(plan, "scores", scores, SDLF_FLOAT32, BATCH * CLASSES * (int64_t)sizeof *scores));
    if (integers != NULL) *integers = count_steps(plan, "quantized_conv2d");
    sdlf_plan_free(plan);
}

/* The largest difference between the network and its file, as a fraction of the range of its scores; `steps`: integer
 * products on cpu. */
static double error_of(sdlf_model *net, const char *path, int *steps)
{
    static float before[BATCH * CLASSES], after[BATCH * CLASSES];
    sdlf_model *quantised = NULL;
    double largest = 0, low = 0, high = 0;
    CHECK_OK(sdlf_model_from_onnx(&quantised, path, NULL));
    if (quantised == NULL) return NAN;
    run_net(net, cpu, before, NULL);
    run_net(quantised, cpu, after, steps);
    sdlf_model_free(quantised);
    for (int i = 0; i < BATCH * CLASSES; i++) {
        largest = fmax(largest, fabs((double)before[i] - (double)after[i]));
        low = fmin(low, (double)before[i]);
        high = fmax(high, (double)before[i]);
    }
    return largest / (high - low);
}

static sdlf_quantization_options with_data(void)
{
    return (sdlf_quantization_options){.data = digits, .calculator = cpu, .samples = 64};
}

static void every_calibration_stays_near(void)
{
    const char *path = test_path("int8.onnx");
    sdlf_model *net = residual_net();
    for (int c = 0; c < SDLF_CALIBRATION_COUNT; c++) {
        for (int kind = 0; kind < 3; kind++) {
            sdlf_quantization_options options = with_data();
            sdlf_quantized written;
            int steps = 0;
            options.calibration = (sdlf_calibration)c;
            options.per_tensor = kind == 1;
            options.signed_activations = kind == 2;
            CHECK_OK(sdlf_quantize(net, path, &options, &written));
            CHECK_EQUAL(written.layers, 3);
            CHECK_EQUAL(written.left, 0);
            CHECK_EQUAL(written.samples, 64);
            CHECK(written.bytes > 0 && written.bytes < 3 * written.bytes_before);
            /* 8 bits: a few hundredths; entropy calibration clips rare values instead */
            double error = error_of(net, path, &steps);
            CHECK(error > 0 && error < (c == SDLF_CALIBRATION_ENTROPY ? 0.4 : 0.05));
            CHECK_EQUAL(steps, 3);
        }
    }
    sdlf_model_free(net);
}

/* On a calculator without integer kernels the same file runs in floats. */
static void every_calculator_runs_it(void)
{
    static float first[BATCH * CLASSES], scores[BATCH * CLASSES];
    const char *path = test_path("everywhere.onnx");
    sdlf_model *net = residual_net(), *quantised = NULL;
    sdlf_quantization_options options = with_data();
    CHECK_OK(sdlf_quantize(net, path, &options, NULL));
    CHECK_OK(sdlf_model_from_onnx(&quantised, path, NULL));
    run_net(quantised, cpu, first, NULL);
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        int steps = 0;
        run_net(quantised, calculator, scores, &steps);
        CHECK_EQUAL(steps, calculator->type->kernel[SDLF_QUANTIZED_CONV2D].run != NULL ? 3 : 0);
        for (int i = 0; i < BATCH * CLASSES; i++) /* a value between two bytes may be rounded either way */
            CHECK_CLOSE((double)scores[i], (double)first[i], 0.05);
        sdlf_calculator_close(calculator);
    }
    sdlf_model_free(quantised);
    sdlf_model_free(net);
}

static void weights_only(void)
{
    static const struct {
        int bits;
        int64_t block;
        bool per_tensor;
        double most;
    } cases[] = {{8, 0, false, 0.02}, {8, 0, true, 0.03}, {4, 16, false, 0.2}, {4, 32, false, 0.25}};
    const char *path = test_path("weights.onnx");
    sdlf_model *net = residual_net();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sdlf_quantized written;
        int steps = 1;
        sdlf_quantization_options options = {
            .weights_only = cases[i].bits, .block = cases[i].block, .per_tensor = cases[i].per_tensor};
        CHECK_OK(sdlf_quantize(net, path, &options, &written));
        CHECK_EQUAL(written.values, 0);
        CHECK_EQUAL(written.opset, cases[i].bits == 4 ? 21 : 17);
        double error = error_of(net, path, &steps);
        CHECK(error > 0 && error < cases[i].most);
        CHECK_EQUAL(steps, 0); /* activations are floats */
    }
    sdlf_model_free(net);
}

static void layers_are_skipped(void)
{
    static const char *const inner[] = {"inner"}, *const most[] = {"in*", "head"}, *const none[] = {"outer"},
                             *const all[] = {"*"};
    const char *path = test_path("skip.onnx");
    sdlf_model *net = residual_net();
    sdlf_quantization_options options = with_data();
    sdlf_quantized written;
    int steps = 0;
    options.skip = inner, options.skip_count = 1;
    CHECK_OK(sdlf_quantize(net, path, &options, &written));
    CHECK_EQUAL(written.left, 1);
    CHECK(error_of(net, path, &steps) < 0.05);
    CHECK_EQUAL(steps, 2);
    options.skip = most, options.skip_count = 2;
    CHECK_OK(sdlf_quantize(net, path, &options, &written));
    CHECK_EQUAL(written.layers, 1);
    options.skip = none, options.skip_count = 1;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "layer 'outer'");
    options.skip = all;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "no convolution or product");
    sdlf_model_free(net);
}

/* A network of a single product. */
static void one_layer(void)
{
    const char *path = test_path("one.onnx");
    sdlf_model *net = sdlf_model_create("one");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    sdlf_output(net, "scores", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = CLASSES}));
    CHECK_OK(sdlf_model_build(net, 5));
    sdlf_quantization_options options = with_data();
    sdlf_quantized written;
    int steps = 0;
    CHECK_OK(sdlf_quantize(net, path, &options, &written));
    CHECK_EQUAL(written.layers, 1);
    CHECK_EQUAL(written.left, 0);
    CHECK(error_of(net, path, &steps) < 0.05);
    CHECK_EQUAL(steps, 1);
    sdlf_model_free(net);
}

/* Weights that are not finite, and a data set without samples. */
static void numbers_are_finite(void)
{
    const char *path = test_path("finite.onnx");
    sdlf_model *net = residual_net();
    sdlf_quantization_options options = {.weights_only = 8};
    float *last = sdlf_model_parameter(net, sdlf_model_parameter_count(net) - 2)->value.data; /* the head's weight */
    last[3] = NAN;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_NUMERIC, "is not finite");
    last[3] = 1;
    CHECK_OK(sdlf_quantize(net, path, &options, NULL));
    sdlf_dataset empty = *digits;
    empty.samples.shape.dim[0] = empty.labels.shape.dim[0] = 0;
    options = with_data();
    options.data = &empty;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "");
    sdlf_model_free(net);
}

static void says_what_is_wrong(void)
{
    const char *path = test_path("wrong.onnx");
    sdlf_model *net = residual_net();
    sdlf_quantization_options options = with_data();
    CHECK_FAILS(sdlf_quantize(NULL, path, &options, NULL), SDLF_ERROR_MEMORY, "there is none");
    CHECK_FAILS(sdlf_quantize(net, NULL, &options, NULL), SDLF_ERROR_ARGUMENT, "path is NULL");
    CHECK_FAILS(sdlf_quantize(net, path, NULL, NULL), SDLF_ERROR_ARGUMENT, "options is NULL");
    options.data = NULL;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "data is NULL");
    options.weights_only = 5;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "weights of 5 bits");
    options = (sdlf_quantization_options){.weights_only = 4, .block = 48};
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "blocks of 48");
    options = (sdlf_quantization_options){.weights_only = 4, .opset = 17};
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "need 21");
    options = with_data();
    options.percentile = 12;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "percentile 12");
    options = with_data();
    options.calibration = (sdlf_calibration)7;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "calibration 7");
    options = with_data();
    options.opset = 9;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_ARGUMENT, "opset 9");
    options = with_data();
    ((float *)sdlf_model_parameter(net, 0)->value.data)[3] = INFINITY;
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_NUMERIC, "is not finite");
    sdlf_model_free(net);
    net = sdlf_model_create("other");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(7));
    sdlf_output(net, "y", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3}));
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_FAILS(sdlf_quantize(net, path, &options, NULL), SDLF_ERROR_SHAPE, "takes no samples of 1x28x28");
    sdlf_model_free(net);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    cpu = test_open("cpu");
    CHECK_OK(sdlf_dataset_open(&digits, "digits:200", SDLF_SPLIT_TRAIN));
    RUN(every_calibration_stays_near);
    RUN(every_calculator_runs_it);
    RUN(weights_only);
    RUN(layers_are_skipped);
    RUN(one_layer);
    RUN(numbers_are_finite);
    RUN(says_what_is_wrong);
    sdlf_dataset_free(digits);
    sdlf_calculator_close(cpu);
    return test_summary();
}
