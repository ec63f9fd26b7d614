/* SPDX-License-Identifier: MIT */
/* Random layers for sequences (T,C): embeddings, attention, recurrent layers, norms. */
#ifndef SDLF_TESTS_NETWORKS_RANDOM_SEQUENCES_H
#define SDLF_TESTS_NETWORKS_RANDOM_SEQUENCES_H

#include "networks/random_draw.h"

enum { MOST_POSITIONS = 14, MOST_VOCABULARY = 20 };

/* Add an input of tokens, stored as integers or as floats, or of vectors. */
static inline void add_sequence_input(random_network *net)
{
    chance *c = &net->c;
    int positions = between(c, 1, MOST_POSITIONS), units = between(c, 1, MOST_CHANNELS);
    sdlf_shape shape = sdlf_shape(positions, units);
    if (draw(c, 3) == 0) {
        keep_shape(net, sdlf_input(net->model, "x", SDLF_FLOAT32, shape), shape);
        return;
    }
    net->vocabulary = between(c, 1, MOST_VOCABULARY);
    sdlf_dtype dtype = draw(c, 3) ? SDLF_INT32 : SDLF_FLOAT32;
    sdlf_embedding_options options = {.vocabulary = net->vocabulary, .units = units};
    keep_shape(net, sdlf_embedding(net->model, sdlf_input(net->model, "x", dtype, sdlf_shape(positions)), &options),
               shape);
}

static inline int divisor_of(chance *c, int number)
{
    int divisor = between(c, 1, number < 8 ? number : 8);
    while (number % divisor) divisor--;
    return divisor;
}

static inline sdlf_node attended(random_network *net, sdlf_node x, int units)
{
    chance *c = &net->c;
    sdlf_multi_head_attention_options options = {.heads = divisor_of(c, units),
                                                 .causal = draw(c, 2),
                                                 .no_bias = draw(c, 3) == 0,
                                                 .dropout = draw(c, 4) ? 0 : 0.25f};
    options.rotary = units / options.heads % 2 == 0 && draw(c, 3) == 0;
    return sdlf_multi_head_attention(net->model, x, &options);
}

static inline sdlf_node recurrent(random_network *net, sdlf_node x, int units, bool last)
{
    chance *c = &net->c;
    sdlf_recurrent_options options = {
        .units = units, .last = last, .reverse = draw(c, 3) == 0, .no_bias = draw(c, 3) == 0};
    return draw(c, 2) ? sdlf_lstm(net->model, x, &options) : sdlf_gru(net->model, x, &options);
}

static inline sdlf_node sequence_normalised(random_network *net, sdlf_node x)
{
    switch (draw(&net->c, 4)) {
    case 0: return sdlf_layer_norm(net->model, x, &(sdlf_layer_norm_options){.axis = 1});
    case 1: return sdlf_layer_norm(net->model, x, NULL);
    default: return sdlf_rms_norm(net->model, x, NULL);
    }
}

static inline sdlf_node positioned(random_network *net, sdlf_node x, int64_t units)
{
    if (units % 2 == 0 && draw(&net->c, 2)) return sdlf_rotary_embedding(net->model, x, NULL);
    return sdlf_position_embedding(net->model, x, NULL);
}

/* Combine or concatenate two nodes with the same number of positions, if there are any. */
static inline void join_sequences(random_network *net, int at)
{
    int other = draw(&net->c, net->count);
    sdlf_shape a = net->shape[at], b = net->shape[other];
    sdlf_node two[2] = {net->node[at], net->node[other]};
    if (a.dim[0] != b.dim[0]) return;
    if (a.dim[1] == b.dim[1] && draw(&net->c, 3)) {
        keep_shape(net, combined(net, two), a);
    } else if (a.dim[1] + b.dim[1] <= 2 * MOST_CHANNELS && at != other) {
        keep_shape(net, sdlf_concat(net->model, two, 2, &(sdlf_concat_options){.axis = -1}),
                   sdlf_shape(a.dim[0], a.dim[1] + b.dim[1]));
    }
}

static inline void add_sequence_layer(random_network *net)
{
    chance *c = &net->c;
    int at = draw(c, 3) ? net->count - 1 : draw(c, net->count), units = between(c, 1, MOST_CHANNELS);
    sdlf_shape in = net->shape[at], changed = sdlf_shape(in.dim[0], units);
    sdlf_node x = net->node[at];
    switch (draw(c, 12)) {
    case 0:
    case 1: {
        sdlf_fully_connected_options options = {.units = units, .axis = -1, .no_bias = draw(c, 3) == 0};
        keep_shape(net, sdlf_fully_connected(net->model, x, &options), changed);
        break;
    }
    case 2:
    case 3: keep_shape(net, attended(net, x, (int)in.dim[1]), in); break;
    case 4: keep_shape(net, recurrent(net, x, units, false), changed); break;
    case 5:
    case 6: keep_shape(net, sequence_normalised(net, x), in); break;
    case 7: keep_shape(net, positioned(net, x, in.dim[1]), in); break;
    case 8: keep_shape(net, activated(net, x), in); break;
    case 9: keep_shape(net, sdlf_dropout(net->model, x, &(sdlf_dropout_options){.probability = 0.3f}), in); break;
    default: join_sequences(net, at);
    }
}

/* The last sequence as one vector (N,C), or unchanged for a fully connected layer, which flattens it. */
static inline sdlf_node one_vector(random_network *net)
{
    sdlf_node x = net->node[net->count - 1];
    switch (draw(&net->c, 3)) {
    case 0: return recurrent(net, x, between(&net->c, 1, MOST_CHANNELS), true);
    case 1:
        return sdlf_reduce(net->model, x,
                           &(sdlf_reduce_options){.function = SDLF_REDUCE_LAYER_MEAN, .axes = sdlf_shape(1)});
    default: return x;
    }
}

#endif
