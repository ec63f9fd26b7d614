/* SPDX-License-Identifier: MIT */
/* Cases of inverted residual blocks (fused MBConv): a 1x1 convolution, then a depthwise one, then another 1x1
 * convolution.
 *
 * Tolerance: as many rounding errors as products contribute to an element of y, M windows of R S sums of C, plus the
 * activations. */
#include "kernels.h"

#include "calculators/fusions/inverted_residual.h"

typedef struct geometry {
    int64_t n, c, h, w, m, k;
    int size, stride, before[2], after[2];
} geometry;

enum { NOTHING = 0 }; /* m for blocks without an expansion */

typedef struct activations {
    sdlf_activation expanded, filtered, last;
} activations;

static const sdlf_activation clip = {.function = SDLF_CLIP, .low = 0, .high = 0.75f};

static void block(kernel_sink *sink, const geometry *g, sdlf_dtype t, bool biases, bool residual, bool last,
                  const activations *a, const char *text)
{
    kernel_case made = {.operation = {.kind = SDLF_FUSED, .fused = {.fusion = &sdlf_inverted_residual_fusion}}};
    sdlf_operation *o = &made.operation;
    inverted_residual_options *options = inverted_residual_options_in(o);
    sdlf_window2d *window = &options->window;
    bool expands = g->m != NOTHING;
    int64_t m = expands ? g->m : g->c;
    for (int i = 0; i < 2; i++) {
        window->size[i] = g->size;
        window->stride[i] = g->stride;
        window->dilation[i] = 1;
        window->padding_before[i] = g->before[i];
        window->padding_after[i] = g->after[i];
    }
    if (expands) options->expanded = a->expanded;
    options->filtered = a->filtered;
    options->activation = a->last;
    sdlf_shape y = sdlf_shape(g->n, g->k, sdlf_window2d_output(window, 0, g->h), sdlf_window2d_output(window, 1, g->w));
    o->in[0] = kernel_tensor(t, sdlf_shape(g->n, g->c, g->h, g->w));
    o->in[1] = kernel_tensor(t, sdlf_shape(m, 1, g->size, g->size));
    o->in[2] = kernel_tensor(t, sdlf_shape(g->k, m, 1, 1));
    if (expands) o->in[3] = kernel_tensor(t, sdlf_shape(m, g->c, 1, 1));
    if (biases && expands) o->in[4] = kernel_tensor(t, sdlf_shape(m));
    if (biases) o->in[5] = kernel_tensor(t, sdlf_shape(m)), o->in[6] = kernel_tensor(t, sdlf_shape(g->k));
    if (residual) o->in[7] = kernel_tensor(t, y);
    o->out[0] = kernel_tensor(t, y);
    if (last) *o = sdlf_operation_channels_last(o);
    made.tolerance = (double)(m * g->size * g->size + g->c) + 8;
    kernel_emit(sink, &made, "%dx%dx%dx%d m%d k%d %dx%d s%d p%d,%d,%d,%d%s%s%s%s", (int)g->n, (int)g->c, (int)g->h,
                (int)g->w, expands ? (int)m : 0, (int)g->k, g->size, g->size, g->stride, g->before[0], g->before[1],
                g->after[0], g->after[1], biases ? " biases" : "", residual ? " residual" : "", text,
                last ? " channels last" : "");
}

void conv2d_inverted_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const geometry geometries[] = {
        {1, 1, 1, 1, 1, 1, 3, 1, {1, 1}, {1, 1}},           {1, 3, 3, 3, 2, 5, 3, 1, {0, 0}, {0, 0}},
        {2, 5, 7, 9, 11, 4, 3, 1, {1, 1}, {1, 1}},          {2, 4, 8, 12, 16, 8, 3, 2, {1, 1}, {1, 1}},
        {1, 6, 9, 7, 9, 17, 3, 2, {0, 0}, {1, 1}},          {1, 8, 6, 5, 17, 3, 5, 1, {2, 2}, {2, 2}},
        {1, 160, 7, 7, 133, 160, 3, 1, {1, 1}, {1, 1}},     {1, 64, 14, 14, 140, 40, 3, 1, {1, 1}, {1, 1}},
        {1, 33, 15, 13, 100, 21, 3, 1, {2, 0}, {0, 2}},     {1, 16, 40, 36, 96, 24, 3, 2, {1, 1}, {1, 1}},
        {1, 24, 29, 56, 48, 24, 3, 1, {1, 1}, {1, 1}},      {1, 9, 10, 31, 50, 7, 3, 3, {1, 1}, {1, 1}},
        {1, 32, 30, 28, NOTHING, 16, 3, 1, {1, 1}, {1, 1}}, {2, 13, 9, 11, NOTHING, 6, 3, 2, {1, 1}, {1, 1}},
        {1, 18, 13, 17, 300, 30, 3, 2, {1, 1}, {1, 1}},     {3, 12, 4, 50, 72, 330, 3, 1, {1, 1}, {1, 1}},
    };
    const sdlf_activation identity = {.function = SDLF_IDENTITY}, relu = {.function = SDLF_RELU};
    const sdlf_activation silu = {.function = SDLF_SILU};
    const activations clips = {clip, clip, identity}, rectified = {relu, clip, relu}, rare = {silu, silu, identity};
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) {
        const geometry *g = &geometries[i];
        for (int last = 0; last < 2; last++) {
            block(sink, g, t, true, true, last != 0, &clips, " clip clip");
            block(sink, g, t, false, false, last != 0, &clips, " clip clip");
            block(sink, g, t, true, false, last != 0, &rectified, " relu clip relu");
            if (i < 3) block(sink, g, t, true, true, last != 0, &rare, " silu silu");
        }
    }
}

void conv2d_inverted_bench(kernel_sink *sink, sdlf_dtype t)
{
    static const geometry sizes[] = {
        /* MobileNetV2, one image */
        {1, 16, 112, 112, 96, 24, 3, 2, {1, 1}, {1, 1}}, {1, 24, 56, 56, 144, 24, 3, 1, {1, 1}, {1, 1}},
        {1, 24, 56, 56, 144, 32, 3, 2, {1, 1}, {1, 1}},  {1, 32, 28, 28, 192, 32, 3, 1, {1, 1}, {1, 1}},
        {1, 32, 28, 28, 192, 64, 3, 2, {1, 1}, {1, 1}},  {1, 64, 14, 14, 384, 64, 3, 1, {1, 1}, {1, 1}},
        {1, 64, 14, 14, 384, 96, 3, 1, {1, 1}, {1, 1}},  {1, 96, 14, 14, 576, 96, 3, 1, {1, 1}, {1, 1}},
        {1, 96, 14, 14, 576, 160, 3, 2, {1, 1}, {1, 1}}, {1, 160, 7, 7, 960, 160, 3, 1, {1, 1}, {1, 1}},
        {1, 160, 7, 7, 960, 320, 3, 1, {1, 1}, {1, 1}},
    };
    const activations clips = {clip, clip, {.function = SDLF_IDENTITY}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        block(sink, &sizes[i], t, true, false, false, &clips, "");
}
