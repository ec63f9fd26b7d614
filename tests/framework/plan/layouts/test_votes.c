/* SPDX-License-Identifier: MIT */
/* Which convolutions become channels last if only some of them prefer it. */
#include <stdio.h>
#include <stdlib.h>

#include "calculators/fusions/conv2d_pool.h"
#include "framework/plan/counting_device.h"
#include "framework/plan/layouts/networks.h"
#include "testing.h"

/* The reference calculator in a separate memory space; convolutions of 8 and more filters prefer channels last. */
static bool likes_many_filters(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return operation->in[1].shape.dim[0] >= 8;
}

static sdlf_fused_slot device_fusions[2]; /* of convolutions with pools */

static sdlf_calculator *make_choosy(void)
{
    sdlf_calculator *device = make_device();
    device_fusions[0] = (sdlf_fused_slot){&sdlf_conv2d_pool_forward_fusion, device_class.kernel[SDLF_FUSED]};
    device_class.fusions = device_fusions;
    sdlf_kernel_slot *slot = &device_class.kernel[SDLF_CONV2D_FORWARD];
    slot->channels_last = true;
    slot->prefers_channels_last = likes_many_filters;
    slot->mixed = device_fusions[0].slot.mixed = false;
    return device;
}

/* A second one, in another memory space. */
static sdlf_calculator *make_second(void)
{
    static sdlf_calculator_class second_class;
    second_class = device_class;
    second_class.name = "second";
    sdlf_calculator *second = calloc(1, second_class.size);
    second->type = &second_class;
    second->space = "second";
    return second;
}

/* A chain of convolutions with these filters, those from index `other` on placed on a second calculator: checks how
 * many are channels last, and how many copies change the layout of activations. */
static void count_turned(const int *filters, int count, int other, int turned, int copies)
{
    char name[8][16];
    sdlf_placement placement[8];
    sdlf_model *net = sdlf_model_create("chain");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    for (int i = 0; i < count; i++) {
        snprintf(name[i], sizeof name[i], "c%d", i);
        x = conv(net, x, name[i], filters[i], 3, 1);
    }
    sdlf_output(net, "last", x);
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_calculator *device = make_choosy(), *second = make_second();
    sdlf_plan *plan = NULL;
    for (int i = other; i < count; i++) placement[i - other] = (sdlf_placement){.layer = name[i], .forward = second};
    CHECK_OK(sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){
            .batch = BATCH, .forward = device, .placement = placement, .placement_count = count - other}));
    if (plan != NULL) {
        CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, false), count);
        CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, true), turned);
        int turns = 0;
        for (int i = 0; i < plan->step_count; i++)
            turns += plan->steps[i].phase != SDLF_PHASE_COPY && plan->steps[i].operation.kind == SDLF_COPY;
        CHECK_EQUAL(turns, copies);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    free(device);
    free(second);
}

/* A convolution before one that prefers channels last changes layout if those that prefer it have half of the FLOPs,
 * else not; after one, it follows in any case. A single one is not worth the conversions. */
static void most_of_the_work_decides_for_all(void)
{
    count_turned((int[]){2, 3, 16, 16}, 4, 4, 4, 2); /* with nearly all FLOPs: all are, with conversions at both ends */
    count_turned((int[]){7, 7, 7, 7, 7, 8, 8}, 7, 7, 2, 2); /* with less than half: only those two */
    count_turned((int[]){7, 7, 8, 7, 8}, 5, 5, 3, 2);       /* the one between them follows */
    count_turned((int[]){2, 3, 64}, 3, 3, 0, 0);            /* only one */
}

/* One calculator's preferences do not affect another's convolutions: neither the share of FLOPs, nor whether there is
 * more than one. */
static void each_calculator_decides_for_itself(void)
{
    count_turned((int[]){7, 7, 7, 7, 8, 8, 64, 64}, 8, 6, 4, 2); /* not the first four */
    count_turned((int[]){2, 64, 64}, 3, 2, 0, 0);                /* one on each */
}

/* In host memory a single convolution is channels last if it computes enough per converted element. */
static void one_convolution_repays_conversions_on_the_host(void)
{
    static const int filters[] = {32, 1};
    for (int i = 0; i < 2; i++) {
        sdlf_calculator *cpu = NULL;
        sdlf_plan *plan = NULL;
        sdlf_model *net = sdlf_model_create("single");
        sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(32, SIDE, SIDE));
        sdlf_output(net, "last", conv(net, x, "c", filters[i], filters[i] == 1 ? 1 : 3, 1));
        CHECK_OK(sdlf_model_build(net, 1));
        CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
        if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = cpu})))
            CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, true), filters[i] > 1);
        sdlf_plan_free(plan);
        sdlf_model_free(net);
        sdlf_calculator_close(cpu);
    }
}

/* ---- convolution and pooling that became neighbours ---- */

static bool takes_last_alone(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return sdlf_operation_is_channels_last(operation);
}

/* Run the network on an image, with or without fusion, and check the number of steps of each kind. */
static void run_pooled(sdlf_model *net, sdlf_calculator *device, int fusion, float *last)
{
    static float image[IMAGE];
    sdlf_plan *plan = NULL;
    fill_random(image, IMAGE, 5);
    CHECK_OK(
        sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = device, .no_fusion = !fusion}));
    if (plan == NULL) return;
    CHECK_EQUAL(count_fused(plan, &sdlf_conv2d_pool_forward_fusion), fusion);
    CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, false), 2 - fusion);
    CHECK_EQUAL(count_kind(plan, SDLF_MAX_POOL2D_FORWARD, false), 2 - fusion);
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "last", last));
    sdlf_plan_free(plan);
}

/* A calculator that fuses a pool into a convolution only for channels last: one pair becomes one operation with the
 * same results; the other stays separate, since the intermediate tensor is an output. */
static void pooling_follows_into_the_convolution(void)
{
    enum { FILTERS = 16, LAST = SIDE / 2 / 2, COUNT = BATCH * FILTERS * LAST * LAST };
    const sdlf_pool2d_options halve = {.window = {2, 2}};
    static const struct {
        int groups;
        bool no_bias;
    } of[] = {{1, false}, {3, false}, {1, true}, {3, true}};
    sdlf_calculator *device = make_choosy();
    device_class.kernel[SDLF_MAX_POOL2D_FORWARD].channels_last = true;
    device_fusions[0].slot.channels_last = true;
    device_fusions[0].slot.supports = takes_last_alone;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        sdlf_model *net = sdlf_model_create("pooled");
        sdlf_conv2d_options first = {.filters = 5 * CHANNELS,
                                     .kernel = {3, 3},
                                     .padding = {1, 1},
                                     .groups = of[i].groups,
                                     .no_bias = of[i].no_bias};
        sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
        x = sdlf_max_pool2d(net, sdlf_relu(net, sdlf_conv2d(net, x, &first)), &halve);
        sdlf_node seen = sdlf_relu(net, conv(net, x, "second", FILTERS, 3, 1));
        sdlf_output(net, "seen", seen);
        sdlf_output(net, "last", sdlf_max_pool2d(net, seen, &halve));
        CHECK_OK(sdlf_model_build(net, 1));
        fill_parameters(net, 40);
        float apart[COUNT] = {0}, fused[COUNT] = {0};
        run_pooled(net, device, 0, apart);
        run_pooled(net, device, 1, fused);
        int positive = 0;
        for (int e = 0; e < COUNT; e++) {
            CHECK_CLOSE((double)fused[e], (double)apart[e], 1e-5);
            positive += apart[e] > 0;
        }
        CHECK(positive > COUNT / 4); /* not only ReLU's zeros are compared */
        sdlf_model_free(net);
    }
    free(device);
}

/* ---- kernels that take both forms at a time ---- */

/* Run the network on an image; the plan has this many copies that change the layout of activations. */
static void run_turning(sdlf_model *net, bool mixed, int copies, float *rows)
{
    static float image[IMAGE];
    sdlf_calculator *device = make_choosy();
    sdlf_plan *plan = NULL;
    device_class.kernel[SDLF_MAX_POOL2D_FORWARD].channels_last = true;
    device_class.kernel[SDLF_CONV2D_FORWARD].mixed = mixed;
    device_fusions[0].slot.mixed = mixed;
    device_fusions[0].slot.supports = takes_last_alone;
    fill_random(image, IMAGE, 5);
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = device}));
    if (plan != NULL) {
        int turns = 0;
        for (int i = 0; i < plan->step_count; i++)
            turns += plan->steps[i].phase != SDLF_PHASE_COPY && plan->steps[i].operation.kind == SDLF_COPY;
        CHECK_EQUAL(turns, copies);
        CHECK_EQUAL(count_kind(plan, SDLF_CONV2D_FORWARD, true), 1);
        CHECK_EQUAL(count_fused(plan, &sdlf_conv2d_pool_forward_fusion), 1);
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "rows", rows));
    }
    sdlf_plan_free(plan);
    free(device);
}

/* The first convolution reads a row-major image, and the last one's pooling writes row-major: no copies are left,
 * instead of two. */
static void mixed_kernels_turn_by_themselves(void)
{
    enum { UNITS = 7, COUNT = BATCH * UNITS };
    const sdlf_pool2d_options halve = {.window = {2, 2}};
    sdlf_model *net = sdlf_model_create("mixed");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_relu(net, conv(net, x, "first", 16, 3, 1));
    x = sdlf_max_pool2d(net, sdlf_relu(net, conv(net, x, "second", 12, 3, 1)), &halve);
    sdlf_output(net, "rows", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = UNITS}));
    CHECK_OK(sdlf_model_build(net, 1));
    fill_parameters(net, 40);
    float turned[COUNT] = {0}, mixed[COUNT] = {0};
    run_turning(net, false, 2, turned);
    run_turning(net, true, 0, mixed);
    for (int e = 0; e < COUNT; e++) {
        CHECK(turned[e] != 0);
        CHECK_CLOSE((double)mixed[e], (double)turned[e], 1e-5);
    }
    sdlf_model_free(net);
}

/* Convolution and pooling fused before layouts were chosen: their image has the layout of their result, whatever
 * kernels could read. */
static void what_contracts_keep_alike_stays_alike(void)
{
    const sdlf_pool2d_options halve = {.window = {2, 2}};
    sdlf_calculator *device = make_choosy();
    sdlf_kernel_slot *pooled = &device_fusions[0].slot;
    sdlf_model *net = sdlf_model_create("alike");
    sdlf_plan *plan = NULL;
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_max_pool2d(net, sdlf_relu(net, conv(net, x, "first", 16, 3, 1)), &halve);
    sdlf_output(net, "last", conv(net, conv(net, x, "second", 16, 3, 1), "third", 16, 3, 1));
    pooled->channels_last = pooled->mixed = true;
    pooled->prefers_channels_last = likes_many_filters;
    if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = device}))) {
        CHECK_EQUAL(count_fused(plan, &sdlf_conv2d_pool_forward_fusion), 1);
        for (int i = 0; i < plan->step_count; i++) {
            if (plan->steps[i].phase != SDLF_PHASE_COPY) CHECK_OK(sdlf_operation_check(&plan->steps[i].operation));
        }
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    free(device);
}

int main(void)
{
    RUN(most_of_the_work_decides_for_all);
    RUN(each_calculator_decides_for_itself);
    RUN(one_convolution_repays_conversions_on_the_host);
    RUN(pooling_follows_into_the_convolution);
    RUN(mixed_kernels_turn_by_themselves);
    RUN(what_contracts_keep_alike_stays_alike);
    return test_summary();
}
