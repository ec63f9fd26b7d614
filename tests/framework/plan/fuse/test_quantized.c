/* SPDX-License-Identifier: MIT */
/* Operations between dequantisation and quantisation are computed in integers if their weights are integers and the
 * calculator supports it. */
#include <math.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 3, SIDE = 11, PIXELS = 3 * SIDE * SIDE, CLASSES = 5 };

static sdlf_node with_number(sdlf_model *net, sdlf_node x, int function, float number)
{
    return sdlf_binary(net, &x, 1, &(sdlf_binary_layer_options){.function = function, .scalar = number});
}

static sdlf_node quantise(sdlf_model *net, sdlf_node x, float scale, int zero, int dtype)
{
    x = with_number(net, x, SDLF_LAYER_DIVIDE, scale);
    x = sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_ROUND});
    if (zero != 0) x = with_number(net, x, SDLF_LAYER_ADD, (float)zero);
    return sdlf_cast(net, x, &(sdlf_cast_options){.dtype = dtype});
}

static sdlf_node dequantise(sdlf_model *net, sdlf_node x, float scale, int zero)
{
    x = sdlf_cast(net, x, &(sdlf_cast_options){.dtype = SDLF_VALUE_FLOAT});
    if (zero != 0) x = with_number(net, x, SDLF_LAYER_SUBTRACT, (float)zero);
    return with_number(net, x, SDLF_LAYER_MULTIPLY, scale);
}

static sdlf_node through(sdlf_model *net, sdlf_node x, float scale, int zero, int dtype)
{
    return dequantise(net, quantise(net, x, scale, zero, dtype), scale, zero);
}

/* Make every weight an integer in [-127, 127] times a scale of its filter. */
static void make_integers(sdlf_model *net)
{
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        sdlf_shape shape = parameter->spec.shape;
        if (shape.rank < 2) continue;
        int64_t count = sdlf_shape_count(shape), each = count / shape.dim[0];
        float *w = parameter->value.data;
        for (int64_t e = 0; e < count; e++) {
            sdlf_philox random = sdlf_philox4x32(9, (uint64_t)e, (uint32_t)i, 0);
            float scale = 0.4f / 127 / sqrtf((float)each) * (1 + 0.1f * (float)(e / each % 7));
            w[e] = (float)((int)(random.word[0] % 255) - 127) * scale;
        }
    }
}

/* Stem, depthwise, pointwise, sum, max-pooling, mean, classifier. */
static sdlf_model *quantised_net(void)
{
    sdlf_model *net = sdlf_model_create("quantised");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(3, SIDE, SIDE));
    x = through(net, x, 0.01f, 127, SDLF_VALUE_UINT8);
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 8, .kernel = {3, 3}, .padding = {1, 1}});
    x = through(net, sdlf_relu(net, x), 0.004f, 0, SDLF_VALUE_UINT8);
    sdlf_node y =
        sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 8, .kernel = {3, 3}, .padding = {1, 1}, .groups = 8});
    y = through(net, sdlf_relu6(net, y), 0.003f, -128, SDLF_VALUE_INT8);
    y = sdlf_conv2d(net, y, &(sdlf_conv2d_options){.filters = 8, .kernel = {1, 1}, .no_bias = true});
    y = through(net, y, 0.005f, 10, SDLF_VALUE_INT8);
    x = through(net, sdlf_add(net, x, y), 0.006f, 90, SDLF_VALUE_UINT8);
    x = through(net, sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}}), 0.006f, 90, SDLF_VALUE_UINT8);
    x = through(net, sdlf_global_avg_pool2d(net, x), 0.005f, 80, SDLF_VALUE_UINT8);
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = CLASSES});
    sdlf_output(net, "y", x);
    CHECK_OK(sdlf_model_build(net, 1));
    make_integers(net);
    return net;
}

static sdlf_plan *plan_of(sdlf_model *net, sdlf_calculator *calculator, bool parts, const float *image, float *y)
{
    sdlf_plan *plan = NULL;
    CHECK_OK(
        sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator, .no_fusion = parts}));
    if (plan == NULL) return NULL;
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
    return plan;
}

static bool computes_integers(const sdlf_calculator *calculator)
{
    return calculator->type->kernel[SDLF_QUANTIZED_CONV2D].run != NULL;
}

static void quantised_networks_run_in_integers(void)
{
    static float image[BATCH * PIXELS], found[BATCH * CLASSES], parts[BATCH * CLASSES], first[BATCH * CLASSES];
    bool compared = false;
    fill_random(image, BATCH * PIXELS, 3);
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = quantised_net();
        bool integers = computes_integers(calculator);
        sdlf_plan *plan = plan_of(net, calculator, false, image, found);
        if (plan != NULL) {
            CHECK_EQUAL(count_steps(plan, "quantized_conv2d"), integers ? 4 : 0);
            CHECK_EQUAL(count_steps(plan, "quantized_add"), integers ? 1 : 0);
            CHECK_EQUAL(count_steps(plan, "quantized_pool2d"), integers ? 2 : 0);
            CHECK_EQUAL(count_steps(plan, "quantize"), integers ? 1 : 0);
            CHECK_EQUAL(count_steps(plan, "dequantize"), 0);
            if (integers) CHECK_EQUAL(count_steps(plan, "conv2d_forward"), 0);
        }
        sdlf_plan_free(plan);
        sdlf_plan_free(plan_of(net, calculator, true, image, parts));
        for (int i = 0; i < BATCH * CLASSES; i++) {
            CHECK_CLOSE((double)found[i], (double)parts[i], 2e-3); /* ties may be rounded either way */
            if (integers && compared) CHECK(found[i] == first[i]); /* the same bits on every calculator */
        }
        if (integers && !compared) memcpy(first, found, sizeof first);
        compared = compared || integers;
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

static void other_weights_stay_floats(void)
{
    static float image[BATCH * PIXELS], found[BATCH * CLASSES];
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = quantised_net();
        bool integers = computes_integers(calculator);
        float *w = sdlf_model_parameter(net, 0)->value.data;
        w[1] = w[0] * 0.37f + 0.001f;
        sdlf_plan *plan = plan_of(net, calculator, false, image, found);
        if (plan != NULL && integers) {
            CHECK_EQUAL(count_steps(plan, "quantized_conv2d"), 3);
            CHECK_EQUAL(count_steps(plan, "conv2d_forward"), 1);
        }
        /* weights that were integers when the plan was created, and no longer are */
        float *other = sdlf_model_parameter(net, 2)->value.data;
        other[0] = 0.61803f * other[1];
        if (plan != NULL && integers) {
            CHECK_FAILS(sdlf_plan_load_parameters(plan), SDLF_ERROR_ARGUMENT, "make a new plan");
            other[0] = other[1];
            CHECK_OK(sdlf_plan_load_parameters(plan));
        }
        sdlf_plan_free(plan);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

/* A bias that is NaN, or too large for the int32 accumulator, keeps its convolution in floats. */
static void large_biases_stay_floats(void)
{
    static const float biases[] = {NAN, INFINITY, -INFINITY, 3e5f};
    static float image[BATCH * PIXELS], found[BATCH * CLASSES], parts[BATCH * CLASSES];
    fill_random(image, BATCH * PIXELS, 3);
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        bool integers = computes_integers(calculator);
        for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
            sdlf_model *net = quantised_net();
            float *bias = sdlf_model_parameter(net, 1)->value.data, usual = bias[1];
            bias[1] = biases[i];
            sdlf_plan *plan = plan_of(net, calculator, false, image, found);
            if (plan != NULL && integers) CHECK_EQUAL(count_steps(plan, "quantized_conv2d"), 3);
            sdlf_plan_free(plan);
            sdlf_plan_free(plan_of(net, calculator, true, image, parts));
            for (int j = 0; j < BATCH * CLASSES; j++) CHECK_CLOSE((double)found[j], (double)parts[j], 2e-3);
            bias[1] = usual;
            plan = plan_of(net, calculator, false, image, found);
            bias[1] = biases[i];
            if (plan != NULL && integers)
                CHECK_FAILS(sdlf_plan_load_parameters(plan), SDLF_ERROR_ARGUMENT, "too large for integers now");
            sdlf_plan_free(plan);
            sdlf_model_free(net);
        }
        sdlf_calculator_close(calculator);
    }
}

/* Sums of bytes minus a zero point, either constant or an input, computed in int32. */
static sdlf_model *sums_net(bool computed, bool integers)
{
    sdlf_model *net = sdlf_model_create("sums");
    sdlf_node x = sdlf_input(net, "image", SDLF_UINT8, sdlf_shape(3, SIDE, SIDE));
    sdlf_node zero = sdlf_input(net, "zero", SDLF_UINT8, sdlf_shape(1));
    x = sdlf_cast(net, x, &(sdlf_cast_options){.dtype = SDLF_VALUE_FLOAT});
    if (computed) {
        zero = sdlf_reshape(net, zero, &(sdlf_reshape_options){.shape = sdlf_shape(1), .whole = true});
        zero = sdlf_cast(net, zero, &(sdlf_cast_options){.dtype = SDLF_VALUE_FLOAT});
        x = sdlf_binary(net, (const sdlf_node[]){x, zero}, 2,
                        &(sdlf_binary_layer_options){.function = SDLF_LAYER_SUBTRACT});
    } else {
        x = with_number(net, x, SDLF_LAYER_SUBTRACT, 131);
    }
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 8, .kernel = {3, 3}, .padding = {1, 1}, .no_bias = true});
    x = sdlf_cast(net, x, &(sdlf_cast_options){.dtype = SDLF_VALUE_INT32});
    sdlf_output(net, "y", x);
    CHECK_OK(sdlf_model_build(net, 1));
    float *w = sdlf_model_parameter(net, 0)->value.data;
    for (int i = 0; i < 8 * 3 * 9; i++) w[i] = (float)(i * 37 % 255 - 127) * (integers ? 1 : 0.5f);
    return net;
}

static bool run_sums(sdlf_model *net, sdlf_calculator *calculator, bool parts, bool computed, int32_t *y)
{
    static uint8_t image[PIXELS];
    const uint8_t zero = 131;
    for (int i = 0; i < PIXELS; i++) image[i] = (uint8_t)(i * 73 % 256);
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator, .no_fusion = parts}));
    if (plan == NULL) return false;
    CHECK_OK(test_plan_write(plan, "image", image));
    if (computed) CHECK_OK(test_plan_write(plan, "zero", &zero));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
    bool fused = count_steps(plan, "quantized_conv2d") == 1;
    CHECK_EQUAL(count_steps(plan, "conv2d_forward"), fused ? 0 : 1);
    sdlf_plan_free(plan);
    return fused;
}

static void sums_become_int32(void)
{
    static int32_t found[8 * SIDE * SIDE], parts[8 * SIDE * SIDE];
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        for (int i = 0; i < 4; i++) {
            bool computed = i % 2 == 1, integers = i < 2;
            sdlf_model *net = sums_net(computed, integers);
            CHECK_EQUAL(run_sums(net, calculator, false, computed, found), integers && computes_integers(calculator));
            CHECK(!run_sums(net, calculator, true, computed, parts));
            CHECK(memcmp(found, parts, sizeof found) == 0);
            sdlf_model_free(net);
        }
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(quantised_networks_run_in_integers);
    RUN(other_weights_stay_floats);
    RUN(large_biases_stay_floats);
    RUN(sums_become_int32);
    return test_summary();
}
