/* SPDX-License-Identifier: MIT */
/* Cases of max_pool2d, avg_pool2d and global_avg_pool2d.
 *
 * Maxima are exact. Means and gradients are sums of at most as many terms as a window has positions (or a channel has
 * pixels), each off by one rounding error. */
#include "kernels.h"

#include <stdio.h>

typedef struct geometry {
    int64_t n, c, h, w;
    sdlf_window2d window;
    bool may_be_empty; /* some window is all padding: only for averages that count padding */
} geometry;

static const geometry geometries[] = {
    {1, 1, 1, 1, {{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, false},
    {2, 3, 8, 8, {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}, false},
    {2, 3, 9, 7, {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}, false}, /* a row and a column left over */
    {1, 5, 11, 35, {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}, false},
    {1, 2, 4, 70, {{2, 3}, {2, 2}, {1, 1}, {0, 1}, {0, 1}}, false}, /* long rows */
    {2, 3, 9, 9, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, false},  /* overlapping */
    {2, 2, 7, 8, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, false},
    {1, 3, 10, 12, {{3, 2}, {2, 3}, {1, 1}, {2, 0}, {0, 1}}, false}, /* nothing symmetric */
    {1, 2, 9, 9, {{2, 3}, {1, 2}, {3, 2}, {1, 2}, {2, 1}}, false},   /* dilation */
    {1, 2, 9, 9, {{2, 2}, {3, 4}, {1, 1}, {0, 0}, {0, 0}}, false},   /* gaps between windows */
    {2, 3, 5, 6, {{5, 6}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, false},   /* one window */
    {1, 2, 3, 3, {{7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}}, false},   /* larger than the input */
    {1, 2, 4, 4, {{2, 2}, {2, 2}, {1, 1}, {2, 2}, {2, 2}}, true},
    {2, 67, 7, 5, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, false}, /* many channels */
    {2, 72, 9, 8, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, false}, /* in eights */
    {1, 8, 9, 9, {{2, 3}, {1, 2}, {3, 2}, {1, 2}, {2, 1}}, false},  /* the same, dilation */
    {1, 2, 6, 9, {{2, 4}, {1, 1}, {2, 1}, {1, 0}, {0, 3}}, false},  /* stride 1, nothing symmetric */
    {2, 3, 5, 62, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, false}, /* 64 elements with padding */
    {2, 3, 5, 66, {{3, 5}, {1, 1}, {1, 1}, {1, 2}, {1, 2}}, false}, /* and more */
    {1, 1, 257, 3, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, false},
    {3, 128, 7, 7, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, false}, /* several planes each task */
};

static kernel_case pool(sdlf_operation_kind kind, const geometry *g)
{
    return (kernel_case){.operation = {.kind = kind, .pool2d.window = g->window}};
}

static void emit(kernel_sink *sink, const kernel_case *made, const geometry *g, const char *text)
{
    const sdlf_window2d *v = &g->window;
    kernel_emit(sink, made, "%dx%dx%dx%d %dx%d s%d,%d d%d,%d p%d,%d,%d,%d%s", (int)g->n, (int)g->c, (int)g->h,
                (int)g->w, v->size[0], v->size[1], v->stride[0], v->stride[1], v->dilation[0], v->dilation[1],
                v->padding_before[0], v->padding_before[1], v->padding_after[0], v->padding_after[1], text);
}

/* Compute with the forward pass the y that the backward pass reads. */
static void pool_first(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_operation forward = {.kind = SDLF_MAX_POOL2D_FORWARD, .in = {operation->in[0]}, .out = {operation->in[1]}};
    forward.pool2d = operation->pool2d;
    kernel_prepare(calculator, &forward);
}

/* The text of a case: its kind, and the layout of its images. */
static const char *said(const char *what, bool last)
{
    static char text[64];
    snprintf(text, sizeof text, "%s%s", what, last ? " channels last" : "");
    return text;
}

static void max_pool(kernel_sink *sink, const geometry *g, sdlf_tensor x, sdlf_tensor y, bool last)
{
    kernel_case forward = pool(SDLF_MAX_POOL2D_FORWARD, g);
    forward.operation.in[0] = x;
    forward.operation.out[0] = y;
    emit(sink, &forward, g, said("", last));
    forward.in[0].values = VALUES_GRID_NAN;
    emit(sink, &forward, g, said(" with NaN", last));

    kernel_case backward = pool(SDLF_MAX_POOL2D_BACKWARD, g);
    backward.operation.in[0] = backward.operation.out[0] = x;
    backward.operation.in[1] = backward.operation.in[2] = y;
    backward.prepare = pool_first;
    backward.tolerance = g->window.size[0] * g->window.size[1] + 4;
    emit(sink, &backward, g, said("", last));
    backward.in[0].values = VALUES_GRID;
    emit(sink, &backward, g, said(" with ties", last));
    backward.operation.pool2d.ties = SDLF_TIES_FIRST;
    emit(sink, &backward, g, said(" with ties, to the first", last));
}

static void avg_pool(kernel_sink *sink, const geometry *g, sdlf_tensor x, sdlf_tensor y, bool count_padding, bool last)
{
    const char *what = count_padding ? " count padding" : "";
    kernel_case forward = pool(SDLF_AVG_POOL2D_FORWARD, g);
    forward.operation.in[0] = x;
    forward.operation.out[0] = y;
    forward.operation.pool2d.count_padding = count_padding;
    forward.tolerance = g->window.size[0] * g->window.size[1] + 4;
    emit(sink, &forward, g, said(what, last));
    kernel_case backward = forward;
    backward.operation.kind = SDLF_AVG_POOL2D_BACKWARD;
    backward.operation.in[0] = y;
    backward.operation.out[0] = x;
    emit(sink, &backward, g, said(what, last));
}

static void global_of(kernel_sink *sink, sdlf_tensor x, sdlf_tensor y, bool last)
{
    const char *shape = sdlf_shape_print(x.shape).text;
    kernel_case made = {.operation = {.kind = SDLF_GLOBAL_AVG_POOL2D_FORWARD, .in = {x}, .out = {y}}};
    made.tolerance = 16; /* the errors of the sum are divided by the count too */
    kernel_emit(sink, &made, "%s%s", shape, said("", last));
    made.operation.kind = SDLF_GLOBAL_AVG_POOL2D_BACKWARD;
    made.operation.in[0] = y;
    made.operation.out[0] = x;
    made.tolerance = 4;
    made.floor = 1e-6;
    kernel_emit(sink, &made, "%s%s", shape, said("", last));
}

static void global_pool(kernel_sink *sink, sdlf_dtype t, sdlf_shape shape)
{
    sdlf_tensor x = kernel_tensor(t, shape), y = kernel_tensor(t, sdlf_shape(shape.dim[0], shape.dim[1], 1, 1));
    global_of(sink, x, y, false);
    global_of(sink, sdlf_tensor_channels_last(x), y, true);
}

static void all_of(kernel_sink *sink, const geometry *g, sdlf_dtype t)
{
    int64_t p = sdlf_window2d_output(&g->window, 0, g->h), q = sdlf_window2d_output(&g->window, 1, g->w);
    for (int last = 0; last <= 1; last++) {
        sdlf_tensor x = kernel_tensor(t, sdlf_shape(g->n, g->c, g->h, g->w)),
                    y = kernel_tensor(t, sdlf_shape(g->n, g->c, p, q));
        if (last) x = sdlf_tensor_channels_last(x);
        if (last) y = sdlf_tensor_channels_last(y);
        avg_pool(sink, g, x, y, true, last);
        if (g->may_be_empty) continue;
        max_pool(sink, g, x, y, last);
        avg_pool(sink, g, x, y, false, last);
    }
}

void pool2d_cases(kernel_sink *sink, sdlf_dtype t)
{
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) all_of(sink, &geometries[i], t);
    global_pool(sink, t, sdlf_shape(1, 1, 1, 1));
    global_pool(sink, t, sdlf_shape(3, 5, 7, 7));
    global_pool(sink, t, sdlf_shape(2, 17, 1, 19));
    global_pool(sink, t, sdlf_shape(2, 130, 5, 7));
    global_pool(sink, t, sdlf_shape(1, 3, 33, 31));
}

void pool2d_bench(kernel_sink *sink, sdlf_dtype t)
{
    static const geometry sizes[] = {
        {64, 32, 28, 28, {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}, false},
        {8, 64, 112, 112, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, false},
    };
    for (int i = 0; i < 2; i++) all_of(sink, &sizes[i], t);
    global_pool(sink, t, sdlf_shape(32, 512, 7, 7));
}
