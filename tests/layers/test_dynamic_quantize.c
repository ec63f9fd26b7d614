/* SPDX-License-Identifier: MIT */
/* dynamic_quantize: its formula, by the operation on calculators that have it and composed of others elsewhere; and
 * matrix products of its output, with scale and bias fused in. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { ROWS = 9, K = 70, COLUMNS = 37 };

static float x[ROWS * K], weight[K * COLUMNS], scales[COLUMNS], bias[COLUMNS];

/* ---- by itself ---- */

static void quantise(sdlf_calculator *calculator, bool has_operation)
{
    float scale, low = 0, high = 0;
    uint8_t y[ROWS * K], zero;
    sdlf_model *net = sdlf_model_create("dynamic");
    sdlf_node q = sdlf_dynamic_quantize(net, sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(K)));
    sdlf_output(net, "y", q);
    sdlf_output(net, "scale", (sdlf_node){q.layer, 1});
    sdlf_output(net, "zero", (sdlf_node){q.layer, 2});
    sdlf_plan *plan = NULL;
    if (CHECK_OK(sdlf_model_build(net, 1)) &&
        CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = ROWS, .forward = calculator}))) {
        CHECK_EQUAL(count_steps(plan, "dynamic_quantize"), has_operation ? 1 : 0);
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        CHECK_OK(test_plan_read(plan, "scale", &scale));
        CHECK_OK(test_plan_read(plan, "zero", &zero));
        for (int i = 0; i < ROWS * K; i++) low = fminf(low, x[i]), high = fmaxf(high, x[i]);
        float expected = low == high ? 1 : (high - low) / 255, point = rintf(-low / expected);
        CHECK_EQUAL(scale, expected);
        CHECK_EQUAL(zero, point);
        for (int i = 0; i < ROWS * K; i++) CHECK_EQUAL(y[i], fminf(rintf(x[i] / expected) + point, 255));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

/* Both signs; one sign, where the range still includes 0; all zeros. */
static void quantise_all(sdlf_calculator *calculator, bool has_operation)
{
    for (int sign = 0; sign < 4; sign++) {
        for (int i = 0; i < ROWS * K; i++) {
            float number = (float)(int)(sdlf_philox4x32(5, (uint64_t)i, 0, 0).word[0] % 2001) / 700 - 1;
            x[i] = sign == 0 ? number : sign == 1 ? fabsf(number) + 0.5f : sign == 2 ? -fabsf(number) - 0.5f : 0;
        }
        quantise(calculator, has_operation);
    }
}

static void every_calculator_has_the_same_bytes(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        quantise_all(calculator, calculator->type->kernel[SDLF_DYNAMIC_QUANTIZE].run != NULL);
        sdlf_calculator_close(calculator);
    }
}

static void others_put_it_together(void)
{
    static sdlf_calculator_class without;
    sdlf_calculator *reference = test_open("reference");
    without = *reference->type;
    sdlf_calculator_close(reference);
    without.name = "without_dynamic";
    memset(&without.kernel[SDLF_DYNAMIC_QUANTIZE], 0, sizeof without.kernel[0]);
    CHECK_OK(sdlf_register_calculator(&without));
    sdlf_calculator *calculator = test_open("without_dynamic");
    if (calculator != NULL) quantise_all(calculator, false);
    sdlf_calculator_close(calculator);
}

/* ---- before a product ---- */

typedef struct form {
    bool each, bias, relu,
        shared;  /* a scale for each column; what follows the product; sums that somebody else reads */
    bool square; /* in place of a scale, the sums themselves */
} form;

static sdlf_node value(sdlf_model *net, const char *name, sdlf_shape shape, int dtype)
{
    return sdlf_value(net, &(sdlf_value_options){.name = name, .shape = shape, .dtype = dtype});
}

static sdlf_node two(sdlf_model *net, int function, sdlf_node a, sdlf_node b)
{
    return sdlf_binary(net, (sdlf_node[]){a, b}, 2, &(sdlf_binary_layer_options){.function = function});
}

static sdlf_model *product_net(const form *f)
{
    sdlf_model *net = sdlf_model_create("product");
    sdlf_node q = sdlf_dynamic_quantize(net, sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(K)));
    sdlf_node operands[] = {q, value(net, "w", sdlf_shape(K, COLUMNS), SDLF_VALUE_INT8), (sdlf_node){q.layer, 2}};
    sdlf_node sum = sdlf_model_add(net, sdlf_layer_class_find("matmul"), NULL, operands, 3);
    if (f->shared) sdlf_output(net, "sum", sum);
    sdlf_node scale = value(net, "scales", f->each ? sdlf_shape(COLUMNS) : sdlf_shape(1), SDLF_VALUE_FLOAT);
    scale = two(net, SDLF_LAYER_MULTIPLY, (sdlf_node){q.layer, 1}, scale);
    sdlf_node sums = sdlf_cast(net, sum, &(sdlf_cast_options){.dtype = SDLF_VALUE_FLOAT});
    sdlf_node y = two(net, SDLF_LAYER_MULTIPLY, sums, f->square ? sums : scale);
    if (f->bias) y = two(net, SDLF_LAYER_ADD, value(net, "bias", sdlf_shape(COLUMNS), SDLF_VALUE_FLOAT), y);
    if (f->relu) y = sdlf_relu(net, y);
    sdlf_output(net, "y", y);
    if (!CHECK_OK(sdlf_model_build(net, 1))) return net;
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *p = sdlf_model_parameter(net, i);
        const float *from = strncmp(p->name, "w", 1) == 0 ? weight : strncmp(p->name, "b", 1) == 0 ? bias : scales;
        memcpy(p->value.data, from, (size_t)sdlf_tensor_bytes(&p->value));
    }
    return net;
}

/* Returns the number of steps. */
static int run(sdlf_model *net, sdlf_calculator *calculator, int rows, bool no_fusion, float *y)
{
    sdlf_plan *plan = NULL;
    const sdlf_plan_options options = {.batch = rows, .forward = calculator, .no_fusion = no_fusion};
    if (!CHECK_OK(sdlf_plan_create(&plan, net, &options))) return 0;
    CHECK_OK(test_plan_write(plan, "x", x));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
    int steps = sdlf_plan_step_count(plan);
    sdlf_plan_free(plan);
    return steps;
}

/* The fused plan has the bits of its parts. */
static void products_take_their_scale_and_bias(void)
{
    static float fused[ROWS * COLUMNS], parts[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * K; i++) x[i] = (float)(i * 37 % 201) / 100 - 0.7f;
    for (int i = 0; i < K * COLUMNS; i++) weight[i] = (float)(i * 101 % 255 - 127);
    for (int j = 0; j < COLUMNS; j++) scales[j] = 0.01f + 0.001f * (float)j, bias[j] = (float)j / 8 - 2;
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        bool has_operation = calculator->type->kernel[SDLF_INTEGER_MATMUL].run != NULL;
        for (int i = 0; i < 16; i++) {
            form f = {.each = i & 1, .bias = i & 2, .relu = i & 4, .shared = i & 8};
            sdlf_model *net = product_net(&f);
            int steps = run(net, calculator, ROWS, false, fused), all = run(net, calculator, ROWS, true, parts);
            CHECK(memcmp(fused, parts, sizeof fused) == 0);
            CHECK(steps > 0 && steps <= all);
            /* x as bytes, the factor, the product, and the weight as int8; more where the sums are an output */
            if (has_operation && !f.shared) CHECK(steps <= 4);
            if (f.shared) CHECK(steps > 4);
            sdlf_model_free(net);
        }
        sdlf_calculator_close(calculator);
    }
}

/* A single row of sums, which could be mistaken for one value per column. */
static void a_square_is_no_scale(void)
{
    static float fused[COLUMNS], parts[COLUMNS];
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = product_net(&(form){.square = true});
        run(net, calculator, 1, false, fused);
        run(net, calculator, 1, true, parts);
        CHECK(memcmp(fused, parts, sizeof fused) == 0);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

/* An infinity makes the scale one, and sums that are 0 times it NaN. */
static void what_is_no_number_stays_so(void)
{
    static float fused[ROWS * COLUMNS], parts[ROWS * COLUMNS];
    const float before = x[0];
    x[0] = INFINITY;
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        for (int relu = 0; relu < 2; relu++) {
            sdlf_model *net = product_net(&(form){.relu = relu});
            run(net, calculator, ROWS, false, fused);
            run(net, calculator, ROWS, true, parts);
            for (int i = 0; i < ROWS * COLUMNS; i++) CHECK(isnan(fused[i]) == isnan(parts[i]));
            sdlf_model_free(net);
        }
        sdlf_calculator_close(calculator);
    }
    x[0] = before;
}

int main(void)
{
    RUN(every_calculator_has_the_same_bytes);
    RUN(others_put_it_together);
    RUN(products_take_their_scale_and_bias);
    RUN(a_square_is_no_scale);
    RUN(what_is_no_number_stays_so);
    return test_summary();
}
