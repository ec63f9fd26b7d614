/* SPDX-License-Identifier: MIT */
/* Cases of the 1x1 convolution with the depthwise one behind it.
 *
 * Tolerance: as many rounding errors as an element of y has products behind it, R S windows of C, and the
 * activations. */
#include "kernels.h"

typedef struct geometry {
    int64_t n, c, h, w, k;
    int size, stride, before[2], after[2];
} geometry;

static const sdlf_activation clip = {.function = SDLF_CLIP, .low = 0, .high = 0.75f};

static void pair(kernel_sink *sink, const geometry *g, sdlf_dtype t, bool biases, sdlf_activation between,
                 sdlf_activation activation, const char *text)
{
    kernel_case made = {.operation = {.kind = SDLF_CONV2D_POINTWISE_DEPTHWISE_FORWARD}};
    sdlf_operation *o = &made.operation;
    sdlf_window2d *window = &o->conv2d_pair.window;
    for (int i = 0; i < 2; i++) {
        window->size[i] = g->size;
        window->stride[i] = g->stride;
        window->dilation[i] = 1;
        window->padding_before[i] = g->before[i];
        window->padding_after[i] = g->after[i];
    }
    o->conv2d_pair.between = between;
    o->conv2d_pair.activation = activation;
    o->in[0] = kernel_tensor(t, sdlf_shape(g->n, g->c, g->h, g->w));
    o->in[1] = kernel_tensor(t, sdlf_shape(g->k, g->c, 1, 1));
    o->in[2] = kernel_tensor(t, sdlf_shape(g->k, 1, g->size, g->size));
    if (biases) o->in[3] = o->in[4] = kernel_tensor(t, sdlf_shape(g->k));
    o->out[0] = kernel_tensor(
        t, sdlf_shape(g->n, g->k, sdlf_window2d_output(window, 0, g->h), sdlf_window2d_output(window, 1, g->w)));
    made.tolerance = (double)(g->c * g->size * g->size) + 8;
    kernel_emit(sink, &made, "%dx%dx%dx%d k%d %dx%d s%d p%d,%d,%d,%d%s%s", (int)g->n, (int)g->c, (int)g->h, (int)g->w,
                (int)g->k, g->size, g->size, g->stride, g->before[0], g->before[1], g->after[0], g->after[1],
                biases ? " biases" : "", text);
}

void conv2d_pair_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const geometry geometries[] = {
        {1, 1, 1, 1, 1, 3, 1, {1, 1}, {1, 1}},     {1, 3, 3, 3, 2, 3, 1, {0, 0}, {0, 0}},
        {2, 5, 7, 9, 11, 3, 1, {1, 1}, {1, 1}},    {2, 4, 8, 12, 16, 3, 2, {1, 1}, {1, 1}},
        {1, 6, 9, 7, 9, 3, 2, {0, 0}, {1, 1}},     {1, 8, 6, 5, 17, 5, 1, {2, 2}, {2, 2}},
        {3, 7, 11, 10, 24, 5, 2, {1, 2}, {2, 1}},  {1, 160, 7, 7, 33, 3, 1, {1, 1}, {1, 1}},
        {1, 64, 14, 14, 40, 3, 1, {1, 1}, {1, 1}}, {1, 33, 15, 13, 21, 3, 1, {2, 0}, {0, 2}},
        {1, 16, 40, 36, 24, 3, 2, {1, 1}, {1, 1}}, {1, 24, 29, 56, 64, 3, 1, {1, 1}, {1, 1}},
        {1, 9, 10, 31, 50, 3, 3, {1, 1}, {1, 1}},  {2, 100, 4, 150, 8, 3, 1, {1, 1}, {1, 1}},
    };
    const sdlf_activation identity = {.function = SDLF_IDENTITY}, relu = {.function = SDLF_RELU};
    const sdlf_activation silu = {.function = SDLF_SILU};
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) {
        const geometry *g = &geometries[i];
        pair(sink, g, t, false, identity, identity, "");
        pair(sink, g, t, true, clip, clip, " clip clip");
        pair(sink, g, t, true, relu, identity, " relu");
        if (i < 4) pair(sink, g, t, true, silu, silu, " silu silu");
    }
}

void conv2d_pair_bench(kernel_sink *sink, sdlf_dtype t)
{
    static const geometry sizes[] = {
        /* MobileNetV2, one image */
        {1, 16, 112, 112, 96, 3, 2, {1, 1}, {1, 1}}, {1, 24, 56, 56, 144, 3, 1, {1, 1}, {1, 1}},
        {1, 24, 56, 56, 144, 3, 2, {1, 1}, {1, 1}},  {1, 32, 28, 28, 192, 3, 1, {1, 1}, {1, 1}},
        {1, 32, 28, 28, 192, 3, 2, {1, 1}, {1, 1}},  {1, 64, 14, 14, 384, 3, 1, {1, 1}, {1, 1}},
        {1, 96, 14, 14, 576, 3, 1, {1, 1}, {1, 1}},  {1, 96, 14, 14, 576, 3, 2, {1, 1}, {1, 1}},
        {1, 160, 7, 7, 960, 3, 1, {1, 1}, {1, 1}},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) pair(sink, &sizes[i], t, true, clip, clip, "");
}
