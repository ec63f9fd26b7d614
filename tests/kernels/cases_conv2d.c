/* SPDX-License-Identifier: MIT */
/* Cases of conv2d and its gradients.
 *
 * Tolerance: each output is a dot product of terms up to 1 (C/G R S of them forward, K/G R S for dx, N P Q for dw and
 * db), and is off by at most about as many rounding errors; 8 more for the epilogue, or 16 if it contains an
 * exponential. */
#include "conv2d_geometries.h"
#include "kernels.h"

#include <stdio.h>

static sdlf_window2d window_of(const geometry *g)
{
    sdlf_window2d window;
    for (int i = 0; i < 2; i++) {
        window.size[i] = g->size[i];
        window.stride[i] = g->stride[i];
        window.dilation[i] = g->dilation[i];
        window.padding_before[i] = g->before[i];
        window.padding_after[i] = g->after[i];
    }
    return window;
}

static void emit(kernel_sink *sink, const kernel_case *made, const geometry *g, const char *text)
{
    kernel_emit(sink, made, "%dx%dx%dx%d k%d %dx%d s%d,%d d%d,%d p%d,%d,%d,%d g%d%s", (int)g->n, (int)g->c, (int)g->h,
                (int)g->w, (int)g->k, g->size[0], g->size[1], g->stride[0], g->stride[1], g->dilation[0],
                g->dilation[1], g->before[0], g->before[1], g->after[0], g->after[1], g->groups, text);
}

/* Operands of the three kinds: x, w, y and bias. */
typedef struct operands {
    sdlf_tensor x, w, y, bias;
} operands;

static operands operands_of(const geometry *g, sdlf_dtype t)
{
    sdlf_window2d window = window_of(g);
    operands o = {
        .x = kernel_tensor(t, sdlf_shape(g->n, g->c, g->h, g->w)),
        .w = kernel_tensor(t, sdlf_shape(g->k, g->c / g->groups, g->size[0], g->size[1])),
        .y = kernel_tensor(
            t, sdlf_shape(g->n, g->k, sdlf_window2d_output(&window, 0, g->h), sdlf_window2d_output(&window, 1, g->w))),
        .bias = kernel_tensor(t, sdlf_shape(g->k)),
    };
    return o;
}

static kernel_case conv2d(sdlf_operation_kind kind, const geometry *g)
{
    kernel_case made = {.operation = {.kind = kind, .conv2d = {.window = window_of(g), .groups = g->groups}}};
    return made;
}

static void forward_of(kernel_sink *sink, const geometry *g, operands o, const char *layout, bool bias, bool residual,
                       int activation)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s%s%s", layout, bias ? " bias" : "", residual ? " residual" : "",
             kernel_activation_name[activation]);
    kernel_case made = conv2d(SDLF_CONV2D_FORWARD, g);
    made.operation.in[0] = o.x;
    made.operation.in[1] = o.w;
    if (bias) made.operation.in[2] = o.bias;
    if (residual) made.operation.in[3] = o.y;
    made.operation.out[0] = o.y;
    made.operation.conv2d.activation = kernel_activation[activation];
    made.tolerance = (double)(g->c / g->groups * g->size[0] * g->size[1]) + (activation ? 24 : 8);
    emit(sink, &made, g, text);
    if (!residual) return;
    made.aliased = true;
    made.alias = 3;
    emit(sink, &made, g, text);
}

static void forward(kernel_sink *sink, const geometry *g, sdlf_dtype t, bool bias, bool residual, int activation)
{
    operands o = operands_of(g, t);
    forward_of(sink, g, o, "", bias, residual, activation);
    const sdlf_tensor x = o.x;
    o.x = sdlf_tensor_channels_last(o.x);
    o.y = sdlf_tensor_channels_last(o.y);
    forward_of(sink, g, o, " channels last", bias, residual, activation);
    if (g->c > 4) return;
    o.x = x;
    forward_of(sink, g, o, " channels last but x", bias, residual, activation);
}

static void backward_of(kernel_sink *sink, const geometry *g, operands o, const char *layout)
{
    char text[64];
    kernel_case input = conv2d(SDLF_CONV2D_BACKWARD_INPUT, g);
    input.operation.in[0] = o.y;
    input.operation.in[1] = o.w;
    input.operation.out[0] = o.x;
    input.tolerance = (double)(g->k / g->groups * g->size[0] * g->size[1]) + 8;
    emit(sink, &input, g, layout);
    input.operation.in[2] = o.x;
    input.tolerance += 8;
    snprintf(text, sizeof text, "%s residual", layout);
    emit(sink, &input, g, text);
    input.aliased = true;
    input.alias = 2;
    emit(sink, &input, g, text);

    kernel_case weights = conv2d(SDLF_CONV2D_BACKWARD_WEIGHTS, g);
    weights.operation.in[0] = o.x;
    weights.operation.in[1] = o.y;
    weights.operation.out[0] = o.w;
    weights.tolerance = (double)(g->n * o.y.shape.dim[2] * o.y.shape.dim[3]) + 8;
    emit(sink, &weights, g, layout);
    weights.operation.out[1] = o.bias;
    snprintf(text, sizeof text, "%s db", layout);
    emit(sink, &weights, g, text);
}

static void backward(kernel_sink *sink, const geometry *g, sdlf_dtype t)
{
    operands o = operands_of(g, t);
    backward_of(sink, g, o, "");
    o.x = sdlf_tensor_channels_last(o.x);
    o.y = sdlf_tensor_channels_last(o.y);
    backward_of(sink, g, o, " channels last");
}

/* A sink that marks the cases that it passes on. */
typedef struct device_sink {
    kernel_sink sink;
    kernel_sink *to;
} device_sink;

static void pass_on(kernel_sink *sink, const kernel_case *made)
{
    kernel_sink *to = ((device_sink *)sink)->to;
    kernel_case marked = *made;
    marked.fills_device = true;
    to->take(to, &marked);
}

void conv2d_cases(kernel_sink *sink, sdlf_dtype t)
{
    device_sink devices = {{pass_on}, sink};
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) {
        forward(sink, &geometries[i], t, false, false, SDLF_IDENTITY);
        forward(sink, &geometries[i], t, true, false, SDLF_RELU);
        forward(sink, &geometries[i], t, true, true, SDLF_CLIP);
        backward(sink, &geometries[i], t);
    }
    for (size_t i = 0; i < sizeof depthwise / sizeof depthwise[0]; i++) {
        forward(sink, &depthwise[i], t, true, true, SDLF_CLIP);
        backward(sink, &depthwise[i], t);
    }
    for (size_t i = 0; i < sizeof sliding / sizeof sliding[0]; i++) backward(sink, &sliding[i], t);
    for (size_t i = 0; i < sizeof filling / sizeof filling[0] && t == SDLF_FLOAT32; i++) {
        forward(&devices.sink, &filling[i], t, true, false, SDLF_RELU);
        backward(&devices.sink, &filling[i], t);
    }
    for (size_t i = 0; i < sizeof filling_forward / sizeof filling_forward[0]; i++)
        forward(&devices.sink, &filling_forward[i], t, true, false, SDLF_RELU);
    for (size_t i = 0; i < sizeof stored / sizeof stored[0] && t == SDLF_FLOAT32; i++) {
        forward(&devices.sink, &stored[i], t, true, false, SDLF_RELU);
        forward(&devices.sink, &stored[i], t, true, true, SDLF_CLIP);
    }
    for (size_t i = 0; i < sizeof residuals / sizeof residuals[0] && t == SDLF_FLOAT32; i++) {
        forward(&devices.sink, &residuals[i], t, true, true, SDLF_CLIP);
        forward(&devices.sink, &residuals[i], t, false, i % 2 == 0, i % 4 < 2 ? SDLF_SILU : SDLF_LEAKY_RELU);
        backward(&devices.sink, &residuals[i], t);
    }
    for (size_t i = 0; i < sizeof halos / sizeof halos[0] && t == SDLF_FLOAT32; i++) {
        forward(&devices.sink, &halos[i], t, false, false, SDLF_IDENTITY);
        forward(&devices.sink, &halos[i], t, true, true, SDLF_CLIP);
        backward(&devices.sink, &halos[i], t);
    }
    for (size_t i = 0; i < sizeof planes / sizeof planes[0] && t == SDLF_FLOAT32; i++)
        forward(&devices.sink, &planes[i], t, true, i % 2 == 0, SDLF_RELU);
    for (int combination = 0; combination < 4 * KERNEL_EPILOGUES; combination++) {
        forward(sink, &geometries[1], t, combination & 1, combination & 2, combination / 4);
        forward(sink, &geometries[6], t, combination & 1, combination & 2, combination / 4);
        forward(sink, &sliding[0], t, combination & 1, combination & 2, combination / 4);
        forward(sink, &sliding[1], t, combination & 1, combination & 2, combination / 4);
    }
}

void conv2d_bench(kernel_sink *sink, sdlf_dtype t)
{
    static const geometry sizes[] = {
        {64, 1, 28, 28, 32, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 1},    /* simple_cnn */
        {64, 6, 14, 14, 16, {5, 5}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},    /* lenet5 */
        {8, 64, 56, 56, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},    /* residual networks */
        {8, 64, 56, 56, 128, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},   /* with strides */
        {8, 64, 28, 28, 256, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},   /* 1x1 */
        {8, 96, 56, 56, 96, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 96},   /* depthwise */
        {1, 64, 112, 112, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, /* VGG16, one image */
        {1, 512, 28, 28, 512, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
        {1, 512, 14, 14, 512, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
        {32, 64, 56, 56, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, /* ResNet-18, 32 images */
        {32, 256, 14, 14, 256, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
        {32, 96, 56, 56, 24, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, /* MobileNetV2, 32 images */
        {32, 64, 14, 14, 384, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
        {32, 144, 56, 56, 144, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 144},
        {32, 96, 112, 112, 96, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 96},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        forward(sink, &sizes[i], t, true, false, SDLF_RELU);
        backward(sink, &sizes[i], t);
    }
}
