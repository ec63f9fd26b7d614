/* SPDX-License-Identifier: MIT */
/* Deep networks: the cost of creating a plan grows linearly with its steps, not quadratically. Counted, not timed. */
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/model_internal.h"
#include "framework/plan/plan_internal.h"
#include "testing.h"

/* That many blocks of convolution, normalisation, ReLU and addition, as many of a product and ReLU, and as many
 * additions of one value. */
static sdlf_model *deep_net(int blocks)
{
    sdlf_model *net = sdlf_model_create("deep");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(2, 3, 3));
    for (int i = 0; i < blocks; i++) {
        sdlf_conv2d_options same = {.filters = 2, .kernel = {3, 3}, .padding = {1, 1}};
        x = sdlf_add(net, x, sdlf_relu(net, sdlf_batch_norm2d(net, sdlf_conv2d(net, x, &same), NULL)));
    }
    for (int i = 0; i < blocks; i++)
        x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3 + i % 4}));
    const sdlf_node shared = sdlf_value(net, &(sdlf_value_options){.shape = sdlf_shape(1)});
    for (int i = 0; i < blocks; i++) x = sdlf_binary(net, (const sdlf_node[]){x, shared}, 2, NULL);
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* The lookups of a plan, and its steps. */
static int64_t looks_of(int blocks, sdlf_plan_options options, int *steps)
{
    sdlf_model *net = deep_net(blocks);
    sdlf_plan *plan = NULL;
    int64_t looks = 0;
    if (CHECK_OK(sdlf_plan_outline(&plan, net, &options))) {
        looks = plan->looks;
        *steps = plan->step_count;
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return looks;
}

/* The method of a calculator that combines steps when plans run; this one combines none. */
static sdlf_status put_none_together(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count,
                                     int *done)
{
    (void)calculator;
    (void)operations;
    (void)count;
    *done = 0;
    return SDLF_OK;
}

static void count_looks(bool joins)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        const char *name = test_calculator_class_at(index)->name;
        if (joins && strcmp(name, "guarded") != 0) continue; /* others have it in their class */
        CHECK_OK(sdlf_calculator_open(&calculator, name, NULL));
        sdlf_calculator_class joining = *calculator->type;
        joining.run_together = put_none_together;
        if (joins) calculator->type = &joining;
        for (int mode = SDLF_INFER; mode <= SDLF_TRAIN; mode++) {
            sdlf_plan_options options = {.batch = 1, .mode = (sdlf_mode)mode, .forward = calculator};
            options.optimizer = sdlf_sgd(.momentum = 0.9f);
            int few = 0, many = 0;
            int64_t before = looks_of(80, options, &few), after = looks_of(1280, options, &many);
            CHECK(many > 12 * few);
            if (!CHECK(before > 0 && after < 24 * before))
                printf("  %s: %lld looks for %d steps, %lld for %d\n", calculator->type->name, (long long)before, few,
                       (long long)after, many);
        }
        sdlf_calculator_close(calculator);
    }
}

static void looks_grow_with_steps(void)
{
    count_looks(false);
    count_looks(true);
}

/* ---- memory ---- */

/* A plan keeps little per layer: some memory for the layer itself, a step of 3 KB and its buffers. */
static void layers_take_little(void)
{
    enum { BLOCKS = 100, LAYER = 1 << 10, STEP = 4 << 10 };
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    sdlf_model *net = deep_net(BLOCKS);
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_plan *plan = NULL;
    int64_t before = test_live_bytes();
    if (CHECK_OK(sdlf_plan_outline(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        int64_t taken = test_live_bytes() - before, layers = sdlf_model_layer_count(net);
        CHECK(layers == 7 * BLOCKS + 3);
        if (!CHECK(taken < layers * LAYER + (int64_t)plan->step_count * STEP))
            printf("    %lld bytes for %lld layers and %d steps\n", (long long)taken, (long long)layers,
                   plan->step_count);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

/* ---- names, which are found without looking through them all ---- */

static void names_are_numbered(void)
{
    sdlf_model *net = sdlf_model_create("names");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(4));
    char name[32];
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.name = "relu_3", .units = 4});
    for (int i = 1; i <= 200; i++) x = sdlf_relu(net, x);
    CHECK_OK(sdlf_model_status(net));
    CHECK_EQUAL(model_find_layer(net, "image"), 0);
    CHECK_EQUAL(model_find_layer(net, "relu_3"), 1);
    CHECK_EQUAL(model_find_layer(net, "relu"), 2);
    CHECK_EQUAL(model_find_layer(net, "relu_2"), 3);
    for (int number = 4; number <= 201; number++) { /* 3 is in use */
        snprintf(name, sizeof name, "relu_%d", number);
        CHECK_EQUAL(model_find_layer(net, name), number);
    }
    CHECK_EQUAL(model_find_layer(net, "relu_202"), -1);
    CHECK_EQUAL(model_find_layer(net, ""), -1);
    sdlf_model_free(net);
}

static void names_that_are_dropped_are_free_again(void)
{
    sdlf_model *net = sdlf_model_create("dropped");
    CHECK_EQUAL(model_find_layer(net, "relu"), -1);
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(4));
    for (int i = 0; i < 40; i++) sdlf_relu(net, x);
    for (int i = 0; i < 38; i++) model_drop_last(net);
    CHECK_EQUAL(model_find_layer(net, "relu_3"), -1);
    CHECK_EQUAL(model_find_layer(net, "relu_2"), 2);
    sdlf_node again = sdlf_relu(net, x);
    CHECK_EQUAL(model_find_layer(net, "relu_3"), again.layer);
    model_drop_last(net);
    model_drop_last(net);
    model_drop_last(net);
    CHECK_EQUAL(model_find_layer(net, "relu"), -1);
    CHECK_EQUAL(model_find_layer(net, "image"), 0);
    again = sdlf_relu(net, x);
    CHECK_TEXT(sdlf_model_layer(net, again.layer)->name, "relu");
    sdlf_relu(net, x);
    CHECK_EQUAL(model_find_layer(net, "relu_2"), 2);
    sdlf_model_free(net);
}

static void parameters_are_found_by_name(void)
{
    sdlf_model *net = deep_net(3);
    CHECK(sdlf_model_find_parameter(net, "conv2d.weight") == NULL); /* there are none yet */
    CHECK_OK(sdlf_model_build(net, 1));
    for (int i = 0; i < sdlf_model_parameter_count(net); i++)
        CHECK(sdlf_model_find_parameter(net, sdlf_model_parameter(net, i)->name) == sdlf_model_parameter(net, i));
    const char *const none[] = {
        "", ".", "conv2d", "conv2d.", ".weight", "conv2d.weights", "conv2d.w", "relu.weight", "conv2d.weight.weight"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) CHECK(sdlf_model_find_parameter(net, none[i]) == NULL);
    sdlf_model_free(net);
}

int main(void)
{
    RUN(looks_grow_with_steps);
    RUN(layers_take_little);
    RUN(names_are_numbered);
    RUN(names_that_are_dropped_are_free_again);
    RUN(parameters_are_found_by_name);
    return test_summary();
}
