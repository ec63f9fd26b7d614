/* SPDX-License-Identifier: MIT */
/* A max-pool absorbs the preceding ReLU, and has a mask, only if fusions cover both its forward and backward pass. */
#include <stdlib.h>

#include "calculators/fusions/conv2d_pool.h"
#include "framework/plan/counting_device.h"
#include "framework/plan/networks.h"

static const sdlf_fused_slot none[] = {{.fusion = NULL}};
static const sdlf_fused_slot forward[] = {{.fusion = &sdlf_conv2d_pool_forward_fusion}, {.fusion = NULL}};
static const sdlf_fused_slot both[] = {
    {.fusion = &sdlf_conv2d_pool_forward_fusion}, {.fusion = &sdlf_conv2d_pool_backward_fusion}, {.fusion = NULL}};

/* Compute the weights after three steps on a device with these fusions, and check whether its plan fuses the pool. */
static uint32_t train(const sdlf_fused_slot *fusions, bool fused)
{
    float images[2 * 36];
    sdlf_model *net = small_cnn();
    sdlf_calculator *device = make_device();
    sdlf_plan *plan = NULL;
    device_class.fusions = fusions;
    fill_random(images, 2 * 36, 5);
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_plan_options options = {.batch = 2, .mode = SDLF_TRAIN, .forward = device};
    if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
        CHECK_EQUAL(count_steps(plan, "max_pool2d_forward") + count_steps(plan, "max_pool2d_backward"), fused ? 0 : 2);
        CHECK_EQUAL(count_steps(plan, "conv2d_relu_max_pool_forward"), fused);
        CHECK_EQUAL(count_steps(plan, "conv2d_relu_max_pool_backward"), fused);
        CHECK_OK(test_plan_write(plan, "image", images));
        CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 2}));
        for (int i = 0; i < 3; i++) CHECK_OK(sdlf_plan_step(plan, 0.1f));
        CHECK_OK(sdlf_plan_store_parameters(plan));
    }
    uint32_t hash = sdlf_model_hash(net);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    free(device);
    return hash;
}

/* If only the forward pass has a fusion, nothing is fused; the results are the same. */
static void both_passes_or_neither(void)
{
    const uint32_t expected = train(none, false);
    CHECK_EQUAL(train(forward, false), expected);
    CHECK_EQUAL(train(both, true), expected);
}

int main(void)
{
    RUN(both_passes_or_neither);
    return test_summary();
}
