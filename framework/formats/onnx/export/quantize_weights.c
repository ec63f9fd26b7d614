/* SPDX-License-Identifier: MIT */
/* Integer weights and biases. See quantize.h.
 *
 *     8 bits    q = round(w / scale), scale = the largest magnitude of a filter / 127
 *     4 bits    the same with 7, per block along the axis that is summed over
 *     bias      round(b / (scale of x, times that of the filter)), int32 */
#include "framework/formats/onnx/export/quantize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_BLOCK = 32 };

quantize_axes quantize_axes_of(const Onnx__NodeProto *node)
{
    if (strcmp(node->op_type, "Conv") == 0) return (quantize_axes){.filters = 0, .summed = 1};
    bool turned = strcmp(node->op_type, "Gemm") == 0 && quantize_attribute(node, "transB", 0) != 0;
    return turned ? (quantize_axes){.filters = 0, .summed = 1} : (quantize_axes){.filters = 1, .summed = 0};
}

/* The granularity of scales along a weight: one per index of an axis (block 0), or one per block along it. axis -1: per
 * tensor. */
typedef struct grid {
    int axis;
    int64_t block;
    sdlf_shape weight, scale;
} grid;

static grid grid_of(const quantizing *q, const Onnx__NodeProto *node, const Onnx__TensorProto *weight)
{
    quantize_axes axes = quantize_axes_of(node);
    grid g = {.axis = axes.filters, .weight = {.rank = (int)weight->n_dims}};
    for (int i = 0; i < g.weight.rank; i++) g.weight.dim[i] = weight->dims[i];
    int64_t block = q->options->block > 0 ? q->options->block : DEFAULT_BLOCK;
    bool convolution = strcmp(node->op_type, "Conv") == 0;
    if (q->options->weights_only == 4 && !(convolution && g.weight.dim[1] < block)) {
        g.axis = axes.summed, g.block = block;
        g.scale = g.weight;
        g.scale.dim[g.axis] = (g.weight.dim[g.axis] - 1) / block + 1;
    } else if (q->options->per_tensor) {
        g.axis = -1, g.scale = SDLF_SCALAR;
    } else {
        g.scale = sdlf_shape(g.weight.dim[g.axis]);
    }
    return g;
}

/* The index of the scale of element `at`. */
static int64_t scale_at(const grid *g, int64_t inner, int64_t at)
{
    if (g->axis < 0) return 0;
    int64_t size = g->weight.dim[g->axis], index = at / inner % size;
    if (g->block == 0) return index;
    return (at / (inner * size) * g->scale.dim[g->axis] + index / g->block) * inner + at % inner;
}

static const char *initializer(quantizing *q, const char *name, const char *what, onnx_type type, sdlf_shape shape,
                               const void *data)
{
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%.480s_%s", name, what);
    return export_initializer(q->e, wanted, type, shape, data);
}

/* Appends the dequantisation of `name`; returns the float value that the node reads instead. */
static const char *dequantize(quantizing *q, const char *name, const char *integers, const char *scale,
                              const char *zero, const export_attribute *attributes)
{
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%.480s_dequantized", name);
    const char *y = export_name(q->e, wanted);
    if (y != NULL)
        export_append(q->e, "DequantizeLinear", y, (const char *const[]){integers, scale, zero, NULL}, &y, 1,
                      attributes);
    return y != NULL ? y : "";
}

/* Raises filters' scales to the minimum for which their biases fit int32. */
static void fit_biases(const grid *g, float *scale, const Onnx__TensorProto *bias, double x_scale)
{
    const float *b = (const float *)(const void *)bias->raw_data.data;
    for (int64_t k = 0; k < bias->dims[0]; k++) {
        float least = (float)(fabs((double)b[k]) / x_scale / 2e9), *own = &scale[g->axis < 0 ? 0 : k];
        if (*own < least) *own = least;
    }
}

static float *make_scales(quantizing *q, const grid *g, const float *w, int64_t count, int64_t inner, double levels)
{
    int64_t scales = sdlf_shape_count(g->scale);
    float *scale = onnx_arena_array(&q->e->arena, (size_t)scales, sizeof *scale);
    if (scale == NULL) {
        export_no_memory(q->e);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) {
        float *largest = &scale[scale_at(g, inner, i)];
        if (!isfinite(w[i])) {
            q->e->status = sdlf_fail(SDLF_ERROR_NUMERIC, "network '%s': weight %lld of a tensor of %s is not finite",
                                     q->e->model->name, (long long)i, sdlf_shape_print(g->weight).text);
            return NULL;
        }
        *largest = fmaxf(*largest, fabsf(w[i]));
    }
    for (int64_t i = 0; i < scales; i++) scale[i] = scale[i] > 1e-30f ? (float)((double)scale[i] / levels) : 1;
    return scale;
}

/* The integers of w, two per byte for 4 bits. */
static uint8_t *make_integers(quantizing *q, const grid *g, const float *w, int64_t count, int64_t inner,
                              const float *scale, int bits)
{
    int64_t levels = bits == 8 ? 127 : 7;
    uint8_t *made = onnx_arena_array(&q->e->arena, (size_t)(bits == 8 ? count : (count + 1) / 2), 1);
    if (made == NULL) export_no_memory(q->e);
    for (int64_t i = 0; i < count && made != NULL; i++) {
        float whole = rintf(w[i] / scale[scale_at(g, inner, i)]);
        uint8_t byte = (uint8_t)(int8_t)fmaxf(fminf(whole, (float)levels), (float)-levels);
        if (bits == 8)
            made[i] = byte;
        else
            made[i / 2] |= (uint8_t)((byte & 15) << (i % 2 * 4));
    }
    return made;
}

static void quantize_bias(quantizing *q, Onnx__NodeProto *node, const Onnx__TensorProto *bias, const grid *g,
                          const float *scale, const quantize_value *x)
{
    size_t count = (size_t)bias->dims[0];
    const float *b = (const float *)(const void *)bias->raw_data.data;
    float *scales = onnx_arena_array(&q->e->arena, count, sizeof *scales);
    int32_t *whole = onnx_arena_array(&q->e->arena, count, sizeof *whole),
            *zeros = onnx_arena_array(&q->e->arena, count, sizeof *zeros);
    if (scales == NULL || whole == NULL || zeros == NULL) {
        export_no_memory(q->e);
        return;
    }
    for (size_t k = 0; k < count; k++) {
        if (!isfinite(b[k])) {
            q->e->status = sdlf_fail(SDLF_ERROR_NUMERIC, "network '%s': bias %zu of '%s' is not finite",
                                     q->e->model->name, k, bias->name);
            return;
        }
        scales[k] = x->scale * scale[g->axis < 0 ? 0 : k];
        whole[k] = (int32_t)rint((double)b[k] / (double)scales[k]);
    }
    sdlf_shape shape = sdlf_shape((int64_t)count);
    const char *name = node->input[2];
    const char *integers = initializer(q, name, "quantized", ONNX_INT32, shape, whole);
    const char *scale_name = initializer(q, name, "scale", ONNX_FLOAT, shape, scales);
    const char *zero = initializer(q, name, "zero_point", ONNX_INT32, shape, zeros);
    node->input[2] = (char *)dequantize(q, name, integers, scale_name, zero,
                                        (const export_attribute[]){export_integer("axis", 0), {0}});
}

void quantize_weights(quantizing *q, Onnx__NodeProto *node, const quantize_value *x)
{
    const Onnx__TensorProto *weight = quantize_weight(q, node->input[1]),
                            *bias = x != NULL && node->n_input > 2 ? quantize_weight(q, node->input[2]) : NULL;
    grid g = grid_of(q, node, weight);
    const char *name = node->input[1];
    const float *w = (const float *)(const void *)weight->raw_data.data;
    int bits = g.block > 0 ? 4 : 8;
    int64_t count = sdlf_shape_count(g.weight),
            inner = g.axis < 0 ? 1 : sdlf_shape_span(g.weight, g.axis + 1, g.weight.rank);
    float *scale = make_scales(q, &g, w, count, inner, bits == 8 ? 127 : 7);
    if (scale != NULL && bias != NULL) fit_biases(&g, scale, bias, (double)x->scale);
    uint8_t *integers = scale != NULL ? make_integers(q, &g, w, count, inner, scale, bits) : NULL;
    void *zeros = onnx_arena_array(&q->e->arena, (size_t)sdlf_shape_count(g.scale), 1);
    if (zeros == NULL) export_no_memory(q->e);
    if (!export_ok(q->e)) return;
    onnx_type type = bits == 8 ? ONNX_INT8 : ONNX_INT4;
    const char *integer_name = initializer(q, name, "quantized", type, g.weight, integers);
    const char *scale_name = initializer(q, name, "scale", ONNX_FLOAT, g.scale, scale);
    const char *zero = initializer(q, name, "zero_point", type, g.scale, zeros);
    export_attribute attributes[3] = {export_integer("axis", g.axis), export_integer("block_size", g.block), {0}};
    if (g.block == 0) attributes[1] = (export_attribute){0};
    node->input[1] = (char *)dequantize(q, name, integer_name, scale_name, zero, g.axis < 0 ? NULL : attributes);
    if (bias != NULL) quantize_bias(q, node, bias, &g, scale, x);
}
