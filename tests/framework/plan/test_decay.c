/* SPDX-License-Identifier: MIT */
/* Weight decay in complete training steps: which parameters it shrinks, and by how much, by the formulas of sgd and
 * adamw. */
#include <stdio.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 4 };

/* convolution and ReLU and pooling, which fuse with their updates; batch normalisation; fully connected with ReLU, and
 * without. */
static sdlf_model *network(void)
{
    sdlf_model *net = sdlf_model_create("decays");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 3, .kernel = {3, 3}});
    x = sdlf_max_pool2d(net, sdlf_relu(net, x), &(sdlf_pool2d_options){.window = {2, 2}});
    x = sdlf_batch_norm2d(net, x, NULL);
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 5}));
    sdlf_output(net, "class",
                sdlf_softmax(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3})));
    CHECK_OK(sdlf_model_build(net, 1));
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_tensor *value = &sdlf_model_parameter(net, i)->value;
        fill_random(value->data, sdlf_tensor_count(value), (uint64_t)i + 1);
    }
    return net;
}

/* The parameters after one step. */
static sdlf_model *after_a_step(const char *name, bool no_fusion, sdlf_optimizer optimizer, float rate)
{
    sdlf_calculator *calculator = test_open(name);
    sdlf_model *net = network();
    sdlf_plan *plan = NULL;
    float image[BATCH * 36];
    fill_random(image, BATCH * 36, 99);
    sdlf_status status = sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){
            .batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .no_fusion = no_fusion, .optimizer = optimizer});
    if (status == SDLF_OK) status = test_plan_write(plan, "image", image);
    if (status == SDLF_OK) status = test_plan_write(plan, "labels", (int32_t[]){0, 1, 2, 1});
    if (status == SDLF_OK) status = sdlf_plan_step(plan, rate);
    if (status == SDLF_OK) status = sdlf_plan_store_parameters(plan);
    CHECK_OK(status);
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    return net;
}

/* Decay adds -rate decay w to the first step of sgd and of adamw, and nothing for a parameter that does not
 * decay. */
static void check_pull(const sdlf_model *with, const sdlf_model *without, bool all, double pull)
{
    sdlf_model *before = network();
    for (int i = 0; i < sdlf_model_parameter_count(before); i++) {
        const sdlf_parameter *p = sdlf_model_parameter(before, i);
        if (!p->spec.trainable) continue;
        const float *w = p->value.data, *a = sdlf_model_parameter((sdlf_model *)with, i)->value.data,
                    *b = sdlf_model_parameter((sdlf_model *)without, i)->value.data;
        for (int64_t e = 0; e < sdlf_tensor_count(&p->value); e++) {
            double expected = p->spec.decay || all ? -pull * (double)w[e] : 0;
            if (CHECK_CLOSE((double)a[e] - (double)b[e], expected, 1e-6)) continue;
            printf("  %s[%lld]\n", p->name, (long long)e);
            break;
        }
    }
    sdlf_model_free(before);
}

static void weights_decay_and_all_do_where_that_is_asked_for(void)
{
    const float rate = 0.125f;
    for (int which = 0; test_calculator_class_at(which) != NULL; which++) {
        const char *name = test_calculator_class_at(which)->name;
        for (int no_fusion = 0; no_fusion < 2; no_fusion++) {
            for (int all = 0; all < 2; all++) {
                const struct {
                    sdlf_optimizer with, without;
                } pair[] = {
                    {sdlf_sgd(.weight_decay = 0.5, .decay_all = all), sdlf_sgd(.decay_all = all)},
                    {sdlf_sgd(.momentum = 0.9, .weight_decay = 0.5, .decay_all = all), sdlf_sgd(.momentum = 0.9)},
                    {sdlf_adamw(.weight_decay = 0.5, .decay_all = all), sdlf_adamw(.beta1 = 0.9)},
                };
                for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++) {
                    sdlf_model *with = after_a_step(name, no_fusion, pair[i].with, rate);
                    sdlf_model *without = after_a_step(name, no_fusion, pair[i].without, rate);
                    check_pull(with, without, all, 0.5 * (double)rate);
                    sdlf_model_free(with);
                    sdlf_model_free(without);
                }
            }
        }
    }
}

/* The parameter specs exclude biases and both parameters of a normalisation. */
static void weights_only_are_marked(void)
{
    sdlf_model *net = network();
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        const sdlf_parameter *p = sdlf_model_parameter(net, i);
        bool weight = p->value.shape.rank > 1;
        CHECK(p->spec.decay == weight);
    }
    sdlf_model_free(net);
}

int main(void)
{
    RUN(weights_only_are_marked);
    RUN(weights_decay_and_all_do_where_that_is_asked_for);
    return test_summary();
}
