/* SPDX-License-Identifier: MIT */
/* Random networks: layers of every trainable kind, for images and sequences, with random sizes, strides, paddings and
 * groups, joined by additions, products and concatenations. A seed gives the same network on every machine. */
#ifndef SDLF_TESTS_NETWORKS_RANDOM_NETWORK_H
#define SDLF_TESTS_NETWORKS_RANDOM_NETWORK_H

#include "networks/random_sequences.h"

/* Outputs along an axis; less than 1: the window does not fit. */
static inline int64_t outputs_of(int64_t size, const sdlf_window2d *window, int axis)
{
    return sdlf_window2d_output(window, axis, size);
}

static inline sdlf_window2d draw_window(chance *c, sdlf_shape in, bool pools)
{
    sdlf_window2d window = {.size = {1, 1}};
    bool square = draw(c, 3) > 0;
    for (int i = 0; i < 2; i++) {
        int size = (int)in.dim[1 + i];
        window.size[i] = i == 1 && square ? window.size[0] : between(c, 1, pools ? 3 : 5);
        window.stride[i] = i == 1 && square ? window.stride[0] : between(c, 1, 1 + draw(c, 3));
        window.dilation[i] = !pools && draw(c, 5) == 0 ? 2 : 1;
        window.padding_before[i] = window.padding_after[i] = draw(c, pools ? (window.size[i] + 1) / 2 : window.size[i]);
        while ((window.size[i] - 1) * window.dilation[i] + 1 > size + 2 * window.padding_before[i] &&
               window.size[i] > 1)
            window.size[i]--;
        if (pools && window.padding_before[i] >= window.size[i]) window.padding_before[i] = window.padding_after[i] = 0;
    }
    return window;
}

static inline void add_transposed(random_network *net, int at, const sdlf_window2d *w, int filters, int groups)
{
    sdlf_conv_transpose2d_options t = {.filters = filters, .groups = groups, .no_bias = draw(&net->c, 2)};
    int64_t size[2];
    for (int i = 0; i < 2; i++) {
        t.kernel[i] = w->size[i];
        t.stride[i] = w->stride[i];
        t.dilation[i] = w->dilation[i];
        t.padding[i] = draw(&net->c, w->size[i]);
        t.output_padding[i] = draw(&net->c, w->stride[i]);
        size[i] = (net->shape[at].dim[1 + i] - 1) * t.stride[i] + t.dilation[i] * (t.kernel[i] - 1) + 1 +
                  t.output_padding[i] - 2 * t.padding[i];
        if (size[i] < 1 || size[i] > 2 * MOST_SIDE) return;
    }
    keep(net, sdlf_conv_transpose2d(net->model, net->node[at], &t), filters, size[0], size[1]);
}

static inline void add_convolution(random_network *net, int at, bool transposed)
{
    chance *c = &net->c;
    sdlf_shape in = net->shape[at];
    sdlf_window2d w = draw_window(c, in, false);
    int channels = (int)in.dim[0], groups = 1;
    if (draw(c, 4) == 0) groups = draw(c, 2) ? channels : (channels % 2 == 0 ? 2 : 1);
    int filters = groups * between(c, 1, groups > 4 ? 1 + draw(c, 2) : MOST_CHANNELS / groups);
    if (transposed) {
        add_transposed(net, at, &w, filters, groups);
        return;
    }
    sdlf_conv2d_options o = {.filters = filters,
                             .kernel = {w.size[0], w.size[1]},
                             .stride = {w.stride[0], w.stride[1]},
                             .padding = {w.padding_before[0], w.padding_before[1]},
                             .dilation = {w.dilation[0], w.dilation[1]},
                             .groups = groups,
                             .no_bias = draw(c, 2)};
    keep(net, sdlf_conv2d(net->model, net->node[at], &o), filters, outputs_of(in.dim[1], &w, 0),
         outputs_of(in.dim[2], &w, 1));
}

static inline void add_pool(random_network *net, int at)
{
    chance *c = &net->c;
    sdlf_shape in = net->shape[at];
    if (draw(c, 6) == 0) {
        keep(net, sdlf_global_avg_pool2d(net->model, net->node[at]), in.dim[0], 1, 1);
        return;
    }
    sdlf_window2d w = draw_window(c, in, true);
    bool largest = draw(c, 2);
    sdlf_pool2d_options o = {.window = {w.size[0], w.size[1]},
                             .stride = {w.stride[0], w.stride[1]},
                             .padding = {w.padding_before[0], w.padding_before[1]},
                             .ties = largest ? draw(c, 2) : 0,
                             .count_padding = !largest && draw(c, 2)};
    sdlf_node made =
        largest ? sdlf_max_pool2d(net->model, net->node[at], &o) : sdlf_avg_pool2d(net->model, net->node[at], &o);
    keep(net, made, in.dim[0], outputs_of(in.dim[1], &w, 0), outputs_of(in.dim[2], &w, 1));
}

static inline sdlf_node normalised(random_network *net, sdlf_node x, sdlf_shape in)
{
    int channels = (int)in.dim[0];
    switch (draw(&net->c, 5)) {
    case 0: return sdlf_group_norm(net->model, x, &(sdlf_group_norm_options){.groups = channels % 2 == 0 ? 2 : 1});
    case 1: return sdlf_lrn(net->model, x, &(sdlf_lrn_options){.size = 3, .alpha = 0.1f});
    default: return sdlf_batch_norm2d(net->model, x, NULL);
    }
}

/* Join two nodes of the same size, if there are any. */
static inline void join(random_network *net, int at)
{
    const sdlf_shape *in = net->shape;
    for (int i = draw(&net->c, net->count), tries = 0; tries < net->count; tries++, i = (i + 1) % net->count) {
        if (in[i].dim[1] != in[at].dim[1] || in[i].dim[2] != in[at].dim[2]) continue;
        sdlf_node two[2] = {net->node[at], net->node[i]};
        bool same = in[i].dim[0] == in[at].dim[0];
        if (same && draw(&net->c, 3) > 0) {
            keep(net, combined(net, two), in[at].dim[0], in[at].dim[1], in[at].dim[2]);
            return;
        }
        if (i == at || in[i].dim[0] + in[at].dim[0] > 2 * MOST_CHANNELS) continue;
        keep(net, sdlf_concat(net->model, two, 2, NULL), in[i].dim[0] + in[at].dim[0], in[at].dim[1], in[at].dim[2]);
        return;
    }
}

static inline void add_layer(random_network *net)
{
    chance *c = &net->c;
    int at = draw(c, 3) ? net->count - 1 : draw(c, net->count), kind = draw(c, 16);
    sdlf_shape in = net->shape[at];
    sdlf_node x = net->node[at];
    if (kind < 6) {
        add_convolution(net, at, kind == 5 && draw(c, 2));
    } else if (kind < 8) {
        add_pool(net, at);
    } else if (kind < 10) {
        keep(net, normalised(net, x, in), in.dim[0], in.dim[1], in.dim[2]);
    } else if (kind < 13) {
        keep(net, activated(net, x), in.dim[0], in.dim[1], in.dim[2]);
    } else if (kind == 13 && in.dim[1] * in.dim[2] < MOST_SIDE * MOST_SIDE / 4) {
        sdlf_resize_options twice = {.scale = 2, .mode = draw(c, 2)};
        keep(net, sdlf_resize(net->model, x, &twice), in.dim[0], 2 * in.dim[1], 2 * in.dim[2]);
    } else if (kind == 13) {
        keep(net, sdlf_dropout(net->model, x, &(sdlf_dropout_options){.probability = 0.3f}), in.dim[0], in.dim[1],
             in.dim[2]);
    } else {
        join(net, at);
    }
}

/* Turn images into sequences: (C,H,W) to (H W,C), or to (C,H W). */
static inline void as_sequence(random_network *net)
{
    sdlf_shape in = net->shape[net->count - 1];
    int64_t places = in.dim[1] * in.dim[2];
    sdlf_node x = sdlf_reshape(net->model, net->node[net->count - 1],
                               &(sdlf_reshape_options){.shape = sdlf_shape(in.dim[0], places)});
    bool turned = draw(&net->c, 2);
    if (turned) x = sdlf_transpose(net->model, x, &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 1)});
    net->count = 0;
    keep_shape(net, x, turned ? sdlf_shape(places, in.dim[0]) : sdlf_shape(in.dim[0], places));
}

static inline void add_pictures(random_network *net)
{
    chance *c = &net->c;
    sdlf_shape input = sdlf_shape(draw(c, 2) ? between(c, 1, 4) : between(c, 1, MOST_CHANNELS),
                                  between(c, 1, MOST_SIDE), between(c, 1, MOST_SIDE));
    keep_shape(net, sdlf_input(net->model, "x", SDLF_FLOAT32, input), input);
    for (int i = between(c, 1, MOST_LAYERS); i > 0; i--) add_layer(net);
}

/* Scores from the last node, per sample, position or pixel; or values that are compared with targets. */
static inline sdlf_node scores_of(random_network *net)
{
    chance *c = &net->c;
    sdlf_shape in = net->shape[net->count - 1];
    sdlf_node x = net->node[net->count - 1];
    if (draw(c, 4) == 0 && in.rank == 3) {
        net->targets = sdlf_shape(in.dim[1], in.dim[2]);
        return sdlf_conv2d(net->model, x, &(sdlf_conv2d_options){.filters = net->classes, .kernel = {1, 1}});
    }
    if (draw(c, 3) == 0 && in.rank == 2) {
        net->targets = sdlf_shape(in.dim[0]);
        return sdlf_fully_connected(net->model, x, &(sdlf_fully_connected_options){.units = net->classes, .axis = -1});
    }
    if (in.rank == 2) x = one_vector(net);
    if (draw(c, 2))
        x = activated(net,
                      sdlf_fully_connected(net->model, x, &(sdlf_fully_connected_options){.units = between(c, 1, 40)}));
    x = sdlf_fully_connected(net->model, x, &(sdlf_fully_connected_options){.units = net->classes});
    if (draw(c, 4) == 0) {
        net->loss = 1 + draw(c, SDLF_LOSS_COUNT - 1);
        net->targets = sdlf_shape(net->classes);
        return x;
    }
    return sdlf_softmax(net->model, x);
}

/* Build the network of a seed; the caller owns the model. */
static inline random_network random_network_make(uint64_t seed)
{
    random_network net = {.c = {.seed = seed}};
    net.model = sdlf_model_create("random");
    net.batch = between(&net.c, 2, MOST_SAMPLES);
    net.classes = between(&net.c, 2, MOST_CLASSES);
    bool sequences = draw(&net.c, 3) == 0;
    if (sequences)
        add_sequence_input(&net);
    else
        add_pictures(&net);
    sdlf_shape last = net.shape[net.count - 1];
    if (!sequences && draw(&net.c, 6) == 0 && last.dim[1] * last.dim[2] <= MOST_SIDE * 2) {
        as_sequence(&net);
        sequences = true;
    }
    for (int i = sequences ? between(&net.c, 1, MOST_LAYERS / 2) : 0; i > 0; i--) add_sequence_layer(&net);
    sdlf_output(net.model, "class", scores_of(&net));
    return net;
}

#endif
