/* SPDX-License-Identifier: MIT */
/* Inference plans with channels-last activations: the same results as row-major ones, through layers that support the
 * layout and layers that do not. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "framework/plan/layouts/networks.h"
#include "testing.h"

/* Convolutions, and between them pooling, a concatenation, a normalisation before a convolution, additions, activations
 * that are not in an epilogue, scaling by channel, a slice of the channels, and products that require rows. */
static sdlf_model *followers(void)
{
    sdlf_model *net = sdlf_model_create("followers");
    sdlf_pool2d_options halve = {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    sdlf_node image = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    sdlf_node stem = sdlf_relu(net, conv(net, image, "stem", 20, 3, 1));
    sdlf_node largest = sdlf_max_pool2d(net, stem, &halve), mean = sdlf_avg_pool2d(net, stem, &halve);
    sdlf_node branch = conv(net, largest, "branch", 5, 1, 1);
    sdlf_node joined = sdlf_concat(net, (sdlf_node[]){largest, mean, branch}, 3, NULL);
    sdlf_node small =
        sdlf_resize(net, image, &(sdlf_resize_options){.sizes = sdlf_shape(7, 7)}); /* row-major, before the others */
    sdlf_node mixed = sdlf_concat(net, (sdlf_node[]){small, branch}, 2, NULL);
    sdlf_node normed = sdlf_relu(net, sdlf_batch_norm2d(net, joined, NULL));
    sdlf_node sum = sdlf_add(net, conv(net, normed, "wide", 45, 3, 1), joined);
    sdlf_node gate = sdlf_sigmoid(net, conv(net, sdlf_global_avg_pool2d(net, sum), "gate", 45, 1, 1));
    sdlf_node scaled =
        sdlf_binary(net, (sdlf_node[]){sum, gate}, 2, &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY});
    sdlf_node deep = conv(net, scaled, "deep", 45, 3, 45);
    sdlf_node last = sdlf_tanh(net, sdlf_add(net, deep, scaled));
    sdlf_slice_options some = {.axes = sdlf_shape(1), .start = sdlf_shape(7), .end = sdlf_shape(30)};
    sdlf_node part = conv(net, sdlf_slice(net, last, &some), "part", 9, 3, 1);
    sdlf_output(net, "picture", last);
    sdlf_output(net, "rows", sdlf_fully_connected(net, part, &(sdlf_fully_connected_options){.units = 7}));
    sdlf_output(net, "mixed", conv(net, mixed, "after", 11, 3, 1));
    sdlf_output(net, "means", sdlf_global_avg_pool2d(net, last));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static const char *const outputs[] = {"picture", "rows", "means", "mixed"};
enum { OUTPUTS = sizeof outputs / sizeof outputs[0] };

typedef struct results {
    double value[OUTPUTS][MOST];
    int64_t count[OUTPUTS];
} results;

static void run(sdlf_plan *plan, sdlf_dtype dtype, results *found)
{
    static float image[IMAGE], values[MOST];
    static double wide[IMAGE];
    fill_random(image, IMAGE, 5);
    for (int i = 0; i < IMAGE; i++) wide[i] = (double)image[i];
    CHECK_OK(test_plan_write(plan, "image", dtype == SDLF_FLOAT32 ? (void *)image : (void *)wide));
    CHECK_OK(sdlf_plan_forward(plan));
    for (int i = 0; i < OUTPUTS; i++) {
        sdlf_binding output;
        CHECK_OK(sdlf_plan_output(plan, outputs[i], &output));
        found->count[i] = sdlf_tensor_count(&output.tensor);
        bool fits = found->count[i] <= MOST;
        CHECK(fits);
        if (!fits) continue;
        CHECK_OK(test_plan_read(plan, outputs[i], dtype == SDLF_FLOAT32 ? (void *)values : (void *)found->value[i]));
        for (int64_t e = 0; e < found->count[i] && dtype == SDLF_FLOAT32; e++) found->value[i][e] = (double)values[e];
    }
}

static void compare(const results *found, const results *expected, double tolerance)
{
    for (int i = 0; i < OUTPUTS; i++) {
        CHECK_EQUAL(found->count[i], expected->count[i]);
        CHECK(isfinite(expected->value[i][0])); /* NaN would equal NaN */
        for (int64_t e = 0; e < found->count[i]; e++)
            CHECK_CLOSE(found->value[i][e], expected->value[i][e], tolerance * (1 + fabs(expected->value[i][e])));
    }
}

/* The network on reference, one operation per layer. */
static void expect(sdlf_model *net, results *expected)
{
    sdlf_calculator *reference = NULL;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){.batch = BATCH, .dtype = SDLF_FLOAT64, .forward = reference, .no_fusion = true}));
    if (plan != NULL) run(plan, SDLF_FLOAT64, expected);
    sdlf_plan_free(plan);
    sdlf_calculator_close(reference);
}

static void results_are_those_of_rows(void)
{
    static results found, expected;
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        const sdlf_calculator_class *type = test_calculator_class_at(c);
        for (int wide = 0; wide < 2; wide++) {
            sdlf_dtype dtype = wide ? SDLF_FLOAT64 : SDLF_FLOAT32;
            sdlf_calculator *calculator = NULL;
            sdlf_plan *plan = NULL;
            sdlf_model *net = followers();
            fill_parameters(net, 40);
            if (sdlf_calculator_open(&calculator, type->name, NULL) == SDLF_OK) {
                expect(net, &expected);
                CHECK_OK(sdlf_plan_create(&plan, net,
                                          &(sdlf_plan_options){.batch = BATCH, .dtype = dtype, .forward = calculator}));
                if (plan != NULL) {
                    run(plan, dtype, &found);
                    compare(&found, &expected, wide ? 1e-12 : 2e-5);
                }
            }
            sdlf_plan_free(plan);
            sdlf_model_free(net);
            sdlf_calculator_close(calculator);
        }
    }
}

/* On cpu, where convolutions prefer it, all but that of one pixel are channels last, and conversions occur only at the
 * edges: the output image, the rows that the product reads (convolutions of few channels may read a row-major image);
 * and after a concatenation whose first part is row-major. The other copies concatenate (3 and 2) and slice (1).
 * `converted`: whether the convolution after that concatenation needs its image channels last; Winograd's, which pays
 * off with short vectors, does. */
static void check_edges(int converted)
{
    sdlf_calculator *cpu = NULL;
    sdlf_plan *plan = NULL;
    sdlf_model *net = followers();
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = cpu}));
    if (plan != NULL) {
        CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, false), 7);
        CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, true), 6);
        CHECK_EQUAL(count_kind(plan, SDLF_MAX_POOL2D_FORWARD, true), 1);
        CHECK_EQUAL(count_kind(plan, SDLF_AVG_POOL2D_FORWARD, true), 1);
        CHECK_EQUAL(count_kind(plan, SDLF_GLOBAL_AVG_POOL2D_FORWARD, true), 2);
        CHECK_EQUAL(count_kind(plan, SDLF_COPY, false), 2 + 1 + converted + 3 + 2 + 1);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

static void conversions_stand_at_the_edges(void)
{
    static const struct {
        const char *level;
        int converted;
    } levels[] = {{"plain", 1}, {"neon", 1}, {"avx2", 1}, {"avx512", 0}};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (!test_set_level(levels[i].level)) continue;
        printf("    at %s\n", levels[i].level);
        check_edges(levels[i].converted);
    }
    test_set_level(NULL);
}

/* Weights that were prepacked are prepacked again when parameters are loaded. */
static void new_weights_are_taken(void)
{
    static results before, after, expected;
    sdlf_calculator *cpu = NULL;
    sdlf_plan *plan = NULL;
    sdlf_model *net = followers();
    fill_parameters(net, 40);
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = cpu}));
    if (plan != NULL) {
        run(plan, SDLF_FLOAT32, &before);
        fill_parameters(net, 90);
        CHECK_OK(sdlf_plan_load_parameters(plan));
        run(plan, SDLF_FLOAT32, &after);
        expect(net, &expected);
        compare(&after, &expected, 2e-5);
        CHECK(memcmp(before.value[1], after.value[1], sizeof(double) * (size_t)after.count[1]) != 0);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

int main(void)
{
    RUN(results_are_those_of_rows);
    RUN(conversions_stand_at_the_edges);
    RUN(new_weights_are_taken);
    return test_summary();
}
