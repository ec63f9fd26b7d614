/* SPDX-License-Identifier: MIT */
/* Networks that nobody would draw: layers of every kind that trains, of sizes, strides, paddings and groups by chance,
 * joined by additions and concatenations. A seed gives the same network everywhere. */
#ifndef SDLF_TESTS_NETWORKS_RANDOM_NETWORK_H
#define SDLF_TESTS_NETWORKS_RANDOM_NETWORK_H

#include <sdlf/sdlf.h>

enum { MOST_LAYERS = 14, MOST_CLASSES = 6, MOST_SAMPLES = 5, MOST_SIDE = 18, MOST_CHANNELS = 40 };

/* Numbers by chance, in [0, below). */
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
    sdlf_shape input; /* of a sample */
    sdlf_node node[MOST_LAYERS + 2];
    sdlf_shape shape[MOST_LAYERS + 2]; /* (C,H,W) of each */
    int count;
} random_network;

/* Is there room for this node? Its shape is what the model says. */
static inline void keep(random_network *net, sdlf_node node, int64_t channels, int64_t height, int64_t width)
{
    net->node[net->count] = node;
    net->shape[net->count++] = sdlf_shape(channels, height, width);
}

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

static inline void add_convolution(random_network *net, int at, bool transposed)
{
    chance *c = &net->c;
    sdlf_shape in = net->shape[at];
    sdlf_window2d w = draw_window(c, in, false);
    int channels = (int)in.dim[0], groups = 1;
    if (draw(c, 4) == 0) groups = draw(c, 2) ? channels : (channels % 2 == 0 ? 2 : 1);
    int filters = groups * between(c, 1, groups > 4 ? 1 + draw(c, 2) : MOST_CHANNELS / groups);
    if (transposed) {
        sdlf_conv_transpose2d_options t = {.filters = filters,
                                           .kernel = {w.size[0], w.size[1]},
                                           .stride = {w.stride[0], w.stride[1]},
                                           .groups = groups,
                                           .no_bias = draw(c, 2)};
        int64_t h = (in.dim[1] - 1) * w.stride[0] + w.size[0], width = (in.dim[2] - 1) * w.stride[1] + w.size[1];
        if (h > 2 * MOST_SIDE || width > 2 * MOST_SIDE) return;
        keep(net, sdlf_conv_transpose2d(net->model, net->node[at], &t), filters, h, width);
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

/* Functions that are smooth, or have their kinks where numbers by chance are not. */
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

static inline sdlf_node normalised(random_network *net, sdlf_node x, sdlf_shape in)
{
    int channels = (int)in.dim[0];
    switch (draw(&net->c, 5)) {
    case 0: return sdlf_group_norm(net->model, x, &(sdlf_group_norm_options){.groups = channels % 2 == 0 ? 2 : 1});
    case 1: return sdlf_lrn(net->model, x, &(sdlf_lrn_options){.size = 3, .alpha = 0.1f});
    default: return sdlf_batch_norm2d(net->model, x, NULL);
    }
}

/* Two nodes of one size, added or joined; else nothing. */
static inline void join(random_network *net, int at)
{
    const sdlf_shape *in = net->shape;
    for (int i = draw(&net->c, net->count), tries = 0; tries < net->count; tries++, i = (i + 1) % net->count) {
        if (in[i].dim[1] != in[at].dim[1] || in[i].dim[2] != in[at].dim[2]) continue;
        sdlf_node two[2] = {net->node[at], net->node[i]};
        bool same = in[i].dim[0] == in[at].dim[0];
        if (same && draw(&net->c, 3) > 0) {
            sdlf_node sum =
                draw(&net->c, 4)
                    ? sdlf_add(net->model, two[0], two[1])
                    : sdlf_binary(net->model, two, 2, &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY});
            keep(net, sum, in[at].dim[0], in[at].dim[1], in[at].dim[2]);
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

/* The model is the caller's, built. */
static inline random_network random_network_make(uint64_t seed)
{
    random_network net = {.c = {.seed = seed}};
    chance *c = &net.c;
    net.model = sdlf_model_create("random");
    net.batch = between(c, 2, MOST_SAMPLES);
    net.classes = between(c, 2, MOST_CLASSES);
    net.input = sdlf_shape(draw(c, 2) ? between(c, 1, 4) : between(c, 1, MOST_CHANNELS), between(c, 1, MOST_SIDE),
                           between(c, 1, MOST_SIDE));
    keep(&net, sdlf_input(net.model, "x", SDLF_FLOAT32, net.input), net.input.dim[0], net.input.dim[1],
         net.input.dim[2]);
    for (int i = between(c, 1, MOST_LAYERS); i > 0; i--) add_layer(&net);
    sdlf_node rows = net.node[net.count - 1];
    if (draw(c, 2))
        rows = activated(
            &net, sdlf_fully_connected(net.model, rows, &(sdlf_fully_connected_options){.units = between(c, 1, 40)}));
    rows = sdlf_fully_connected(net.model, rows, &(sdlf_fully_connected_options){.units = net.classes});
    sdlf_output(net.model, "class", sdlf_softmax(net.model, rows));
    return net;
}

#endif
