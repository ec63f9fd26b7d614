/* SPDX-License-Identifier: MIT */
/* Copies from pinned memory, for which the host does not wait: the mock device reads the memory as late as it may. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 64, SIDE = 784 }; /* an arena that is worth pinning */

/* h = tanh(x); y = sigmoid(h); z = relu(h), which may reuse the memory of h; y + z. */
static sdlf_model *forked(void)
{
    sdlf_model *net = sdlf_model_create("forked");
    sdlf_node h = sdlf_tanh(net, sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(SIDE)));
    sdlf_node y = sdlf_sigmoid(net, h), z = sdlf_relu(net, h);
    sdlf_output(net, "sum", sdlf_add(net, y, z));
    return net;
}

/* The device has not yet read h when the host overwrites it with z. */
static void the_host_waits_before_it_writes(void)
{
    sdlf_calculator *host = test_open("reference"), *device = test_open("guarded");
    sdlf_model *net = forked();
    float *x = calloc(BATCH * SIDE, sizeof *x), *sum[2];
    fill_random(x, BATCH * SIDE, 5);
    for (int on_device = 0; on_device < 2; on_device++) {
        const sdlf_placement sigmoid = {.layer = "sigmoid", .forward = device};
        sdlf_plan *plan = NULL;
        sum[on_device] = calloc(BATCH * SIDE, sizeof *x);
        CHECK_OK(sdlf_plan_create(&plan, net,
                                  &(sdlf_plan_options){.batch = BATCH,
                                                       .forward = host,
                                                       .placement = &sigmoid,
                                                       .placement_count = on_device,
                                                       .no_fusion = true}));
        for (int i = 0; i < 3; i++) {
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
        }
        CHECK_OK(test_plan_read(plan, "sum", sum[on_device]));
        sdlf_plan_free(plan);
    }
    CHECK(memcmp(sum[0], sum[1], BATCH * SIDE * sizeof *x) == 0);
    free(sum[0]);
    free(sum[1]);
    free(x);
    sdlf_model_free(net);
    sdlf_calculator_close(device);
    sdlf_calculator_close(host);
}

/* 784-96-10, whose first weights are worth pinning. */
static sdlf_model *two_layers(void)
{
    sdlf_model *net = sdlf_model_create("two_layers");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(SIDE));
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 96}));
    sdlf_output(net, "class", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 10}));
    return net;
}

/* Three steps; a second plan of the same model, with the same memory pinned again, runs every other step. */
static uint32_t train(sdlf_calculator *forward, sdlf_calculator *backward)
{
    sdlf_model *net = two_layers();
    sdlf_plan *plan[2] = {NULL};
    float *x = calloc(BATCH * SIDE, sizeof *x);
    int32_t labels[BATCH];
    fill_random(x, BATCH * SIDE, 6);
    for (int i = 0; i < BATCH; i++) labels[i] = i % 10;
    sdlf_plan_options options = {.batch = BATCH,
                                 .mode = SDLF_TRAIN,
                                 .forward = forward,
                                 .backward = backward,
                                 .optimizer = sdlf_sgd(.momentum = 0.9f),
                                 .no_fusion = true};
    CHECK_OK(sdlf_plan_create(&plan[0], net, &options));
    options.batch = BATCH / 2;
    CHECK_OK(sdlf_plan_create(&plan[1], net, &options));
    for (int i = 0; i < 4 && plan[1] != NULL; i++) {
        CHECK_OK(test_plan_write(plan[i % 2], "x", x));
        CHECK_OK(test_plan_write(plan[i % 2], "labels", labels));
        CHECK_OK(sdlf_plan_step(plan[i % 2], 0.05f));
    }
    uint32_t hash = sdlf_model_hash(net);
    sdlf_plan_free(plan[0]);
    if (plan[1] != NULL) CHECK_OK(sdlf_plan_step(plan[1], 0.05f)); /* the other's pins are released */
    sdlf_plan_free(plan[1]);
    CHECK(hash != sdlf_model_hash(net));
    hash ^= sdlf_model_hash(net);
    free(x);
    sdlf_model_free(net);
    return hash;
}

static void parameters_go_up_after_they_are_written(void)
{
    sdlf_calculator *host = test_open("reference"), *device = test_open("guarded");
    CHECK_EQUAL(train(device, host), train(host, host));
    test_guarded_late(SDLF_QUEUE_TRANSFER);
    CHECK_EQUAL(train(device, host), train(host, host));
    test_guarded_late(SDLF_QUEUE_COMPUTE);
    sdlf_calculator_close(device);
    sdlf_calculator_close(host);
}

static sdlf_status make_and_run(void *argument)
{
    sdlf_calculator **calculator = argument;
    sdlf_model *net = two_layers();
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator[1], .backward = calculator[0]});
    if (status == SDLF_OK) status = sdlf_plan_step(plan, 0.1f);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return status;
}

static void nothing_stays_pinned(void)
{
    sdlf_calculator *calculator[2] = {test_open("reference"), test_open("guarded")};
    test_every_allocation("pinned plans", make_and_run, calculator);
    sdlf_calculator_close(calculator[1]);
    sdlf_calculator_close(calculator[0]);
}

int main(void)
{
    RUN(the_host_waits_before_it_writes);
    RUN(parameters_go_up_after_they_are_written);
    RUN(nothing_stays_pinned);
    return test_summary();
}
