/* SPDX-License-Identifier: MIT */
/* Operations of training steps are fused where they should be, and nowhere else. */
#include "framework/plan/fuse/trained_networks.h"

enum { MAX_OPERATIONS = 32 };

/* Check that the plan's operations, forward steps first, are exactly these. */
static void check_operations(sdlf_model *net, const sdlf_plan_options *options, const char *const *expected)
{
    sdlf_plan *plan = NULL;
    if (!CHECK_OK(sdlf_plan_create(&plan, net, options))) return;
    int count = 0;
    for (; expected[count] != NULL; count++) {
        if (!CHECK(count < sdlf_plan_step_count(plan))) break;
        CHECK_TEXT(sdlf_plan_step_info(plan, count).operation, expected[count]);
    }
    CHECK_EQUAL(sdlf_plan_step_count(plan), count);
    sdlf_plan_free(plan);
}

static int count_operations(sdlf_model *net, const sdlf_plan_options *options, const char *name)
{
    sdlf_plan *plan = NULL;
    if (!CHECK_OK(sdlf_plan_create(&plan, net, options))) return -1;
    int count = count_steps(plan, name);
    sdlf_plan_free(plan);
    return count;
}

static void a_step_is_short(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_plan_options options = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = reference};
    static const char *const fused[MAX_OPERATIONS] = {"conv2d_relu_max_pool_forward",
                                                      "conv2d_relu_max_pool_forward",
                                                      "gemm",
                                                      "gemm",
                                                      "softmax_cross_entropy_forward",
                                                      "gemm_backward_sgd",
                                                      "gemm_backward_sgd",
                                                      "conv2d_relu_max_pool_backward_sgd",
                                                      "conv2d_relu_max_pool_backward_sgd"};
    sdlf_model *nets[2] = {deep(), unbiased()};
    check_operations(nets[0], &options, fused);
    static const char *const fused_unbiased[MAX_OPERATIONS] = {"conv2d_relu_max_pool_forward",
                                                               "gemm",
                                                               "gemm",
                                                               "softmax_cross_entropy_forward",
                                                               "gemm_backward_sgd",
                                                               "gemm_backward_sgd",
                                                               "conv2d_relu_max_pool_backward_sgd"};
    check_operations(nets[1], &options, fused_unbiased);

    sdlf_plan *plan = NULL; /* costs are listed for the phase that has them */
    CHECK_OK(sdlf_plan_create(&plan, nets[0], &options));
    int layers = plan != NULL ? sdlf_plan_layer_count(plan) : 0;
    CHECK_EQUAL(layers, 5);
    for (int i = 0; i < layers; i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(plan, i);
        CHECK(info.forward_cost.flops > 0);
        CHECK((info.backward_cost.flops > 0) == (i < 4)); /* the loss's gradient is computed with the loss */
    }
    sdlf_plan_free(plan);
    sdlf_model_free(nets[0]);
    sdlf_model_free(nets[1]);
    sdlf_calculator_close(reference);
}

static void what_is_wanted_stays(void)
{
    sdlf_calculator *reference = NULL, *cpu = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    sdlf_model *net = deep(), *mixed = activated(), *fork = forked(), *loss = weighted();
    sdlf_plan_options plain = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = reference}, options = plain;

    CHECK_EQUAL(count_operations(mixed, &plain, "gemm_backward_sgd"), 8);
    CHECK_EQUAL(count_operations(mixed, &plain, "activation_backward"), 1); /* of silu */
    CHECK_EQUAL(count_operations(mixed, &plain, "sgd_update"), 0);
    CHECK_EQUAL(count_operations(fork, &plain, "activation_backward"), 1);
    CHECK_EQUAL(count_operations(loss, &plain, "softmax_cross_entropy_backward"), 0);
    CHECK_EQUAL(count_operations(fork, &plain, "sgd_update"), 0);

    options.clip_norm = 1; /* updates wait for all gradients; the loss need not */
    CHECK_EQUAL(count_operations(net, &options, "sgd_update"), 8);
    CHECK_EQUAL(count_operations(net, &options, "softmax_cross_entropy_backward"), 0);

    options = plain, options.gradients_only = true;
    CHECK_EQUAL(count_operations(net, &options, "gemm_backward_sgd"), 0);
    CHECK_EQUAL(count_operations(net, &options, "conv2d_relu_max_pool_backward_sgd"), 0);
    CHECK_EQUAL(count_operations(net, &options, "conv2d_relu_max_pool_backward"), 2);

    options = plain, options.keep_activations = true;
    CHECK_EQUAL(count_operations(net, &options, "softmax_cross_entropy_backward"), 1);
    CHECK_EQUAL(count_operations(net, &options, "sgd_update"), 8);

    options = plain, options.backward = cpu; /* the loss is computed on one, its gradient on the other */
    CHECK_EQUAL(count_operations(net, &options, "softmax_cross_entropy_backward"), 1);

    options = plain; /* an activation whose gradient is computed elsewhere */
    options.placement = &(sdlf_placement){.layer = "relu_3", .backward = cpu};
    options.placement_count = 1;
    CHECK_EQUAL(count_operations(net, &options, "activation_backward"), 1);
    CHECK_EQUAL(count_operations(net, &options, "sgd_update"), 0);

    sdlf_model_free(net);
    sdlf_model_free(mixed);
    sdlf_model_free(fork);
    sdlf_model_free(loss);
    sdlf_calculator_close(cpu);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(a_step_is_short);
    RUN(what_is_wanted_stays);
    return test_summary();
}
