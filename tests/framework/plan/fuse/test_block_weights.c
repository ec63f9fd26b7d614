/* SPDX-License-Identifier: MIT */
/* Inverted residual blocks that cpu runs as one operation: none of their three weights is kept in two forms, and a
 * change of any of them is detected. */
#include <stdio.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "framework/plan/passes.h"
#include "testing.h"

enum { SIDE = 7, WIDTH = 48, HIDDEN = 6 * WIDTH, BLOCKS = 6, VALUES = WIDTH * SIDE * SIDE };
enum { BLOCK_WEIGHTS = HIDDEN * (WIDTH + 9 + WIDTH) };

static sdlf_model *blocks(int count, bool normalised)
{
    sdlf_conv2d_options wide = {.filters = HIDDEN, .kernel = {1, 1}}, narrow = {.filters = WIDTH, .kernel = {1, 1}};
    sdlf_conv2d_options depthwise = {.filters = HIDDEN, .kernel = {3, 3}, .padding = {1, 1}, .groups = HIDDEN};
    const sdlf_conv2d_options *of[] = {&wide, &depthwise, &narrow};
    sdlf_model *net = sdlf_model_create("blocks");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(WIDTH, SIDE, SIDE));
    for (int i = 0; i < 3 * count; i++) {
        x = sdlf_conv2d(net, x, of[i % 3]);
        if (normalised) x = sdlf_batch_norm2d(net, x, NULL);
        if (i % 3 < 2) x = sdlf_relu6(net, x);
    }
    sdlf_output(net, "y", x);
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static void run(sdlf_plan *plan, float *y)
{
    float x[VALUES];
    fill_random(x, VALUES, 7);
    CHECK_OK(test_plan_write(plan, "x", x));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
}

static void a_model_gives_all_three_away(void)
{
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_model *net = blocks(1, false), *other = blocks(1, false);
    sdlf_plan *taking = NULL, *plain = NULL;
    float found[VALUES] = {0}, expected[VALUES] = {1};
    CHECK_OK(sdlf_plan_create(&plain, other, &(sdlf_plan_options){.batch = 1, .forward = cpu}));
    CHECK_OK(
        sdlf_plan_create(&taking, net, &(sdlf_plan_options){.batch = 1, .forward = cpu, .consume_parameters = true}));
    CHECK_EQUAL(count_steps(taking, "conv2d_inverted_residual_forward"), 1);
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        if (strstr(parameter->name, "weight") != NULL) CHECK(!sdlf_tensor_present(&parameter->value));
    }
    run(plain, expected);
    run(taking, found);
    CHECK(memcmp(found, expected, sizeof found) == 0);
    sdlf_plan_free(taking);
    sdlf_plan_free(plain);
    sdlf_model_free(other);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

/* Weights with folded normalisations: memory for all prepacked ones, and space for those of one block. */
static void what_is_worked_out_is_there_once(void)
{
    sdlf_calculator *cpu = NULL;
    sdlf_model *net = blocks(BLOCKS, true);
    sdlf_plan *plan = NULL;
    const int64_t block = BLOCK_WEIGHTS * (int64_t)sizeof(float);
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", &(sdlf_calculator_options){.threads = 2}));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = cpu}));
    CHECK_EQUAL(count_steps(plan, "conv2d_inverted_residual_forward"), BLOCKS);
    int64_t arena = plan != NULL ? sdlf_plan_memory(plan).arena : 0;
    if (!CHECK(arena >= BLOCKS * block && arena < (BLOCKS + 2) * block))
        printf("    %lld bytes for %d blocks of %lld\n", (long long)arena, BLOCKS, (long long)block);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

/* Check that the plan of a block in which only operand `varied` is a parameter, and all others are data, is known to
 * hold a weight of the model. */
static void one_parameter_is_noticed(int varied)
{
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_model *net = blocks(1, false);
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = cpu}));
    for (int i = 0; plan != NULL && i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        for (int j = 1; j < SDLF_MAX_INPUTS; j++) {
            if (j != varied && sdlf_tensor_present(&op->in[j])) plan->buffers[op->in[j].buffer].kind = BUFFER_DATA;
        }
    }
    if (plan != NULL) {
        plan->keeps_weights = false;
        plan_note_weights(plan);
        CHECK(plan->keeps_weights);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

static void every_change_is_noticed(void)
{
    for (int i = 1; i <= 6; i++) one_parameter_is_noticed(i);
}

int main(void)
{
    RUN(a_model_gives_all_three_away);
    RUN(what_is_worked_out_is_there_once);
    RUN(every_change_is_noticed);
    return test_summary();
}
