/* SPDX-License-Identifier: MIT */
/* Training plans with channels-last activations in the plan's own type: on `cpu`, training proceeds as on `reference`,
 * and every convolution, normalisation and pooling, forward and backward, is channels last; if these are not most of
 * the computation, nothing is. */
#include <stdio.h>

#include "framework/plan/layouts/networks.h"
#include "testing.h"

enum { CLASSES = 5, STEPS = 8, SAMPLES = 4, WIDTH = 32 };

/* The variant of the network: `wide` has a product of rows with most of the FLOPs. */
typedef struct kind {
    bool wide;
    int filters;
} kind;

/* Convolutions of three kernels (Winograd, implicit GEMM with strides, depthwise), a residual connection, both
 * poolings. */
static sdlf_model *network(kind of)
{
    sdlf_model *net = sdlf_model_create("trained");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_relu(net, sdlf_batch_norm2d(net, conv(net, x, "stem", of.filters, 3, 1), NULL));
    sdlf_node y = sdlf_batch_norm2d(net, conv(net, x, "body", of.filters, 3, 1), NULL);
    x = sdlf_relu(net, sdlf_add(net, y, x));
    x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {3, 3}, .stride = {2, 2}});
    x = sdlf_relu6(net, conv(net, x, "depthwise", of.filters, 3, of.filters));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = of.filters, .kernel = {3, 3}, .stride = {2, 2}});
    sdlf_node rows = sdlf_global_avg_pool2d(net, x);
    if (of.wide) rows = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 16384});
    rows = sdlf_fully_connected(net, rows, &(sdlf_fully_connected_options){.units = CLASSES});
    sdlf_output(net, "class", sdlf_softmax(net, rows));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

typedef struct training {
    double loss[STEPS];
    int last[SDLF_OPERATION_COUNT], all[SDLF_OPERATION_COUNT]; /* steps of each kind: channels last; in all */
    int rows;                                                  /* normalisations of rows of channels */
} training;

static void look_at(const sdlf_plan *plan, training *seen)
{
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        bool norm = op->kind == SDLF_BATCH_NORM2D_FORWARD || op->kind == SDLF_BATCH_NORM2D_BACKWARD;
        seen->all[op->kind]++;
        seen->last[op->kind] += sdlf_operation_is_channels_last(op);
        seen->rows += norm && op->in[0].shape.rank == 2;
        CHECK_OK(sdlf_operation_check(op));
        CHECK(sdlf_calculator_supports(plan->steps[i].calculator, op));
    }
}

/* Train repeatedly on the same images. */
static void train(kind of, const sdlf_plan_options *options, training *seen)
{
    static float image[SAMPLES * CHANNELS * SIDE * SIDE];
    static double wide[SAMPLES * CHANNELS * SIDE * SIDE];
    const int32_t labels[SAMPLES] = {0, 3, 1, 4};
    sdlf_model *net = network(of);
    sdlf_plan *plan = NULL;
    fill_random(image, SAMPLES * CHANNELS * SIDE * SIDE, 7);
    for (int i = 0; i < SAMPLES * CHANNELS * SIDE * SIDE; i++) wide[i] = (double)image[i];
    *seen = (training){.rows = 0};
    CHECK_OK(sdlf_plan_create(&plan, net, options));
    for (int step = 0; step < STEPS && plan != NULL; step++) {
        sdlf_metrics metrics = {0};
        bool doubles = options->dtype == SDLF_FLOAT64;
        CHECK_OK(test_plan_write(plan, "image", doubles ? (const void *)wide : image));
        CHECK_OK(test_plan_write(plan, "labels", labels));
        CHECK_OK(sdlf_plan_step(plan, 0.02f));
        CHECK_OK(sdlf_plan_metrics(plan, &metrics));
        CHECK_OK(sdlf_plan_clear_metrics(plan));
        seen->loss[step] = metrics.loss_sum / metrics.samples;
    }
    if (plan != NULL) look_at(plan, seen);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

static void compare(sdlf_dtype dtype, double tolerance)
{
    const sdlf_operation_kind turned[] = {SDLF_CONV2D_FORWARD,
                                          SDLF_CONV2D_BACKWARD_INPUT,
                                          SDLF_CONV2D_BACKWARD_WEIGHTS,
                                          SDLF_MAX_POOL2D_FORWARD,
                                          SDLF_MAX_POOL2D_BACKWARD,
                                          SDLF_GLOBAL_AVG_POOL2D_FORWARD,
                                          SDLF_GLOBAL_AVG_POOL2D_BACKWARD};
    static training exact, found;
    sdlf_calculator *reference = NULL, *cpu = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    sdlf_plan_options options = {.mode = SDLF_TRAIN,
                                 .batch = SAMPLES,
                                 .dtype = dtype,
                                 .forward = reference,
                                 .no_fusion = true,
                                 .optimizer = sdlf_sgd(.momentum = 0.5f)};
    train((kind){.filters = WIDTH}, &options, &exact);
    options.forward = cpu;
    options.no_fusion = false;
    train((kind){.filters = WIDTH}, &options, &found);
    for (int i = 0; i < STEPS; i++) CHECK_CLOSE(found.loss[i], exact.loss[i], tolerance);
    CHECK(exact.loss[STEPS - 1] < 0.9 * exact.loss[0]);
    for (size_t i = 0; i < sizeof turned / sizeof turned[0]; i++) {
        CHECK_EQUAL(exact.last[turned[i]], 0);
        CHECK(found.all[turned[i]] > 0 && found.all[turned[i]] == exact.all[turned[i]]);
        if (!CHECK_EQUAL(found.last[turned[i]], found.all[turned[i]]))
            printf("    kind %d in %s\n", (int)turned[i], sdlf_dtype_name(dtype));
    }
    CHECK_EQUAL(found.rows, 4);
    sdlf_calculator_close(reference);
    sdlf_calculator_close(cpu);
}

static void training_goes_as_on_reference(void)
{
    compare(SDLF_FLOAT32, 2e-4);
    compare(SDLF_FLOAT64, 1e-10);
}

/* Algorithms are benchmarked for row-major convolutions; those that change layout are left to the calculator, and the
 * choices do not revert layouts. */
static void raced_algorithms_change_nothing(void)
{
    static training own, raced;
    sdlf_calculator *cpu = NULL;
    sdlf_choices *choices = sdlf_choices_create();
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    sdlf_plan_options options = {
        .mode = SDLF_TRAIN, .batch = SAMPLES, .forward = cpu, .optimizer = sdlf_sgd(.momentum = 0.5f)};
    for (int wide = 0; wide <= 1; wide++) {
        options.choices = NULL;
        train((kind){.filters = WIDTH, .wide = wide}, &options, &own);
        options.choices = choices;
        train((kind){.filters = WIDTH, .wide = wide}, &options, &raced);
        for (int i = 0; i < STEPS; i++) CHECK_CLOSE(raced.loss[i], own.loss[i], 2e-3 * own.loss[i]);
        for (int k = 0; k < SDLF_OPERATION_COUNT; k++)
            if (!CHECK_EQUAL(raced.last[k], own.last[k])) printf("    kind %d\n", k);
    }
    sdlf_choices_free(choices);
    sdlf_calculator_close(cpu);
}

static void nothing_turns_where_it_is_not_most_of_the_work(void)
{
    static training seen;
    const kind kinds[] = {{.filters = 3},
                          {.filters = WIDTH, .wide = true}}; /* fewer filters than lanes; a large product */
    sdlf_calculator *cpu = NULL;
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    sdlf_plan_options options = {
        .mode = SDLF_TRAIN, .batch = SAMPLES, .forward = cpu, .optimizer = sdlf_sgd(.momentum = 0.5f)};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        train(kinds[i], &options, &seen);
        for (int k = 0; k < SDLF_OPERATION_COUNT; k++) CHECK_EQUAL(seen.last[k], 0);
        CHECK_EQUAL(seen.rows, 0);
    }
    sdlf_calculator_close(cpu);
}

int main(void)
{
    RUN(training_goes_as_on_reference);
    RUN(raced_algorithms_change_nothing);
    RUN(nothing_turns_where_it_is_not_most_of_the_work);
    return test_summary();
}
