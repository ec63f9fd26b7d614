/* SPDX-License-Identifier: MIT */
/* Networks whose training steps are fused in different ways. */
#ifndef SDLF_TESTS_PLAN_FUSE_TRAINED_NETWORKS_H
#define SDLF_TESTS_PLAN_FUSE_TRAINED_NETWORKS_H

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 5, SIDE = 12 };

/* Two fused convolutions, the second of which computes an input gradient; a hidden layer; all layers have a bias. */
static sdlf_model *deep(void)
{
    sdlf_model *net = sdlf_model_create("deep");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    for (int i = 0; i < 2; i++) {
        x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 3 + i, .kernel = {3, 3}, .padding = {1, 1}});
        x = sdlf_relu(net, x);
        x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}});
    }
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 7}));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* The same without biases. */
static sdlf_model *unbiased(void)
{
    sdlf_model *net = sdlf_model_create("unbiased");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 3, .kernel = {3, 3}, .no_bias = true});
    x = sdlf_max_pool2d(net, sdlf_relu(net, x), &(sdlf_pool2d_options){.window = {2, 2}});
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 7, .no_bias = true}));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3, .no_bias = true});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* Every activation between fully connected layers. SiLU's gradient needs its input, and stays a separate step. */
static sdlf_model *activated(void)
{
    sdlf_model *net = sdlf_model_create("activated");
    sdlf_fully_connected_options hidden = {.units = 6};
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_relu6(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_leaky_relu(net, sdlf_fully_connected(net, x, &hidden), NULL);
    x = sdlf_sigmoid(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_tanh(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_unary(net, sdlf_fully_connected(net, x, &hidden), &(sdlf_unary_options){.function = SDLF_UNARY_ELU});
    x = sdlf_unary(net, sdlf_fully_connected(net, x, &hidden), &(sdlf_unary_options){.function = SDLF_UNARY_SILU});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* An activation that two layers read: its gradient is a sum, which belongs to no single layer. */
static sdlf_model *forked(void)
{
    sdlf_model *net = sdlf_model_create("forked");
    sdlf_fully_connected_options hidden = {.units = 6};
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_add(net, sdlf_fully_connected(net, x, &hidden), sdlf_fully_connected(net, x, &hidden));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* A network with its own loss, with weights. */
static sdlf_model *weighted(void)
{
    sdlf_model *net = sdlf_model_create("weighted");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    sdlf_node labels = sdlf_input(net, "labels", SDLF_INT32, SDLF_SCALAR);
    sdlf_node weights = sdlf_input(net, "weights", SDLF_FLOAT32, SDLF_SCALAR);
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_softmax_cross_entropy_options loss = {.name = "loss"};
    sdlf_output(net, "loss", sdlf_softmax_cross_entropy_weighted(net, x, labels, weights, &loss));
    return net;
}

#endif
