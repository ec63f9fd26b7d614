/* SPDX-License-Identifier: MIT */
/* Cases of quantised operations. Their arithmetic is specified to the last bit, so every calculator must match the bits
 * of reference. */
#include "kernels.h"

#include <math.h>
#include <stdio.h>

typedef struct geometry {
    int64_t n, c, h, w, k;
    int groups, size[2], stride, dilation, before[2], after[2];
} geometry;

/* The possible types of x and y, with zero points and bounds. */
typedef struct types {
    sdlf_dtype x, y;
    int x_zero, y_zero;
    float low, high;
} types;

static const types all_types[] = {
    {SDLF_UINT8, SDLF_UINT8, 0, 0, 0, 255},       {SDLF_UINT8, SDLF_UINT8, 131, 97, 97, 200},
    {SDLF_INT8, SDLF_INT8, -128, 127, -128, 127}, {SDLF_INT8, SDLF_UINT8, 5, 128, 0, 255},
    {SDLF_UINT8, SDLF_INT8, 255, -3, -3, 127},    {SDLF_UINT8, SDLF_FLOAT32, 120, 0, -INFINITY, INFINITY},
    {SDLF_INT8, SDLF_FLOAT32, -7, 0, 0, 6},       {SDLF_UINT8, SDLF_INT32, 3, 0, 0, 0},
    {SDLF_INT8, SDLF_INT32, -128, 0, 0, 0},
};
enum { TYPES = sizeof all_types / sizeof all_types[0] };

/* Multipliers so small that most results are within the bounds; every other one is a power of two, so that many results
 * are halfway between two integers. */
static void scale_multipliers(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    if (!sdlf_tensor_present(&operation->in[3])) return;
    float *multiplier = operation->in[3].data;
    int64_t length = sdlf_shape_span(operation->in[1].shape, 1, 4);
    int power = ilogb(sqrt((double)length) * 60);
    for (int64_t k = 0; k < operation->in[1].shape.dim[0]; k++)
        multiplier[k] = ldexpf(k % 2 == 0 ? 1 : multiplier[k], -power);
}

static sdlf_window2d window_of(const geometry *g)
{
    sdlf_window2d window = {.stride = {g->stride, g->stride}, .dilation = {g->dilation, g->dilation}};
    for (int i = 0; i < 2; i++) {
        window.size[i] = g->size[i];
        window.padding_before[i] = g->before[i];
        window.padding_after[i] = g->after[i];
    }
    return window;
}

static void convolution(kernel_sink *sink, const geometry *g, const types *t, bool bias, bool wild)
{
    kernel_case made = {.operation = {.kind = SDLF_QUANTIZED_CONV2D}, .prepare = scale_multipliers};
    sdlf_operation *o = &made.operation;
    sdlf_window2d window = window_of(g);
    o->quantized_conv2d = (sdlf_quantized_conv2d_options){window, g->groups, t->x_zero, t->y_zero, t->low, t->high};
    o->in[0] = kernel_tensor(t->x, sdlf_shape(g->n, g->c, g->h, g->w));
    o->in[1] = kernel_tensor(SDLF_INT8, sdlf_shape(g->k, g->c / g->groups, g->size[0], g->size[1]));
    if (bias) o->in[2] = kernel_tensor(SDLF_INT32, sdlf_shape(g->k));
    if (t->y != SDLF_INT32) o->in[3] = kernel_tensor(SDLF_FLOAT32, sdlf_shape(g->k));
    if (t->y == SDLF_INT32 && bias) o->in[4] = kernel_tensor(t->x, sdlf_shape(1)), made.in[4].values = VALUES_ANYTHING;
    o->out[0] = kernel_tensor(
        t->y, sdlf_shape(g->n, g->k, sdlf_window2d_output(&window, 0, g->h), sdlf_window2d_output(&window, 1, g->w)));
    made.in[0].values = made.in[1].values = VALUES_ANYTHING;
    made.in[2] = wild ? (kernel_fill){.values = VALUES_ANYTHING} : (kernel_fill){VALUES_INTEGERS, 3000};
    made.in[3].values = VALUES_POSITIVE;
    char name[120];
    snprintf(name, sizeof name, "%dx%dx%dx%d k%d g%d %dx%d s%d d%d p%d,%d,%d,%d %s to %s%s%s", (int)g->n, (int)g->c,
             (int)g->h, (int)g->w, (int)g->k, g->groups, g->size[0], g->size[1], g->stride, g->dilation, g->before[0],
             g->before[1], g->after[0], g->after[1], sdlf_dtype_name(t->x), sdlf_dtype_name(t->y), bias ? " bias" : "",
             wild ? " that wraps around" : "");
    kernel_emit(sink, &made, "%s", name);
    *o = sdlf_operation_channels_last(o);
    kernel_emit(sink, &made, "%s channels last", name);
    sdlf_tensor x = o->in[0];
    o->in[0] = kernel_tensor(t->x, x.shape);
    if (sdlf_operation_is_mixed(o)) kernel_emit(sink, &made, "%s x row-major", name);
}

static const geometry geometries[] = {
    {1, 1, 1, 1, 1, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},     {1, 3, 9, 8, 16, 1, {3, 3}, 2, 1, {1, 1}, {1, 1}},
    {2, 3, 15, 13, 20, 1, {7, 7}, 2, 1, {3, 3}, {3, 3}},  {1, 16, 6, 5, 24, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},
    {2, 17, 5, 7, 33, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},   {1, 64, 7, 7, 65, 1, {3, 3}, 1, 1, {1, 1}, {1, 1}},
    {1, 8, 9, 11, 144, 1, {3, 3}, 1, 2, {2, 2}, {2, 2}},  {1, 32, 8, 9, 10, 1, {1, 1}, 2, 1, {0, 0}, {0, 0}},
    {1, 40, 9, 8, 40, 40, {3, 3}, 1, 1, {1, 1}, {1, 1}},  {2, 32, 10, 21, 32, 32, {3, 3}, 2, 1, {0, 0}, {1, 1}},
    {1, 19, 7, 12, 19, 19, {5, 5}, 1, 1, {2, 2}, {2, 2}}, {1, 6, 8, 8, 12, 6, {3, 3}, 1, 1, {1, 1}, {1, 1}},
    {1, 12, 6, 7, 20, 4, {3, 3}, 1, 1, {1, 1}, {1, 1}},   {2, 8, 6, 6, 40, 2, {1, 1}, 1, 1, {0, 0}, {0, 0}},
    {5, 50, 1, 1, 130, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},  {1, 4, 5, 40, 3, 1, {1, 5}, 1, 1, {0, 2}, {0, 2}},
    {1, 1, 12, 12, 6, 1, {5, 5}, 1, 1, {0, 0}, {0, 0}},   {3, 20, 4, 4, 97, 1, {3, 3}, 3, 1, {1, 0}, {0, 1}},
    {1, 300, 3, 3, 16, 1, {3, 3}, 1, 1, {1, 1}, {1, 1}},  {1, 24, 6, 6, 48, 1, {2, 2}, 2, 1, {0, 0}, {0, 0}},
};

static void elements(kernel_sink *sink, const types *t, int64_t count)
{
    kernel_case made = {.operation = {.kind = SDLF_QUANTIZE}};
    sdlf_operation *o = &made.operation;
    sdlf_tensor x = kernel_tensor(t->x, sdlf_shape(count)), y = kernel_tensor(t->y, sdlf_shape(count));
    const char *from = sdlf_dtype_name(t->x), *to = sdlf_dtype_name(t->y);
    if (t->y != SDLF_FLOAT32 && t->y != SDLF_INT32) {
        o->in[0] = kernel_tensor(SDLF_FLOAT32, x.shape), o->out[0] = y;
        o->quantize = (sdlf_quantize_options){0.25f, t->y_zero, t->low, t->high};
        made.in[0].values = VALUES_ANYTHING;
        kernel_emit(sink, &made, "%d to %s, anything", (int)count, to);
        made.in[0].values = VALUES_WIDE;
        kernel_emit(sink, &made, "%d to %s", (int)count, to);
        o->quantize.scale = 0.0625f, made.in[0].values = VALUES_GRID; /* many ties */
        kernel_emit(sink, &made, "%d to %s, ties", (int)count, to);
    }
    made.operation =
        (sdlf_operation){.kind = SDLF_DEQUANTIZE, .in = {x}, .out = {kernel_tensor(SDLF_FLOAT32, x.shape)}};
    o->quantize = (sdlf_quantize_options){.scale = 0.037f, .zero = t->x_zero};
    made.in[0].values = made.in[1].values = VALUES_ANYTHING;
    kernel_emit(sink, &made, "%d from %s", (int)count, from);
    if (t->y == SDLF_FLOAT32 || t->y == SDLF_INT32) return;
    made.operation = (sdlf_operation){.kind = SDLF_QUANTIZED_ADD, .in = {x, y}, .out = {y}};
    o->quantized_add = (sdlf_quantized_add_options){0.5f, 0.371f, t->x_zero, t->y_zero, t->y_zero, t->low, t->high};
    kernel_emit(sink, &made, "%d %s and %s", (int)count, from, to);
    made.aliased = true, made.alias = 1;
    kernel_emit(sink, &made, "%d %s and %s, in place", (int)count, from, to);
    made.aliased = false, o->in[1] = (sdlf_tensor){0};
    o->quantized_add.a_scale = 1.5f;
    kernel_emit(sink, &made, "%d %s alone", (int)count, from);
}

static void pool(kernel_sink *sink, const geometry *g, const types *t, bool average, bool count_padding, float scale)
{
    if (t->y == SDLF_FLOAT32 || t->y == SDLF_INT32) return;
    kernel_case made = {.operation = {.kind = SDLF_QUANTIZED_POOL2D}};
    sdlf_operation *o = &made.operation;
    sdlf_window2d window = window_of(g);
    o->quantized_pool2d =
        (sdlf_quantized_pool2d_options){window, average, count_padding, scale, t->x_zero, t->y_zero, t->low, t->high};
    o->in[0] = kernel_tensor(t->x, sdlf_shape(g->n, g->c, g->h, g->w));
    o->out[0] = kernel_tensor(
        t->y, sdlf_shape(g->n, g->c, sdlf_window2d_output(&window, 0, g->h), sdlf_window2d_output(&window, 1, g->w)));
    made.in[0].values = VALUES_ANYTHING;
    char name[120];
    snprintf(name, sizeof name, "%dx%dx%dx%d %s%s %dx%d s%d d%d scale %g %s to %s", (int)g->n, (int)g->c, (int)g->h,
             (int)g->w, average ? "mean" : "largest", count_padding ? " with padding" : "", g->size[0], g->size[1],
             g->stride, g->dilation, (double)scale, sdlf_dtype_name(t->x), sdlf_dtype_name(t->y));
    kernel_emit(sink, &made, "%s", name);
    *o = sdlf_operation_channels_last(o);
    kernel_emit(sink, &made, "%s channels last", name);
}

static const geometry pools[] = {
    {1, 1, 1, 1, 0, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},  {2, 70, 9, 8, 0, 1, {3, 3}, 2, 1, {1, 1}, {1, 1}},
    {1, 5, 6, 7, 0, 1, {2, 2}, 2, 1, {0, 0}, {0, 0}},  {1, 130, 7, 7, 0, 1, {7, 7}, 1, 1, {0, 0}, {0, 0}},
    {1, 24, 9, 9, 0, 1, {3, 2}, 1, 2, {1, 0}, {1, 1}},
};

/* zeros: 0 none, 1 one for all, 2 one per row or column, 3 given as options. */
typedef struct product_form {
    sdlf_dtype a, b, y;
    int zeros;
    bool one_b, scales, bias; /* one matrix for all; one scale per column; has a bias */
} product_form;

static void product(kernel_sink *sink, const int64_t size[4], const product_form *f)
{
    const int64_t batch = size[0], m = size[1], k = size[2], n = size[3];
    const bool is_signed = f->y == SDLF_INT8, wide = f->y == SDLF_FLOAT32;
    kernel_case made = {.operation = {.kind = SDLF_INTEGER_MATMUL}};
    sdlf_operation *o = &made.operation;
    o->in[0] = kernel_tensor(f->a, sdlf_shape(batch, m, k));
    o->in[1] = kernel_tensor(f->b, sdlf_shape(batch, k, n));
    if (f->one_b) o->in[1] = sdlf_tensor_broadcast(kernel_tensor(f->b, sdlf_shape(1, k, n)), sdlf_shape(batch, k, n));
    if (f->zeros == 1 || f->zeros == 2) {
        o->in[2] = kernel_tensor(f->a, sdlf_shape(f->zeros > 1 ? m : 1));
        o->in[3] = kernel_tensor(f->b, sdlf_shape(f->zeros > 1 ? n : 1));
    }
    o->out[0] = kernel_tensor(f->y, sdlf_shape(batch, m, n));
    for (int i = 0; i < 4; i++) made.in[i].values = VALUES_ANYTHING;
    if (f->zeros == 3) o->integer_matmul.a_zero = 100, o->integer_matmul.b_zero = 3;
    if (f->y != SDLF_INT32) {
        o->integer_matmul.scale = 0.00137f;
        if (f->scales) o->in[4] = kernel_tensor(SDLF_FLOAT32, sdlf_shape(n));
        if (f->bias) o->in[5] = kernel_tensor(SDLF_FLOAT32, sdlf_shape(f->scales ? n : 1));
        o->integer_matmul.low = wide ? -INFINITY : is_signed ? -128 : 0;
        o->integer_matmul.high = wide ? 1000 : is_signed ? 127 : 200;
        o->integer_matmul.y_zero = wide ? 0 : is_signed ? -7 : 128;
    }
    kernel_emit(sink, &made, "%d of %dx%d %s, %dx%d %s%s to %s, zeros %d%s%s", (int)batch, (int)m, (int)k,
                sdlf_dtype_name(f->a), (int)k, (int)n, sdlf_dtype_name(f->b), f->one_b ? " for all" : "",
                sdlf_dtype_name(f->y), f->zeros, f->scales ? " scales" : "", f->bias ? " bias" : "");
}

static void products(kernel_sink *sink)
{
    static const sdlf_dtype byte_types[] = {SDLF_UINT8, SDLF_INT8},
                            results[] = {SDLF_INT32, SDLF_FLOAT32, SDLF_UINT8, SDLF_INT8};
    static const int64_t sizes[][4] = {{1, 1, 1, 1},    {1, 1, 7, 3},    {2, 3, 4, 5},     {1, 17, 33, 65},
                                       {3, 14, 64, 16}, {1, 1, 300, 97}, {2, 29, 130, 70}, {1, 40, 1027, 24}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int j = 0; j < 64; j++) {
            product_form f = {.a = byte_types[j % 2], .b = byte_types[j / 2 % 2], .y = results[j / 4 % 4]};
            f.zeros = j / 16, f.one_b = sizes[i][0] > 1 && j % 3 == 0;
            f.scales = f.y != SDLF_INT32 && j % 5 < 3, f.bias = f.y != SDLF_INT32 && j % 7 < 3;
            product(sink, sizes[i], &f);
        }
}

static void dynamic(kernel_sink *sink, int64_t count)
{
    kernel_case made = {.operation = {.kind = SDLF_DYNAMIC_QUANTIZE}};
    sdlf_operation *o = &made.operation;
    o->in[0] = kernel_tensor(SDLF_FLOAT32, sdlf_shape(count));
    o->out[0] = kernel_tensor(SDLF_UINT8, sdlf_shape(count));
    o->out[1] = kernel_tensor(SDLF_FLOAT32, sdlf_shape(1));
    o->out[2] = kernel_tensor(SDLF_UINT8, sdlf_shape(1));
    kernel_emit(sink, &made, "%d numbers", (int)count);
    made.in[0].values = VALUES_GRID;
    kernel_emit(sink, &made, "%d numbers of a grid", (int)count);
}

void quantized_cases(kernel_sink *sink, sdlf_dtype t)
{
    if (t != SDLF_FLOAT32) return;
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++)
        for (int j = 0; j < TYPES; j++)
            convolution(sink, &geometries[i], &all_types[j], (i + (size_t)j) % 3 != 0, j == 4);
    products(sink);
    static const int64_t of_range[] = {1, 15, 64, 1000, 100003};
    for (size_t i = 0; i < sizeof of_range / sizeof of_range[0]; i++) dynamic(sink, of_range[i]);
    for (int j = 0; j < TYPES; j++) {
        static const int64_t counts[] = {1, 15, 64, 1000, 40000};
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) elements(sink, &all_types[j], counts[i]);
        for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
            pool(sink, &pools[i], &all_types[j], false, false, 1);
            pool(sink, &pools[i], &all_types[j], false, false, 0.7f);
            pool(sink, &pools[i], &all_types[j], true, false, 1.25f);
            pool(sink, &pools[i], &all_types[j], true, true, 1);
        }
    }
}

void quantized_bench(kernel_sink *sink, sdlf_dtype t)
{
    static const geometry sizes[] = {
        /* ResNet-18, one image */
        {1, 3, 224, 224, 64, 1, {7, 7}, 2, 1, {3, 3}, {3, 3}},
        {1, 64, 56, 56, 64, 1, {3, 3}, 1, 1, {1, 1}, {1, 1}},
        {1, 128, 28, 28, 128, 1, {3, 3}, 1, 1, {1, 1}, {1, 1}},
        {1, 256, 14, 14, 256, 1, {3, 3}, 1, 1, {1, 1}, {1, 1}},
        {1, 512, 7, 7, 512, 1, {3, 3}, 1, 1, {1, 1}, {1, 1}},
        {1, 512, 1, 1, 1000, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},
        /* MobileNetV2, one image */
        {1, 32, 112, 112, 32, 32, {3, 3}, 1, 1, {1, 1}, {1, 1}},
        {1, 16, 112, 112, 96, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},
        {1, 144, 56, 56, 144, 144, {3, 3}, 1, 1, {1, 1}, {1, 1}},
        {1, 144, 56, 56, 24, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},
        {1, 384, 14, 14, 384, 384, {3, 3}, 1, 1, {1, 1}, {1, 1}},
        {1, 384, 14, 14, 64, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},
        {1, 160, 7, 7, 960, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},
        {1, 320, 7, 7, 1280, 1, {1, 1}, 1, 1, {0, 0}, {0, 0}},
    };
    (void)t;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        convolution(sink, &sizes[i], &all_types[0], true, false);
    static const int64_t matrices[][4] = {
        {1, 128, 768, 768}, {1, 128, 768, 3072}, {1, 1, 768, 3072}, {12, 128, 64, 128}};
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++)
        product(sink, matrices[i], &(product_form){.a = SDLF_UINT8, .b = SDLF_INT8, .y = SDLF_INT32, .zeros = 1});
}
