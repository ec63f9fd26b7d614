/* SPDX-License-Identifier: MIT */
/* Cases of conv2d and its gradients.
 *
 * Tolerance: each output is a sum of so many products of numbers within 1 (C/G R S forward, K/G R S for dx, N P Q for
 * dw and db), and is off by at most about as many rounding errors; 8 more for the epilogue, 16 where it holds an
 * exponential. */
#include "kernels.h"

#include <stdio.h>

typedef struct geometry {
    int64_t n, c, h, w, k;
    int size[2], stride[2], dilation[2], before[2], after[2], groups;
} geometry;

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

static const geometry geometries[] = {
    {1, 1, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {2, 3, 7, 5, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, 1, 14, 13, 32, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 1},  /* a first layer */
    {3, 5, 9, 11, 7, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},    /* strides */
    {2, 4, 8, 8, 6, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}, 1},     /* dilation */
    {2, 4, 10, 7, 8, {2, 3}, {2, 1}, {1, 2}, {0, 1}, {2, 0}, 1},    /* nothing symmetric */
    {2, 6, 9, 9, 6, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 6},     /* depthwise */
    {1, 33, 9, 8, 33, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 33},  /* depthwise, strides */
    {1, 6, 9, 9, 12, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}, 6},    /* two filters a channel */
    {2, 6, 5, 5, 9, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 3},     /* groups */
    {2, 8, 6, 6, 5, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},     /* 1x1 */
    {2, 8, 7, 7, 5, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1},     /* 1x1, strides */
    {1, 3, 4, 4, 2, {4, 4}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},     /* one output */
    {1, 2, 3, 3, 3, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 1},     /* a window larger than its input */
    {1, 2, 3, 4, 3, {2, 2}, {1, 1}, {1, 1}, {3, 3}, {3, 3}, 1},     /* outputs of padding alone */
    {1, 2, 9, 9, 3, {2, 2}, {3, 3}, {1, 1}, {0, 0}, {0, 0}, 1},     /* inputs that no window holds */
    {1, 4, 1, 17, 3, {1, 5}, {1, 1}, {1, 1}, {0, 2}, {0, 2}, 1},    /* one row */
    {1, 17, 13, 19, 33, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, /* no multiple of any block */
    {5, 16, 14, 14, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {1, 3, 19, 67, 68, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, 1}, /* a first layer with a stride */
    {1, 300, 7, 7, 45, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, /* 1x1, long sums of few pixels */
    {2, 66, 9, 5, 33, {1, 1}, {2, 1}, {1, 1}, {0, 0}, {0, 0}, 1},  /* the same, strides */
    {2, 40, 7, 7, 72, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},  /* 1x1, many channels */
    {3, 24, 8, 8, 40, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 4},  /* 1x1, groups */
    {1, 70, 5, 6, 130, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, /* a long sum, few pixels */
    {2, 6, 11, 13, 18, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 6}, /* three filters a channel */
    {2, 5, 12, 9, 5, {3, 5}, {1, 2}, {2, 1}, {2, 2}, {2, 2}, 5},   /* depthwise, nothing symmetric */
    {2,
     64,
     13,
     11,
     72,
     {3, 3},
     {2, 2},
     {1, 1},
     {1, 1},
     {1, 1},
     1}, /* channels in eights from here on: 16-bit storage */
    {1, 136, 9, 7, 40, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}, 1},
    {3, 3, 17, 16, 24, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {1, 2}, 1},  /* a first layer */
    {2, 12, 9, 9, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},   /* channels that are packed */
    {2, 32, 9, 8, 64, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1},   /* gradients of pixels that nothing reads */
    {7, 256, 1, 1, 136, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, /* a product of rows */
    {1, 4, 13, 17, 3, {4, 3}, {4, 6}, {2, 4}, {3, 4}, {3, 4}, 1},   /* strides and dilation with common divisors */
    {1, 3, 16, 16, 5, {3, 3}, {5, 3}, {1, 1}, {1, 1}, {1, 1}, 1},   /* a stride larger than the window */
    {1, 2, 40, 43, 3, {11, 9}, {1, 2}, {3, 4}, {5, 5}, {5, 5}, 1},  /* a large dilated window */
    {1, 2, 33, 20, 3, {17, 15}, {2, 1}, {1, 1}, {8, 7}, {8, 7}, 1}, /* 32 rows and columns */
    {2, 3, 9, 9, 4, {3, 3}, {1, 1}, {1, 1}, {5, 4}, {4, 5}, 1},     /* more padding than window */
    {1, 3, 23, 21, 70, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}, 1},  /* a first layer of many filters */
    {2, 48, 9, 17, 48, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 48}, /* depthwise, strips of columns */
    {1, 20, 9, 15, 20, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}, 20}, /* the same, strides, channels left over */
    {2, 130, 1, 1, 70, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},  /* one pixel */
    {1, 5, 3, 3, 2, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},     /* one output of 3x3 */
    {3, 2, 6, 131, 3, {3, 3}, {1, 1}, {1, 1}, {1, 0}, {0, 1}, 1},   /* a wide image */
    {2, 530, 3, 5, 9, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},   /* more channels than a product takes at once */
    {2, 96, 10, 14, 50, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, /* 1x1, planes of fours, sums in parts */
    {3, 200, 8, 8, 72, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {1, 120, 4, 5, 12, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {28, 8, 14, 14, 12, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {3, 32, 40, 40, 12, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, /* many pixels of few filters */
    {8, 136, 14, 14, 40, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {8, 24, 7, 7, 320, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, /* 1x1, many filters of planes of 49 */
    {3, 3, 21, 40, 40, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, /* a first layer whose lines are fours */
    {2, 2, 22, 39, 70, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1}, /* the same, strides */
    /* few channels: windows that overlap in memory, 16 bytes apart or not, in runs of 64 */
    {2, 3, 23, 141, 72, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 2}, 1},
    {2, 3, 8, 150, 16, {3, 3}, {1, 1}, {1, 2}, {1, 2}, {0, 1}, 1},
    {1, 1, 5, 1040, 8, {3, 9}, {1, 8}, {1, 1}, {1, 4}, {1, 4}, 1},
    {2, 6, 9, 40, 24, {3, 3}, {1, 1}, {2, 1}, {2, 1}, {2, 1}, 1},
    {1, 2, 30, 40, 8, {12, 3}, {1, 2}, {1, 1}, {5, 1}, {6, 1}, 1},
    {1, 3, 40, 70, 8, {11, 11}, {4, 4}, {1, 1}, {2, 2}, {2, 2}, 1},
    {2, 3, 20, 20, 16, {3, 3}, {1, 1}, {9, 9}, {9, 9}, {9, 9}, 1},
    /* groups that are joined to blocks of up to 64 filters: all of them full, the last one not, or each a group of its own */
    {2, 128, 9, 11, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 16},
    {3, 80, 8, 9, 80, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 5},
    {2, 72, 7, 10, 72, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}, 3},
    {2, 32, 12, 7, 64, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 4},
    {2, 256, 6, 7, 128, {3, 3}, {1, 1}, {1, 1}, {0, 1}, {1, 0}, 2},
    {1, 120, 9, 10, 120, {3, 2}, {2, 1}, {1, 1}, {1, 1}, {1, 0}, 3},
    {9, 64, 14, 14, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 16},
    {2, 128, 9, 11, 256, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
    {2, 72, 9, 10, 144, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 9},
    {2, 144, 9, 10, 72, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 9},
    {1, 144, 7, 8, 144, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
    {2, 60, 8, 7, 60, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 5},
};

/* Depthwise: rectangles of pixels of every width, and lines and paddings that none of them suits. */
static const geometry depthwise[] = {
    {3, 5, 11, 12, 5, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 5},
    {2, 7, 10, 10, 7, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 7},
    {2, 6, 9, 8, 12, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 6}, /* two filters a channel */
    {2, 6, 9, 8, 6, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 3}, 6},  /* results wider than the image */
    {2, 6, 9, 8, 6, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {2, 2}, 6},  /* padding behind alone */
    {1, 8, 16, 16, 8, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, 8},
    {1, 8, 2, 2, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 8}, /* two pixels a line */
    {1, 8, 3, 4, 8, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}, 8},
    {3, 40, 14, 14, 40, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 40},
    {5, 36, 7, 7, 36, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 36},
    {3, 76, 15, 14, 76, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 76},
    {2, 44, 29, 30, 44, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 44},
    {3,
     24,
     13,
     11,
     24,
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     24}, /* channels in eights from here on: 16-bit storage */
    {2, 144, 9, 14, 144, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 144},
    {2, 72, 12, 9, 72, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}, 72},
    {2, 48, 10, 13, 48, {7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}, 48},
    {2, 16, 12, 9, 16, {3, 5}, {1, 2}, {2, 1}, {2, 2}, {2, 2}, 16}, /* nothing symmetric */
    {1, 200, 5, 6, 200, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {1, 3}, 200},
    {2, 8, 9, 10, 8, {1, 3}, {3, 1}, {1, 1}, {0, 1}, {0, 1}, 8},
    {3, 16, 29, 30, 16, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 16},
};

/* Depthwise: windows that slide over wide images. */
static const geometry sliding[] = {
    {2, 16, 13, 18, 16, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 16},
    {2, 16, 13, 18, 16, {5, 5}, {2, 2}, {1, 1}, {1, 1}, {2, 2}, 16},
};

/* Depthwise, forward: planes enough to fill a large device with runs of them. */
static const geometry planes[] = {
    {24, 480, 7, 7, 480, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 480},
    {24, 472, 14, 14, 472, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 472},
    {12, 236, 14, 14, 236, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 236},
    {12, 236, 28, 28, 236, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 236},
};

/* Enough pixels to fill a large device with the largest tiles. */
static const geometry filling[] = {
    {9, 4, 64, 64, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {9, 128, 31, 33, 8, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, 32, 17, 16, 8, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, 32, 17, 16, 24, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, 32, 17, 16, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {3, 76, 111, 112, 76, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 76}, /* depthwise, the widest rectangles */
    {3, 64, 113, 112, 64, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 64},
};

/* The same, of kernels that compute forward alone. */
static const geometry filling_forward[] = {
    {1, 12, 113, 115, 70, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {2, 16, 64, 100, 40, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {1, 21, 64, 64, 72, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {1, 40, 90, 90, 72, {1, 1}, {2, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {1, 128, 112, 112, 128, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {8, 160, 29, 28, 256, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1},
    {1, 3, 530, 531, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {1, 1, 1060, 1062, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
    {1, 2, 380, 383, 2, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 1},
    {1, 96, 56, 57, 96, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 96},
    {1, 68, 37, 34, 132, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, /* shared steps and sums */
    {2, 36, 41, 30, 68, {3, 3}, {2, 1}, {1, 2}, {1, 2}, {1, 2}, 1},
    {38, 36, 8, 49, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},   /* tiles of whole lines */
    {38, 36, 17, 11, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, /* the same, shared sums */
    {12, 68, 17, 11, 68, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},  /* shared steps */
    {1, 100, 20, 70, 60, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {0, 1}, 1},
    {1, 36, 184, 186, 68, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, /* several tiles a block */
    {2, 36, 120, 122, 40, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, /* the same */
    {70, 1, 36, 97, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},   /* the same, few channels */
    {3, 3, 150, 131, 100, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {9, 2, 200, 131, 36, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
    {1, 8, 1, 4096, 1024, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {0, 1}, 1},  /* tiles of one line */
    {3, 68, 112, 112, 68, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 68}, /* depthwise, wide rectangles, strides */
    {3, 72, 110, 112, 72, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}, 72},
    {1, 32, 56, 57, 32, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}, 32}, /* depthwise, dilation */
    {2, 64, 57, 56, 64, {2, 3}, {1, 1}, {1, 2}, {0, 2}, {1, 2}, 64},
    {2, 16, 128, 132, 20, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, /* 1x1 of few channels: few filters, and many */
    {2, 40, 128, 132, 48, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {4, 24, 64, 68, 136, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {13, 8, 64, 68, 40, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {2, 32, 56, 56, 40, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {22, 16, 56, 56, 40, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {25, 8, 56, 56, 12, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {19, 264, 14, 14, 130, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {33, 104, 7, 7, 168, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
};

/* The same, with more tiles than a large device has multiprocessors: some that the copy engine stores. */
static const geometry stored[] = {
    {8, 8, 56, 57, 252, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {8, 8, 110, 115, 60, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {8, 12, 31, 56, 260, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},   /* tiles of whole lines */
    {12, 8, 41, 28, 188, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},   /* the same, counted through two groups */
    {40, 12, 14, 14, 260, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},  /* the same, of whole images */
    {140, 36, 13, 14, 132, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, /* all pixels one row */
    {20, 36, 31, 56, 68, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
};

/* More tiles than a large device computes at once, whose residuals are loaded ahead. */
static const geometry residuals[] = {
    {12, 40, 56, 57, 136, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {24, 64, 40, 40, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 8},
};

/* A sink that marks what it passes on. */
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
        backward(&devices.sink, &residuals[i], t);
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
