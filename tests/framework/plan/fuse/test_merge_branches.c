/* SPDX-License-Identifier: MIT */
/* Inference plans: parallel convolutions of one input, and batch normalisations of it, whose outputs are added become one
 * convolution; others don't. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "framework/plan/branching_inputs.h"
#include "framework/plan/networks.h"
#include "testing.h"

enum { CHANNELS = 6, SIDE = 7, MOST = BATCH * CHANNELS * SIDE * SIDE };
enum { MOST_BRANCHES = 10, IDENTITY = -1 /* as a kernel: a batch normalisation */ };

typedef struct window {
    int kernel[2], stride, dilation, groups; /* padded to the same size at a stride of 1 */
} window;

#define SQUARE(size)                                                                                                   \
    {                                                                                                                  \
        {size, size}, 1, 1, 1                                                                                          \
    }
#define NORM                                                                                                           \
    {                                                                                                                  \
        {IDENTITY, IDENTITY}, 1, 1, 1                                                                                  \
    }

typedef struct example {
    const char *name;
    window branch[MOST_BRANCHES]; /* ended by a kernel of 0 */
    int convolutions;             /* left in the plan */
    bool norms;                   /* a normalisation after each convolution */
} example;

static const example examples[] = {
    {"3x3 and 1x1", {SQUARE(3), SQUARE(1)}, 1, false},
    {"1x1 and 3x3, normalised", {SQUARE(1), SQUARE(3)}, 1, true},
    {"3x3, 1x1 and identity", {SQUARE(3), SQUARE(1), NORM}, 1, true},
    {"identity and 1x1, then 5x5", {NORM, SQUARE(1), SQUARE(5)}, 1, true},
    {"identity and depthwise 3x3", {NORM, {{3, 3}, 1, 1, CHANNELS}}, 1, false},
    {"identity and three groups", {{{3, 3}, 1, 1, 3}, NORM}, 1, true},
    {"two of 3x3", {SQUARE(3), SQUARE(3)}, 1, false},
    {"5x3, 1x3 and 3x1", {{{5, 3}, 1, 1, 1}, {{1, 3}, 1, 1, 1}, {{3, 1}, 1, 1, 1}}, 1, false},
    {"4x2, 3x1 and identity", {{{4, 2}, 1, 1, 1}, {{3, 1}, 1, 1, 1}, NORM}, 1, true},
    {"stride 2", {{{5, 5}, 2, 1, 1}, {{3, 3}, 2, 1, 1}, {{1, 1}, 2, 1, 1}}, 1, true},
    {"dilated 3x3 and 1x1", {{{3, 3}, 1, 2, 1}, SQUARE(1)}, 1, false},
    {"dilated 5x5 and 3x3", {{{5, 5}, 1, 2, 1}, {{3, 3}, 1, 2, 1}}, 1, false},
    {"eight", {SQUARE(3), SQUARE(1), SQUARE(1), SQUARE(1), SQUARE(1), SQUARE(1), SQUARE(1), NORM}, 1, true},
    {"nine", {NORM, SQUARE(3), NORM, NORM, NORM, NORM, NORM, NORM, SQUARE(1)}, 2, false},
    {"3x1 and 1x3", {{{3, 1}, 1, 1, 1}, {{1, 3}, 1, 1, 1}}, 2, false},
    {"3x3 of two dilations", {{{3, 3}, 1, 2, 1}, SQUARE(3)}, 2, false},
    {"taps between those of a dilated 5x5", {{{5, 5}, 1, 2, 1}, SQUARE(3)}, 2, false},
    {"other groups", {{{3, 3}, 1, 1, 2}, SQUARE(1)}, 2, false},
    {"identities alone", {NORM, NORM}, 0, false},
};

/* The sum of all branches, from left to right, and its ReLU. `variant` 1: the second branch has another input; 2: the sum's first term
 * is read twice. */
static sdlf_model *branches(const example *e, int variant)
{
    sdlf_model *net = sdlf_model_create("branches");
    sdlf_node image = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE)), sum = {0}, first = {0};
    for (int i = 0; i < MOST_BRANCHES && e->branch[i].kernel[0] != 0; i++) {
        const window *w = &e->branch[i];
        sdlf_node x = variant == 1 && i == 1 ? sdlf_relu(net, image) : image;
        if (w->kernel[0] != IDENTITY)
            x = sdlf_conv2d(net, x,
                            &(sdlf_conv2d_options){
                                .filters = CHANNELS,
                                .kernel = {w->kernel[0], w->kernel[1]},
                                .padding = {(w->kernel[0] - 1) / 2 * w->dilation, (w->kernel[1] - 1) / 2 * w->dilation},
                                .padding_extra = {(w->kernel[0] - 1) % 2, (w->kernel[1] - 1) % 2},
                                .stride = {w->stride, w->stride},
                                .dilation = {w->dilation, w->dilation},
                                .groups = w->groups,
                                .no_bias = i == 1});
        if (w->kernel[0] == IDENTITY || e->norms) x = sdlf_batch_norm2d(net, x, NULL);
        sum = i > 0 ? sdlf_add(net, sum, x) : x;
        if (i == 0) first = x;
    }
    sum = sdlf_relu(net, sum);
    sdlf_output(net, "y", variant == 2 ? sdlf_add(net, sum, first) : sum);
    CHECK_OK(sdlf_model_build(net, 3));
    return net;
}

static void fill(sdlf_model *net, uint64_t seed)
{
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        const int count = (int)sdlf_tensor_count(&parameter->value);
        float *value = parameter->value.data;
        fill_random(value, count, seed + (uint64_t)i);
        for (int k = 0; k < count && strstr(parameter->name, "var") != NULL; k++) value[k] = fabsf(value[k]) + 0.5f;
    }
}

static int run(sdlf_plan *plan, sdlf_dtype dtype, double *result)
{
    static float image[MOST];
    static double bytes[MOST];
    sdlf_binding y = {0};
    fill_random(image, MOST, 8);
    CHECK_OK(sdlf_plan_write_converted(plan, "image", image, SDLF_FLOAT32, MOST));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(sdlf_plan_output(plan, "y", &y));
    CHECK_OK(test_plan_read(plan, "y", bytes));
    const int count = (int)sdlf_tensor_count(&y.tensor);
    sdlf_convert(SDLF_FLOAT64, result, dtype, bytes, count);
    return count;
}

static void check_close(const char *name, const double *found, const double *expected, int count, sdlf_dtype dtype)
{
    int wrong = 0;
    for (int i = 0; i < count; i++)
        wrong += fabs(found[i] - expected[i]) > (dtype == SDLF_FLOAT32 ? 2e-5 : 1e-13) * (1 + fabs(expected[i]));
    if (!CHECK(count > 0 && wrong == 0)) printf("    %s: %d of %d elements differ\n", name, wrong, count);
}

/* The merged weights follow the model's when these change, and are right if the plan takes the model's over. */
static void check_merged(const char *calculator_name, const example *e, int variant, int convolutions, sdlf_dtype dtype)
{
    static double expected[MOST], found[MOST];
    sdlf_calculator *calculator = test_open(calculator_name);
    sdlf_model *net = branches(e, variant);
    sdlf_plan_options options = {.batch = BATCH, .forward = calculator, .dtype = dtype};
    sdlf_plan *plan = NULL, *parts = NULL;
    fill(net, 20);
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    options.no_fusion = true;
    CHECK_OK(sdlf_plan_create(&parts, net, &options));
    if (!CHECK_EQUAL(count_steps(plan, "conv2d_forward"), convolutions)) printf("    %s\n", e->name);
    for (int round = 0; round < 2; round++) {
        check_close(e->name, found, expected, run(plan, dtype, found) == run(parts, dtype, expected) ? MOST / 9 : 0,
                    dtype);
        fill(net, 50);
        CHECK_OK(sdlf_plan_load_parameters(plan));
        CHECK_OK(sdlf_plan_load_parameters(parts));
    }
    const int count = run(parts, dtype, expected);
    sdlf_plan_free(plan);
    sdlf_plan_free(parts);
    options.no_fusion = false;
    options.consume_parameters = true;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_EQUAL(run(plan, dtype, found), count);
    check_close(e->name, found, expected, count, dtype);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

static void sums_of_convolutions_are_convolutions(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++)
        for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
            for (int d = 0; d < 2; d++)
                check_merged(test_calculator_class_at(c)->name, &examples[i], 0, examples[i].convolutions,
                             d ? SDLF_FLOAT64 : SDLF_FLOAT32);
}

static void other_sums_stay(void)
{
    check_merged("cpu", &examples[0], 1, 2, SDLF_FLOAT64); /* another input */
    check_merged("cpu", &examples[0], 2, 2, SDLF_FLOAT64); /* a branch that is read twice */
}

int main(void)
{
    RUN(sums_of_convolutions_are_convolutions);
    RUN(other_sums_stay);
    return test_summary();
}
