/* SPDX-License-Identifier: MIT */
/* Small networks and data for the tests of plans. */
#ifndef SDLF_TESTS_FRAMEWORK_PLAN_NETWORKS_H
#define SDLF_TESTS_FRAMEWORK_PLAN_NETWORKS_H

#include <string.h>

#include <sdlf/sdlf.h>

/* conv 3x3x4 pad 1, ReLU, max-pool 2, FC 6, ReLU, FC 3, softmax on 1x6x6; input "image", output "class". */
static inline sdlf_model *small_cnn(void)
{
    sdlf_model *net = sdlf_model_create("small_cnn");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .padding = {1, 1}});
    x = sdlf_relu(net, x);
    x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 6});
    x = sdlf_relu(net, x);
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* Two inputs, a residual addition, a value with three readers, concatenation, batch norm, dropout, two outputs. */
static inline sdlf_model *branching_net(float dropout)
{
    sdlf_model *net = sdlf_model_create("branching");
    sdlf_node a = sdlf_input(net, "a", SDLF_FLOAT32, sdlf_shape(2, 5, 5));
    sdlf_node b = sdlf_input(net, "b", SDLF_FLOAT32, sdlf_shape(1, 5, 5));
    sdlf_conv2d_options same = {.filters = 3, .kernel = {3, 3}, .padding = {1, 1}};
    sdlf_node x = sdlf_conv2d(net, a, &same);
    x = sdlf_batch_norm2d(net, x, NULL);
    x = sdlf_tanh(net, x);
    sdlf_node y = sdlf_conv2d(net, x, &same);
    sdlf_node z = sdlf_add(net, y, x);
    sdlf_node twice = sdlf_add(net, x, x);
    sdlf_node all = sdlf_concat(net, (sdlf_node[]){z, twice, b}, 3, NULL);
    all = sdlf_dropout(net, all, &(sdlf_dropout_options){.probability = dropout});
    all = sdlf_avg_pool2d(net, all, &(sdlf_pool2d_options){.window = {2, 2}});
    sdlf_node logits = sdlf_fully_connected(net, all, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, logits));
    sdlf_output(net, "side", sdlf_global_avg_pool2d(net, z));
    return net;
}

/* `count` images of 1x6x6, labels of three classes, and an order to draw them in. */
static inline void fill_samples(uint8_t *samples, int32_t *labels, int32_t *order, int count)
{
    for (int i = 0; i < count * 36; i++) samples[i] = (uint8_t)(sdlf_philox4x32(5, (uint64_t)i, 1, 0).word[0] >> 24);
    for (int i = 0; i < count; i++) {
        labels[i] = i % 3;
        order[i] = (7 * i + 3) % count;
    }
}

/* A feed of these for a network with small_cnn's inputs. */
static inline sdlf_feed feed_of(uint8_t *samples, int32_t *labels, int count)
{
    return (sdlf_feed){
        .samples = "image",
        .labels = "labels",
        .sample_data = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(count, 1, 6, 6), samples),
        .label_data = sdlf_tensor_view(SDLF_INT32, sdlf_shape(count), labels),
        .mean = 100,
        .scale = 0.01f,
    };
}

/* The number of the plan's steps with this operation. */
static inline int count_steps(const sdlf_plan *plan, const char *operation)
{
    int count = 0;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++)
        count += strcmp(sdlf_plan_step_info(plan, i).operation, operation) == 0;
    return count;
}

/* Numbers in [-1, 1) that depend only on the seed. */
static inline void fill_random(float *values, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = 2 * sdlf_uniform_from_word(sdlf_philox4x32(seed, (uint64_t)i / 4, 99, 0).word[i % 4]) - 1;
}

#endif
