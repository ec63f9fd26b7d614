/* SPDX-License-Identifier: MIT */
/* Cases of the fused convolution, ReLU and max-pool.
 *
 * Values are on a grid on which sums are exact in any order, so that every calculator sees the same ties and must write
 * the same mask. Tolerance of y: 8 rounding errors, for algorithms with intermediate values off the grid. Tolerance of
 * the gradients: as for conv2d, as many rounding errors as there are terms. */
#include "kernels.h"

#include "calculators/fusions/conv2d_pool.h"
#include "testing.h"

#include <sdlf/random.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct geometry {
    int64_t n, c, h, w, k;
    int size, stride, padding, groups;
    int pool[2];
} geometry;

static sdlf_operation describe(const sdlf_fusion *fusion, const geometry *g, sdlf_ties ties)
{
    sdlf_operation o = {.kind = SDLF_FUSED, .fused = {.fusion = fusion}};
    conv2d_pool_options *options = conv2d_pool_options_in(&o);
    for (int i = 0; i < 2; i++) {
        options->window.size[i] = g->size;
        options->window.stride[i] = g->stride;
        options->window.dilation[i] = 1;
        options->window.padding_before[i] = options->window.padding_after[i] = g->padding;
        options->pool.size[i] = options->pool.stride[i] = g->pool[i];
        options->pool.dilation[i] = 1;
    }
    options->groups = g->groups;
    options->ties = ties;
    return o;
}

/* A tensor of that dtype and shape, with values on the grid. */
static sdlf_tensor filled(sdlf_calculator *calculator, const sdlf_tensor *like)
{
    const int64_t count = sdlf_tensor_count(like);
    sdlf_tensor made = {.dtype = SDLF_NONE};
    void *host = malloc((size_t)count * sizeof(double));
    if (host != NULL && sdlf_tensor_create(&made, calculator, like->dtype, like->shape) == SDLF_OK) {
        for (int64_t i = 0; i < count; i++) {
            const double number = (double)(i * 7 % 11 - 5) / 8;
            if (like->dtype == SDLF_FLOAT32) ((float *)host)[i] = (float)number;
            if (like->dtype == SDLF_FLOAT64) ((double *)host)[i] = number;
        }
        CHECK_OK(calculator->type->upload(calculator, made.data, host, sdlf_tensor_bytes(&made)));
    }
    free(host);
    return made;
}

/* Write the mask with a forward pass of another image; dy is already set. */
static void mask_first(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const conv2d_pool_operands o = conv2d_pool_operands_of(operation);
    sdlf_operation forward = {.kind = SDLF_FUSED, .fused = {.fusion = &sdlf_conv2d_pool_forward_fusion}};
    *conv2d_pool_options_in(&forward) = *conv2d_pool_options_of(operation);
    forward.in[0] = filled(calculator, o.x);
    forward.in[1] = filled(calculator, o.w);
    forward.out[0] = filled(calculator, o.dy);
    forward.out[1] = *o.mask;
    kernel_prepare(calculator, &forward);
    for (int i = 0; i < 2; i++) sdlf_tensor_release(&forward.in[i], calculator);
    sdlf_tensor_release(&forward.out[0], calculator);
}

static void emit(kernel_sink *sink, const kernel_case *made, const geometry *g, sdlf_ties ties, const char *text)
{
    kernel_emit(sink, made, "%dx%dx%dx%d k%d %dx%d s%d p%d g%d pool %dx%d%s%s", (int)g->n, (int)g->c, (int)g->h,
                (int)g->w, (int)g->k, g->size, g->size, g->stride, g->padding, g->groups, g->pool[0], g->pool[1],
                ties == SDLF_TIES_FIRST ? " first" : "", text);
}

enum { MOMENTUM = 1, BIAS = 2, DX = 4, DECAY = 8, NESTEROV = 16, SGD_COMBINATIONS = 32 };

/* `back`: the backward pass with all its outputs. */
static void with_update(kernel_sink *sink, const kernel_case *back, const geometry *g, sdlf_ties ties, int combination)
{
    const sdlf_operation *parts = &back->operation;
    kernel_case made = {.operation = *parts, .prepare = mask_first, .tolerance = 2 * back->tolerance}; /* nesterov */
    sdlf_operation *o = &made.operation;
    bool momentum = combination & MOMENTUM, bias = combination & BIAS, decay = combination & DECAY;
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    o->fused.fusion = &sdlf_conv2d_pool_backward_sgd_fusion;
    o->in[1] = parts->in[2];
    o->in[2] = parts->in[3];
    o->in[3] = kernel_tensor(parts->in[0].dtype, sdlf_shape(1));
    o->out[1] = momentum ? parts->out[0] : none;
    o->out[2] = bias ? parts->out[1] : none;
    o->out[3] = bias && momentum ? parts->out[1] : none;
    o->out[4] = combination & DX ? parts->out[2] : none;
    conv2d_pool_options_in(o)->sgd = (sdlf_sgd_rule){.momentum = momentum ? 0.9f : 0,
                                                     .decay = decay ? 0.01f : 0,
                                                     .bias_decay = decay ? 0.03f : 0,
                                                     .nesterov = combination & NESTEROV};
    made.in[0].values = made.out[0].values = VALUES_GRID;
    made.in[3].values = VALUES_POSITIVE;
    char text[64];
    snprintf(text, sizeof text, "%s%s%s%s%s", momentum ? " momentum" : "", bias ? " bias" : "",
             combination & DX ? " dx" : "", decay ? " decay" : "", combination & NESTEROV ? " nesterov" : "");
    emit(sink, &made, g, ties, text);
}

/* How many combinations of outputs of the backward passes are tried. */
typedef enum thoroughness {
    FORWARD_ON_DEVICES,
    FORWARD_ALONE,
    EVERYTHING_AT_ONCE,
    USUAL,
    EVERY_COMBINATION
} thoroughness;

/* Forward, backward and backward with updates. */
static void both_ways(kernel_sink *sink, const geometry *g, sdlf_dtype t, sdlf_ties ties, thoroughness tried)
{
    kernel_case made = {.operation = describe(&sdlf_conv2d_pool_forward_fusion, g, ties),
                        .fills_device = tried == FORWARD_ON_DEVICES};
    sdlf_operation *o = &made.operation;
    const sdlf_window2d *window = &conv2d_pool_options_of(o)->window;
    int64_t p = sdlf_window2d_output(window, 0, g->h), q = sdlf_window2d_output(window, 1, g->w);
    sdlf_shape pooled = sdlf_shape(g->n, g->k, p / g->pool[0], q / g->pool[1]);
    sdlf_tensor bias = kernel_tensor(t, sdlf_shape(g->k));
    o->in[0] = kernel_tensor(t, sdlf_shape(g->n, g->c, g->h, g->w));
    o->in[1] = kernel_tensor(t, sdlf_shape(g->k, g->c / g->groups, g->size, g->size));
    o->out[0] = kernel_tensor(t, pooled);
    for (int i = 0; i < 3; i++) made.in[i].values = VALUES_GRID;
    made.tolerance = 8;
    emit(sink, &made, g, ties, "");
    o->in[2] = bias;
    o->out[1] = kernel_tensor(SDLF_UINT8, pooled);
    emit(sink, &made, g, ties, " bias mask");
    kernel_case last = made;
    last.operation.in[0] = sdlf_tensor_channels_last(o->in[0]);
    last.operation.out[0] = sdlf_tensor_channels_last(o->out[0]);
    last.operation.out[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    emit(sink, &last, g, ties, " bias channels last");
    last.operation.out[0] = o->out[0];
    emit(sink, &last, g, ties, " bias channels last but y");
    if (tried <= FORWARD_ALONE) return;

    kernel_case back = {.operation = describe(&sdlf_conv2d_pool_backward_fusion, g, ties), .prepare = mask_first};
    back.in[0].values = back.in[1].values = VALUES_GRID;
    int64_t weight_terms = g->n * p * q, input_terms = g->k / g->groups * g->size * g->size;
    back.tolerance = (double)(weight_terms > input_terms ? weight_terms : input_terms) + 8;
    back.operation.in[0] = o->in[0];
    back.operation.in[1] = o->in[1];
    back.operation.in[2] = kernel_tensor(t, pooled);
    back.operation.in[3] = kernel_tensor(SDLF_UINT8, pooled);
    for (int wanted = tried == EVERYTHING_AT_ONCE ? 7 : 1; wanted < 8; wanted++) {
        const sdlf_tensor none = {.dtype = SDLF_NONE};
        if ((wanted & 3) == 2) continue; /* db comes with dw */
        back.operation.in[0] = wanted & 1 ? o->in[0] : none;
        back.operation.in[1] = wanted & 4 ? o->in[1] : none;
        back.operation.out[0] = wanted & 1 ? o->in[1] : none;
        back.operation.out[1] = wanted & 2 ? bias : none;
        back.operation.out[2] = wanted & 4 ? o->in[0] : none;
        char text[16] = {' ', wanted & 1 ? 'w' : '-', wanted & 2 ? 'b' : '-', wanted & 4 ? 'x' : '-', 0};
        emit(sink, &back, g, ties, text);
    }
    for (int combination = 0; combination < SGD_COMBINATIONS; combination++) {
        bool usual = combination == (MOMENTUM | BIAS | DX) || (tried == USUAL && combination == (MOMENTUM | BIAS));
        if (usual || tried == EVERY_COMBINATION) with_update(sink, &back, g, ties, combination);
    }
}

void conv2d_pool_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const geometry geometries[] = {
        {1, 1, 2, 2, 1, 1, 1, 0, 1, {2, 2}},    {2, 1, 12, 12, 32, 5, 1, 2, 1, {2, 2}},
        {2, 3, 7, 9, 5, 3, 1, 1, 1, {2, 2}},    {1, 4, 9, 8, 6, 3, 2, 1, 2, {2, 2}},
        {2, 3, 6, 8, 4, 3, 1, 1, 1, {1, 8}},    {2, 3, 9, 7, 4, 3, 1, 0, 1, {4, 2}},
        {1, 2, 7, 7, 3, 3, 1, 1, 1, {2, 3}},    {1, 2, 5, 5, 17, 3, 1, 1, 1, {1, 1}},
        {3, 6, 8, 8, 6, 3, 1, 1, 6, {2, 2}},    {1, 2, 11, 5, 3, 2, 1, 0, 1, {3, 1}},
        {1, 17, 13, 35, 9, 3, 1, 1, 1, {2, 2}},
    };
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) {
        both_ways(sink, &geometries[i], t, SDLF_TIES_SHARE, EVERY_COMBINATION);
        both_ways(sink, &geometries[i], t, SDLF_TIES_FIRST, USUAL);
    }
    /* More filters than a thread block processes at once (32), and more channels (16); tall and wide images, cut into
     * tiles. */
    static const geometry several[] = {
        {2, 3, 9, 11, 40, 5, 1, 2, 1, {2, 2}}, {2, 2, 10, 6, 70, 3, 1, 1, 1, {2, 2}},
        {1, 17, 6, 7, 33, 3, 1, 0, 1, {2, 2}}, {1, 2, 131, 4, 33, 3, 1, 1, 1, {2, 2}},
        {1, 1, 6, 150, 3, 5, 1, 2, 1, {2, 2}}, {2, 1, 64, 65, 9, 5, 1, 2, 1, {2, 2}},
    };
    for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
        both_ways(sink, &several[i], t, SDLF_TIES_SHARE, USUAL);
        both_ways(sink, &several[i], t, SDLF_TIES_FIRST, EVERYTHING_AT_ONCE);
    }
    /* So many outputs that a device with 40 to 148 multiprocessors gives a thread 4 or 8 filters, and pairs of windows;
     * and many channels, for channels last. The host runs some of either, too. */
    static const geometry many[] = {
        {4, 1, 56, 56, 33, 3, 1, 1, 1, {2, 2}},
        {12, 1, 56, 56, 33, 3, 1, 1, 1, {2, 2}},
        {2, 36, 21, 18, 72, 3, 1, 1, 1, {2, 2}},
        {1, 256, 15, 15, 68, 3, 1, 1, 1, {2, 2}},
    };
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++)
        both_ways(sink, &many[i], t, SDLF_TIES_SHARE, FORWARD_ALONE);
    static const geometry filling[] = {
        {32, 2, 56, 56, 33, 5, 1, 2, 1, {2, 2}},
        {40, 1, 56, 54, 33, 3, 1, 1, 1, {2, 2}},
        {1, 64, 37, 45, 131, 3, 1, 1, 1, {2, 2}},
        {2, 32, 31, 63, 64, 5, 1, 2, 1, {2, 2}},
        {1, 12, 130, 133, 128, 3, 1, 1, 1, {2, 2}},
        {8, 8, 56, 57, 252, 3, 1, 1, 1, {2, 2}},
        {8, 8, 110, 115, 60, 3, 1, 1, 1, {2, 2}},
        /* in eights from here on: 16-bit storage */
        {2, 16, 90, 93, 72, 3, 1, 1, 1, {2, 2}},
        {7, 40, 33, 39, 136, 3, 1, 0, 1, {2, 2}},
        {4, 8, 65, 70, 24, 5, 1, 2, 1, {2, 2}},
        {2, 3, 90, 87, 64, 3, 1, 1, 1, {2, 2}},
    };
    for (size_t i = 0; i < sizeof filling / sizeof filling[0]; i++)
        both_ways(sink, &filling[i], t, SDLF_TIES_SHARE, FORWARD_ON_DEVICES);
}

void conv2d_pool_bench(kernel_sink *sink, sdlf_dtype t)
{
    static const geometry first = {64, 1, 28, 28, 32, 5, 1, 2, 1, {2, 2}},
                          second = {64, 6, 14, 14, 16, 5, 1, 0, 1, {2, 2}};
    both_ways(sink, &first, t, SDLF_TIES_SHARE, USUAL);
    both_ways(sink, &second, t, SDLF_TIES_SHARE, USUAL);
}
