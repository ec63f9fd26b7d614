/* SPDX-License-Identifier: MIT */
/* The random choices and the declarations shared by all kinds of random networks. */
#ifndef SDLF_TESTS_NETWORKS_RANDOM_DRAW_H
#define SDLF_TESTS_NETWORKS_RANDOM_DRAW_H

#include <sdlf/sdlf.h>

enum { MOST_LAYERS = 14, MOST_CLASSES = 6, MOST_SAMPLES = 5, MOST_SIDE = 18, MOST_CHANNELS = 40 };

/* Random integers in [0, below). */
typedef struct chance {
    uint64_t seed, drawn;
} chance;

static inline int draw(chance *c, int below)
{
    return (int)(sdlf_philox4x32(c->seed, c->drawn++, 17, 0).word[0] % (uint32_t)below);
}

static inline int between(chance *c, int least, int most)
{
    return least + draw(c, most - least + 1);
}

typedef struct random_network {
    chance c;
    sdlf_model *model;
    int batch, classes;
    int vocabulary;     /* of a token input; 0: the input is numeric */
    sdlf_loss loss;     /* with float targets, unless cross-entropy */
    sdlf_shape targets; /* of a sample's labels or targets; no axes: one label */
    sdlf_node node[MOST_LAYERS + 2];
    sdlf_shape shape[MOST_LAYERS + 2]; /* (C,H,W) of each, or (T,C) */
    int count;
} random_network;

static inline void keep_shape(random_network *net, sdlf_node node, sdlf_shape shape)
{
    net->node[net->count] = node;
    net->shape[net->count++] = shape;
}

static inline void keep(random_network *net, sdlf_node node, int64_t channels, int64_t height, int64_t width)
{
    keep_shape(net, node, sdlf_shape(channels, height, width));
}

/* An activation that is smooth, or whose kinks random values do not hit. */
static inline sdlf_node activated(random_network *net, sdlf_node x)
{
    static const int unary[] = {SDLF_UNARY_SILU,     SDLF_UNARY_HARD_SWISH, SDLF_UNARY_ELU,
                                SDLF_UNARY_GELU,     SDLF_UNARY_MISH,       SDLF_UNARY_SOFTPLUS,
                                SDLF_UNARY_SOFTSIGN, SDLF_UNARY_SIN,        SDLF_UNARY_GELU_TANH};
    switch (draw(&net->c, 7)) {
    case 0:
    case 1: return sdlf_relu(net->model, x);
    case 2: return sdlf_relu6(net->model, x);
    case 3: return sdlf_sigmoid(net->model, x);
    case 4: return sdlf_tanh(net->model, x);
    case 5: return sdlf_leaky_relu(net->model, x, &(sdlf_leaky_relu_options){.slope = 0.1f});
    default:
        return sdlf_unary(
            net->model, x,
            &(sdlf_unary_options){.function = unary[draw(&net->c, (int)(sizeof unary / sizeof unary[0]))]});
    }
}

/* The sum or the elementwise product of two nodes of the same shape. */
static inline sdlf_node combined(random_network *net, const sdlf_node two[2])
{
    if (draw(&net->c, 4)) return sdlf_add(net->model, two[0], two[1]);
    return sdlf_binary(net->model, two, 2, &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY});
}

#endif
