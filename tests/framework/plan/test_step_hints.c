/* SPDX-License-Identifier: MIT */
/* The hints that inference steps get about their neighbours: the weights that are read next, and whether the previous
 * step matters. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "framework/plan/plan_internal.h"
#include "testing.h"

enum { CHANNELS = 32, SIDE = 8 };

/* A layer, two readers of its output, and one after one of these. */
static sdlf_model *fork_of_two(void)
{
    sdlf_conv2d_options same = {.filters = CHANNELS, .kernel = {3, 3}, .padding = {1, 1}};
    sdlf_conv2d_options down = {.filters = CHANNELS, .kernel = {3, 3}, .padding = {1, 1}, .stride = {2, 2}};
    sdlf_conv2d_options shorter = {.filters = CHANNELS, .kernel = {1, 1}, .stride = {2, 2}};
    sdlf_model *net = sdlf_model_create("fork");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_relu(net, sdlf_conv2d(net, x, &same));
    sdlf_output(net, "a", sdlf_relu(net, sdlf_conv2d(net, x, &down)));
    x = sdlf_relu(net, sdlf_conv2d(net, x, &shorter));
    sdlf_output(net, "b", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 4}));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

/* Exactly one of the steps is independent of the previous one. */
static void apart_are_those_that_share_an_input(void)
{
    sdlf_model *net = fork_of_two();
    sdlf_calculator *reference = NULL;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    int found = 0;
    for (int i = 0; plan != NULL && i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        if (op->before == NULL) continue;
        found++;
        CHECK(i > 0 && op->before == &plan->steps[i - 1].operation);
        CHECK(op->before->in[0].data == op->in[0].data);
    }
    CHECK_EQUAL(found, 1);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* A step that reads more than the output of the previous one, and in reverse: strides are negative. */
static void backwards_is_not_apart(void)
{
    sdlf_model *net = sdlf_model_create("backwards");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(CHANNELS));
    sdlf_node parts[] = {sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_EXP}),
                         sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_NEGATE})};
    sdlf_output(net, "part", parts[1]); /* whose memory nothing else has, then */
    x = sdlf_concat(net, parts, 2, NULL);
    x = sdlf_slice(net, x,
                   &(sdlf_slice_options){.axes = sdlf_shape(1),
                                         .start = sdlf_shape(-1),
                                         .end = sdlf_shape(-2 * CHANNELS - 1),
                                         .step = sdlf_shape(-1)});
    sdlf_output(net, "y", sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_NEGATE}));
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_calculator *reference = NULL;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    int backwards = 0;
    for (int i = 0; plan != NULL && i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        bool reads_backwards = op->in[0].stride[op->in[0].shape.rank - 1] < 0;
        backwards += reads_backwards;
        if (reads_backwards) CHECK(op->before == NULL);
    }
    CHECK_EQUAL(backwards, 1);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static void weights_ahead_are_the_next_that_were_made_ready(void)
{
    sdlf_model *net = fork_of_two();
    sdlf_calculator *cpu = NULL;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = cpu}));
    const void *next = NULL;
    for (int i = plan != NULL ? plan->step_count - 1 : -1; i >= 0; i--) {
        const sdlf_operation *op = &plan->steps[i].operation;
        CHECK(op->ahead.data == next);
        if (sdlf_tensor_present(&op->prepared)) next = op->prepared.data;
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

/* ---- on a GPU, where kernels go by them ---- */

enum { WIDE = 64, PICTURE = 28, NUMBERS = WIDE * PICTURE * PICTURE, RUNS = 20 };

/* The same with enough FLOPs for Tensor Cores to pay off. */
static sdlf_model *wide_fork(void)
{
    sdlf_conv2d_options same = {.filters = WIDE, .kernel = {3, 3}, .padding = {1, 1}};
    sdlf_conv2d_options down = {.filters = 2 * WIDE, .kernel = {3, 3}, .padding = {1, 1}, .stride = {2, 2}};
    sdlf_conv2d_options shorter = {.filters = 2 * WIDE, .kernel = {1, 1}, .stride = {2, 2}};
    sdlf_conv2d_options behind = {.filters = 2 * WIDE, .kernel = {3, 3}, .padding = {1, 1}};
    sdlf_model *net = sdlf_model_create("wide");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(WIDE, PICTURE, PICTURE));
    x = sdlf_relu(net, sdlf_conv2d(net, x, &same));
    sdlf_output(net, "a", sdlf_relu(net, sdlf_conv2d(net, sdlf_relu(net, sdlf_conv2d(net, x, &down)), &behind)));
    sdlf_output(net, "b", sdlf_relu(net, sdlf_conv2d(net, sdlf_relu(net, sdlf_conv2d(net, x, &shorter)), &behind)));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static void compute(sdlf_calculator *calculator, int runs, float (*y)[NUMBERS / 2])
{
    static float x[NUMBERS], again[NUMBERS / 2];
    sdlf_model *net = wide_fork();
    sdlf_plan *plan = NULL;
    fill_random(x, NUMBERS, 3);
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    for (int i = 0; plan != NULL && i < runs; i++) {
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        for (int out = 0; out < 2; out++) {
            CHECK_OK(test_plan_read(plan, out == 0 ? "a" : "b", i == 0 ? y[out] : again));
            if (i > 0) CHECK(memcmp(again, y[out], sizeof again) == 0);
        }
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

/* Every run gives the same values, which match the specification except for the rounding of operands. */
static void results_are_right_on_a_gpu(void)
{
    static float expected[2][NUMBERS / 2], found[2][NUMBERS / 2];
    static const sdlf_math modes[] = {SDLF_MATH_TF32, SDLF_MATH_FP16, SDLF_MATH_BF16};
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    for (int m = 0; m < 3; m++) {
        sdlf_calculator *cuda = NULL;
        if (sdlf_calculator_open(&cuda, "cuda", &(sdlf_calculator_options){.math = modes[m]}) != SDLF_OK) {
            test_skip("no GPU that has the mode");
            break;
        }
        if (m == 0) compute(reference, 1, expected);
        compute(cuda, RUNS, found);
        for (int out = 0; out < 2; out++) {
            double range = 0, worst = 0;
            for (int i = 0; i < NUMBERS / 2; i++) {
                range = fmax(range, fabs((double)expected[out][i]));
                worst = fmax(worst, fabs((double)found[out][i] - (double)expected[out][i]));
            }
            CHECK(worst <= range * (modes[m] == SDLF_MATH_BF16 ? 0.05 : 0.01));
        }
        sdlf_calculator_close(cuda);
    }
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(apart_are_those_that_share_an_input);
    RUN(backwards_is_not_apart);
    RUN(weights_ahead_are_the_next_that_were_made_ready);
    RUN(results_are_right_on_a_gpu);
    return test_summary();
}
