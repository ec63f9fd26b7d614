/* What steps of inference are told of those around them: weights that are read next, and whether the one before matters. */
#include "framework/plan/networks.h"
#include "framework/plan/plan_internal.h"
#include "testing.h"

enum { CHANNELS = 32, SIDE = 8 };

/* A layer, two that read what it makes, and one behind one of these. */
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

/* Of all steps one has nothing to do with the one before it. */
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

int main(void)
{
    RUN(apart_are_those_that_share_an_input);
    RUN(weights_ahead_are_the_next_that_were_made_ready);
    return test_summary();
}
