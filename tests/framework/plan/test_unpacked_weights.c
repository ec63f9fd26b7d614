/* SPDX-License-Identifier: MIT */
/* Weights that are derived for a plan and then prepacked for a kernel are not kept in both forms: besides the prepacked
 * weights, the plan allocates space for only one of them, and computes the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "framework/plan/passes.h"

#include "testing.h"

enum { LAYERS = 6, CHANNELS = 48, SIDE = 5, VALUES = CHANNELS * SIDE * SIDE, WEIGHT = CHANNELS * CHANNELS * 9 };

/* Convolutions, each normalised; the last two share nothing but their input. */
static sdlf_model *normalised(void)
{
    sdlf_conv2d_options same = {.filters = CHANNELS, .kernel = {3, 3}, .padding = {1, 1}, .no_bias = true};
    sdlf_model *net = sdlf_model_create("normalised");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    for (int i = 0; i < LAYERS - 1; i++) x = sdlf_relu(net, sdlf_batch_norm2d(net, sdlf_conv2d(net, x, &same), NULL));
    sdlf_output(net, "y", sdlf_add(net, x, sdlf_batch_norm2d(net, sdlf_conv2d(net, x, &same), NULL)));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

/* Change the values of all parameters, so that derived weights are recomputed. */
static void change(sdlf_model *net, uint64_t seed)
{
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        float *value = parameter->value.data;
        int64_t count = sdlf_tensor_count(&parameter->value);
        bool weight = strstr(parameter->name, "conv2d") != NULL, variance = strstr(parameter->name, "var") != NULL;
        fill_random(value, count, seed + (uint64_t)i);
        for (int64_t e = 0; e < count; e++)
            value[e] = variance ? 1.5f + value[e] : weight ? 0.05f * value[e] : value[e];
    }
}

static void run(sdlf_plan *plan, sdlf_dtype dtype, double *y)
{
    static double wide[VALUES];
    static float narrow[VALUES];
    fill_random(narrow, VALUES, 7);
    for (int i = 0; i < VALUES; i++) wide[i] = (double)narrow[i];
    CHECK_OK(sdlf_plan_load_parameters(plan));
    for (int again = 0; again < 2; again++) { /* the first run overwrites the space */
        CHECK_OK(test_plan_write(plan, "x", dtype == SDLF_FLOAT32 ? (void *)narrow : (void *)wide));
        CHECK_OK(sdlf_plan_forward(plan));
    }
    CHECK_OK(test_plan_read(plan, "y", dtype == SDLF_FLOAT32 ? (void *)narrow : (void *)y));
    for (int i = 0; i < VALUES && dtype == SDLF_FLOAT32; i++) y[i] = (double)narrow[i];
}

static void weights_stay_in_one_form(void)
{
    sdlf_calculator *cpu = test_open("cpu"), *reference = test_open("reference");
    for (int wide = 0; wide < 2; wide++) {
        static double found[VALUES], expected[VALUES];
        sdlf_dtype dtype = wide ? SDLF_FLOAT64 : SDLF_FLOAT32;
        sdlf_model *net = normalised();
        sdlf_plan *plan = NULL, *plain = NULL;
        CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = cpu, .dtype = dtype}));
        CHECK_OK(sdlf_plan_create(
            &plain, net, &(sdlf_plan_options){.batch = 1, .forward = reference, .dtype = dtype, .no_fusion = true}));
        for (uint64_t seed = 40; seed <= 80 && plan != NULL && plain != NULL; seed += 40) {
            change(net, seed);
            run(plan, dtype, found);
            run(plain, dtype, expected);
            CHECK(isfinite(expected[0]));
            for (int i = 0; i < VALUES; i++)
                CHECK_CLOSE(found[i], expected[i], (wide ? 1e-12 : 2e-5) * (1 + fabs(expected[i])));
        }
        if (plan != NULL) {
            sdlf_memory_info memory = sdlf_plan_memory(plan);
            int64_t weight = WEIGHT * (wide ? 8 : 4);
            CHECK(memory.arena >= LAYERS * weight);
            if (!CHECK(memory.arena < (LAYERS + 2) * weight))
                printf("    %lld bytes for %d weights of %lld\n", (long long)memory.arena, LAYERS, (long long)weight);
        }
        sdlf_plan_free(plan);
        sdlf_plan_free(plain);
        sdlf_model_free(net);
    }
    sdlf_calculator_close(reference);
    sdlf_calculator_close(cpu);
}

/* Weights of several sizes share the space, with the largest first, in the middle and last. */
static void the_room_holds_the_largest(void)
{
    static const int orders[][3] = {{7, 3, 1}, {1, 7, 3}, {1, 3, 7}};
    sdlf_calculator *cpu = test_open("cpu"), *reference = test_open("reference");
    for (int i = 0; i < 3; i++) {
        static double found[VALUES], expected[VALUES];
        sdlf_plan *plan = NULL, *plain = NULL;
        sdlf_model *net = sdlf_model_create("sizes");
        sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
        for (int j = 0; j < 3; j++) {
            int k = orders[i][j];
            x = sdlf_conv2d(net, x,
                            &(sdlf_conv2d_options){.filters = CHANNELS, .kernel = {k, k}, .padding = {k / 2, k / 2}});
            x = sdlf_relu(net, sdlf_batch_norm2d(net, x, NULL));
        }
        sdlf_output(net, "y", x);
        CHECK_OK(sdlf_model_build(net, 1));
        change(net, 40);
        CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = cpu}));
        CHECK_OK(
            sdlf_plan_create(&plain, net, &(sdlf_plan_options){.batch = 1, .forward = reference, .no_fusion = true}));
        if (plan != NULL && plain != NULL) {
            run(plan, SDLF_FLOAT32, found);
            run(plain, SDLF_FLOAT32, expected);
        }
        for (int e = 0; e < VALUES; e++) CHECK_CLOSE(found[e], expected[e], 2e-5 * (1 + fabs(expected[e])));
        sdlf_plan_free(plan);
        sdlf_plan_free(plain);
        sdlf_model_free(net);
    }
    sdlf_calculator_close(reference);
    sdlf_calculator_close(cpu);
}

/* The largest weights come first, equal ones in order; each step that has weights occurs once. */
static void the_largest_are_made_ready_first(void)
{
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_model *net = sdlf_model_create("sizes");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(16, SIDE, SIDE));
    static const int filters[] = {32, 64, 32, 64, 128, 16};
    for (int i = 0; i < 6; i++)
        x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = filters[i], .kernel = {3, 3}, .padding = {1, 1}});
    sdlf_output(net, "y", x);
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_plan *plan = NULL;
    int *steps = NULL, count = 0, present = 0;
    if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = cpu})) &&
        CHECK_OK(plan_order_preparing(plan, &steps, &count))) {
        for (int i = 0; i < plan->step_count; i++) present += sdlf_tensor_present(&plan->steps[i].operation.prepared);
        CHECK(count == present && count == 6);
        for (int i = 0; i < count; i++) {
            CHECK(sdlf_tensor_present(&plan->steps[steps[i]].operation.prepared));
            if (i == 0) continue;
            int64_t before = sdlf_tensor_bytes(&plan->steps[steps[i - 1]].operation.in[1]);
            int64_t now = sdlf_tensor_bytes(&plan->steps[steps[i]].operation.in[1]);
            CHECK(before > now || (before == now && steps[i - 1] < steps[i]));
        }
    }
    free(steps);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

int main(void)
{
    RUN(weights_stay_in_one_form);
    RUN(the_room_holds_the_largest);
    RUN(the_largest_are_made_ready_first);
    return test_summary();
}
