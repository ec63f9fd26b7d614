/* SPDX-License-Identifier: MIT */
/* An inference plan that consumes its model's parameters computes the same as any other and holds no weight twice; the
 * model then reports why it can no longer be used. A plan that cannot be created reports why, and does not damage an
 * intact model. */
#include <stdio.h>
#include <string.h>

#include "framework/plan/networks.h"

#include "testing.h"

enum {
    LAYERS = 6,
    CHANNELS = 48,
    SIDE = 5,
    VALUES = CHANNELS * SIDE * SIDE,
    WEIGHT = CHANNELS * CHANNELS * 9 * 4,
    CLASSES = 7
};

/* Convolutions, every other one normalised; two layers that share an input; a product. */
static sdlf_model *unbuilt(void)
{
    sdlf_conv2d_options same = {.filters = CHANNELS, .kernel = {3, 3}, .padding = {1, 1}};
    sdlf_model *net = sdlf_model_create("mixed");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    for (int i = 0; i < LAYERS - 1; i++) {
        x = sdlf_conv2d(net, x, &same);
        x = sdlf_relu(net, i % 2 ? sdlf_batch_norm2d(net, x, NULL) : x);
    }
    x = sdlf_add(net, x, sdlf_conv2d(net, x, &same));
    sdlf_output(net, "y", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = CLASSES}));
    return net;
}

static sdlf_model *mixed(void)
{
    sdlf_model *net = unbuilt();
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

/* Run the plan on 1 sample of floats or doubles. */
static void run(sdlf_plan *plan, sdlf_dtype dtype, double *y)
{
    static double wide[VALUES];
    static float narrow[VALUES];
    memset(y, 0, CLASSES * sizeof *y);
    fill_random(narrow, VALUES, 7);
    for (int i = 0; i < VALUES; i++) wide[i] = (double)narrow[i];
    CHECK_OK(test_plan_write(plan, "x", dtype == SDLF_FLOAT32 ? (void *)narrow : (void *)wide));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
}

static void compare(sdlf_calculator *calculator, sdlf_dtype dtype)
{
    sdlf_model *net = mixed(), *other = mixed();
    sdlf_plan *taking = NULL, *plain = NULL;
    double found[CLASSES], expected[CLASSES];
    sdlf_plan_options options = {.batch = 1, .forward = calculator, .dtype = dtype};
    CHECK_OK(sdlf_plan_create(&plain, other, &options));
    options.consume_parameters = true;
    CHECK_OK(sdlf_plan_create(&taking, net, &options));
    if (plain != NULL && taking != NULL) {
        run(plain, dtype, expected);
        for (int again = 0; again < 3; again++) {
            run(taking, dtype, found);
            CHECK(memcmp(found, expected, sizeof found) == 0);
            CHECK(sdlf_plan_is_current(taking));
            CHECK_OK(again == 0 ? sdlf_plan_load_parameters(taking) : sdlf_plan_time(taking, 1));
        }
        CHECK_EQUAL(sdlf_plan_memory(taking).arena, sdlf_plan_memory(plain).arena);
        CHECK_EQUAL(sdlf_plan_memory(taking).parameters, sdlf_plan_memory(plain).parameters);
    }
    sdlf_plan_free(taking);
    sdlf_plan_free(plain);
    sdlf_model_free(net);
    sdlf_model_free(other);
}

static void results_are_the_same(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        compare(calculator, SDLF_FLOAT32);
        compare(calculator, SDLF_FLOAT64);
        sdlf_calculator_close(calculator);
    }
}

/* Bytes that a plan needs in addition to its model, minus those that it frees of the model. */
static int64_t bytes_of_plan(sdlf_calculator *calculator, bool taking)
{
    sdlf_model *net = mixed();
    sdlf_plan *plan = NULL;
    int64_t before = test_live_bytes();
    CHECK_OK(sdlf_plan_create(&plan, net,
                              &(sdlf_plan_options){.batch = 1, .forward = calculator, .consume_parameters = taking}));
    int64_t bytes = test_live_bytes() - before;
    CHECK(plan == NULL || sdlf_plan_memory(plan).arena >= LAYERS * WEIGHT); /* all weights, prepacked */
    const sdlf_parameter *bias = sdlf_model_find_parameter(net, "conv2d.bias");
    const sdlf_parameter *weight = sdlf_model_find_parameter(net, "conv2d.weight");
    CHECK(bias != NULL && sdlf_tensor_present(&bias->value));
    CHECK(weight != NULL && sdlf_tensor_present(&weight->value) == !taking);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return bytes;
}

static void no_weight_is_there_twice(void)
{
    sdlf_calculator *cpu = test_open("cpu");
    int64_t saved = bytes_of_plan(cpu, false) - bytes_of_plan(cpu, true);
    if (!CHECK(saved > LAYERS * WEIGHT - WEIGHT / 2)) printf("    %lld bytes fewer\n", (long long)saved);
    sdlf_calculator_close(cpu);
}

/* Every function that needs the values reports who has them. */
static void the_model_is_good_for_nothing_else(void)
{
    static const char *const why = "network 'mixed': a plan has taken its parameters";
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = mixed();
    sdlf_plan *plan = NULL, *second = NULL;
    const char *path = test_path("mixed.safetensors");
    sdlf_plan_options options = {.batch = 1, .forward = reference};
    int64_t trainable = sdlf_model_trainable_count(net);
    CHECK_OK(sdlf_model_save(net, path));
    options.consume_parameters = true;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    options.consume_parameters = false;
    CHECK_FAILS(sdlf_model_status(net), SDLF_ERROR_ARGUMENT, why);
    CHECK_FAILS(sdlf_plan_create(&second, net, &options), SDLF_ERROR_ARGUMENT, why);
    CHECK_FAILS(sdlf_model_save(net, test_path("again.safetensors")), SDLF_ERROR_ARGUMENT, why);
    CHECK_FAILS(sdlf_model_load(net, path), SDLF_ERROR_ARGUMENT, why);
    CHECK_FAILS(sdlf_model_build(net, 1), SDLF_ERROR_ARGUMENT, why);
    CHECK_EQUAL(sdlf_model_trainable_count(net), trainable);
    sdlf_model_hash(net);
    sdlf_plan_free(plan);
    CHECK_FAILS(sdlf_model_status(net), SDLF_ERROR_ARGUMENT, why); /* they are not restored */
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static void what_others_use_is_not_taken(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = mixed();
    sdlf_plan *plan = NULL, *taking = NULL;
    double y[CLASSES];
    sdlf_plan_options options = {.batch = 1, .forward = reference};
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    options.consume_parameters = true;
    CHECK_FAILS(sdlf_plan_create(&taking, net, &options), SDLF_ERROR_ARGUMENT, "another plan uses them");
    options.mode = SDLF_TRAIN;
    CHECK_FAILS(sdlf_plan_create(&taking, net, &options), SDLF_ERROR_ARGUMENT, "consume_parameters is for inference");
    CHECK_OK(sdlf_model_status(net));
    if (plan != NULL) run(plan, SDLF_FLOAT32, y);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* ---- plans that cannot be made ---- */

static int count_absent(sdlf_model *net)
{
    int count = 0;
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) count += sdlf_model_parameter(net, i)->value.data == NULL;
    return count;
}

/* Check a failure; the values had that hash before it: the message names the cause, and the model is unchanged or
 * reports that values are lost. Returns whether they are lost. */
static bool check_failed(sdlf_model *net, const char *cause, bool built, uint32_t hash)
{
    bool lost = count_absent(net) > 0;
    CHECK(strstr(sdlf_error_message(), cause) != NULL);
    CHECK(strstr(sdlf_error_message(), "a plan has taken") == NULL);
    CHECK(built || sdlf_model_parameter_count(net) == 0);
    CHECK(lost || sdlf_model_hash(net) == hash);
    if (lost)
        CHECK_FAILS(sdlf_model_status(net), SDLF_ERROR_ARGUMENT, "a plan has taken its parameters");
    else
        CHECK_OK(sdlf_model_status(net));
    return lost;
}

/* Each allocation fails once. A previous plan has created what the calculator keeps for such operations
 * (descriptors). */
static void fail_every_allocation(sdlf_calculator *calculator, bool built)
{
    sdlf_plan_options options = {.batch = 1, .forward = calculator, .consume_parameters = true};
    sdlf_model *first = mixed();
    sdlf_plan *before = NULL;
    CHECK_OK(sdlf_plan_create(&before, first, &options));
    sdlf_plan_free(before);
    sdlf_model_free(first);
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        int64_t live = test_live_allocations();
        sdlf_model *net = built ? mixed() : unbuilt();
        sdlf_plan *plan = NULL;
        uint32_t hash = sdlf_model_hash(net);
        test_fail_allocation(n);
        sdlf_status status = sdlf_plan_create(&plan, net, &options);
        failed = test_allocation_failed();
        test_fail_allocation(0);
        if (status == SDLF_OK)
            CHECK_FAILS(sdlf_model_status(net), SDLF_ERROR_ARGUMENT, "a plan has taken its parameters");
        else if (CHECK_EQUAL(status, SDLF_ERROR_MEMORY))
            check_failed(net, "memory", built, hash);
        CHECK((plan == NULL) == (status != SDLF_OK));
        CHECK(failed || status == SDLF_OK);
        sdlf_plan_free(plan);
        sdlf_model_free(net);
        CHECK_EQUAL(test_live_allocations(), live);
    }
}

static void memory_runs_out(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        fail_every_allocation(calculator, true);
        fail_every_allocation(calculator, false);
        sdlf_calculator_close(calculator);
    }
}

/* Prepacks the weights of convolutions, until it fails. */
static int prepared_until_failure;

static int64_t prepared(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return sdlf_tensor_bytes(&operation->in[1]);
}

static sdlf_status prepare(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    (void)operation;
    return prepared_until_failure-- > 0 ? SDLF_OK : sdlf_fail(SDLF_ERROR_DEVICE, "no more weights");
}

/* The model is lost with its first consumed value, not before; one that the plan would have initialised is intact. */
static void the_plan_fails_midway(void)
{
    sdlf_calculator *reference = test_open("reference");
    const sdlf_calculator_class *type = reference->type;
    sdlf_calculator_class preparing = *type;
    preparing.kernel[SDLF_CONV2D_FORWARD].prepared = prepared;
    preparing.kernel[SDLF_CONV2D_FORWARD].prepare = prepare;
    reference->type = &preparing;
    sdlf_plan_options options = {.batch = 1, .forward = reference, .consume_parameters = true};
    for (int built = 0; built < 2; built++) {
        for (int count = 0; count < LAYERS; count++) {
            sdlf_model *net = built ? mixed() : unbuilt();
            sdlf_plan *plan = NULL;
            uint32_t hash = sdlf_model_hash(net);
            prepared_until_failure = count;
            CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_DEVICE, "no more weights");
            bool lost = check_failed(net, "no more weights", built, hash);
            CHECK_EQUAL(lost, built && count > 0);
            prepared_until_failure = LAYERS;
            if (!lost) CHECK_OK(sdlf_plan_create(&plan, net, &options));
            sdlf_plan_free(plan);
            sdlf_model_free(net);
        }
    }
    reference->type = type;
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(results_are_the_same);
    RUN(no_weight_is_there_twice);
    RUN(the_model_is_good_for_nothing_else);
    RUN(what_others_use_is_not_taken);
    RUN(memory_runs_out);
    RUN(the_plan_fails_midway);
    return test_summary();
}
