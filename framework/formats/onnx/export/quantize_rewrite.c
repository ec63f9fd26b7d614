/* SPDX-License-Identifier: MIT */
/* Selects the nodes and values to quantise, and rewrites the graph. See quantize.h. */
#include "framework/formats/onnx/export/quantize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is(const Onnx__NodeProto *node, const char *types)
{
    char word[64];
    snprintf(word, sizeof word, " %.60s ", node->op_type);
    return strstr(types, word) != NULL;
}

/* ---- selection ---- */

static bool is_layer(const quantizing *q, const Onnx__NodeProto *node)
{
    if (!is(node, " Conv Gemm MatMul ") || node->n_input < 2) return false;
    const Onnx__TensorProto *weight = quantize_weight(q, node->input[1]);
    return weight != NULL && weight->n_dims >= 2 && quantize_weight(q, node->input[0]) == NULL &&
           (is(node, " Conv ") || weight->n_dims == 2);
}

/* A layer has the name of its node, and "LAYER/1" is a step of it. */
static bool matches(const char *node, const char *layer)
{
    size_t length = strlen(layer);
    if (length > 0 && layer[length - 1] == '*') return strncmp(node, layer, length - 1) == 0;
    return strncmp(node, layer, length) == 0 && (node[length] == '\0' || node[length] == '/');
}

static bool is_skipped(const quantizing *q, const Onnx__NodeProto *node)
{
    for (int i = 0; i < q->options->skip_count; i++)
        if (matches(node->name, q->options->skip[i])) return true;
    return false;
}

/* Checks that each word names a layer that could be quantised. */
static void check_skipped(quantizing *q)
{
    for (int i = 0; i < q->options->skip_count && export_ok(q->e); i++) {
        bool found = false;
        for (size_t k = 0; k < q->e->nodes.count && !found; k++)
            found =
                is_layer(q, quantize_node(q, (int)k)) && matches(quantize_node(q, (int)k)->name, q->options->skip[i]);
        if (!found)
            q->e->status = sdlf_fail(SDLF_ERROR_ARGUMENT,
                                     "layer '%s', which is to be skipped: the network has no convolution or product "
                                     "of that name",
                                     q->options->skip[i]);
    }
}

static void add_value(quantizing *q, const char *name)
{
    if (!export_ok(q->e) || onnx_name_table_find(&q->values, name) >= 0) return;
    q->value[q->value_count] = (quantize_value){.name = name};
    if (!onnx_name_table_put(&q->values, name, q->value_count++)) export_no_memory(q->e);
}

/* The output of a node after its activation, or the bias of a matrix product: epilogues of integer kernels. */
static const char *end_of(const quantizing *q, const Onnx__NodeProto *node)
{
    for (;;) {
        const char *y = node->output[0];
        int reader = quantize_only_reader(q, y);
        if (reader < 0) return y;
        const Onnx__NodeProto *next = quantize_node(q, reader);
        bool bias = is(node, " MatMul ") && is(next, " Add ") &&
                    (quantize_weight(q, next->input[0]) != NULL || quantize_weight(q, next->input[1]) != NULL);
        if (!bias && !(is(next, " Relu Clip ") && strcmp(next->input[0], y) == 0)) return y;
        node = next;
    }
}

/* True if it is read, and not only by a softmax. */
static bool is_worth_bytes(const quantizing *q, const char *value)
{
    int count = onnx_name_table_find(&q->counts, value), only = quantize_only_reader(q, value);
    if (count < 1 || (only < 0 && count == 1)) return false;
    return only < 0 || !is(quantize_node(q, only), " Softmax LogSoftmax ");
}

static bool is_carrier(const quantizing *q, const Onnx__NodeProto *node)
{
    if (is(node, " MaxPool ")) return node->n_output == 1;
    if (is(node, " Add "))
        return quantize_weight(q, node->input[0]) == NULL && quantize_weight(q, node->input[1]) == NULL;
    return is(node, " AveragePool GlobalAveragePool Flatten Reshape ") && quantize_weight(q, node->input[0]) == NULL;
}

void quantize_mark(quantizing *q)
{
    check_skipped(q);
    const bool activations = q->options->weights_only == 0;
    size_t nodes = q->e->nodes.count;
    q->role = onnx_arena_array(&q->e->arena, nodes + 1, sizeof *q->role);
    q->value = onnx_arena_array(&q->e->arena, 3 * nodes + 1, sizeof *q->value);
    q->values = (onnx_name_table){.arena = &q->e->arena};
    if (q->role == NULL || q->value == NULL) export_no_memory(q->e);
    for (int i = (int)nodes - 1; i >= 0 && export_ok(q->e); i--) {
        const Onnx__NodeProto *node = quantize_node(q, i);
        if (is_layer(q, node)) {
            bool skipped = is_skipped(q, node);
            *(skipped ? &q->result->left : &q->result->layers) += 1;
            if (skipped) continue;
            q->role[i] = QUANTIZE_LAYER;
            if (!activations) continue;
            const char *end = end_of(q, node);
            if (is_worth_bytes(q, end)) add_value(q, end);
            add_value(q, node->input[0]);
        } else if (activations && is_carrier(q, node) && onnx_name_table_find(&q->values, end_of(q, node)) >= 0) {
            q->role[i] = QUANTIZE_CARRIER;
            add_value(q, node->input[0]);
            if (is(node, " Add ")) add_value(q, node->input[1]);
        }
    }
    q->result->values = q->value_count;
    if (export_ok(q->e) && q->result->layers == 0)
        q->e->status =
            sdlf_fail(SDLF_ERROR_ARGUMENT, "network '%s' has no convolution or product with known weights to quantise",
                      q->e->model->name);
}

/* ---- scales ---- */

static quantize_value *value_of(const quantizing *q, const char *name)
{
    int index = onnx_name_table_find(&q->values, name);
    return index >= 0 ? &q->value[index] : NULL;
}

/* Maps [low, high] to 255 steps, with a zero point for an exact 0. */
static void set_scale(const quantizing *q, quantize_value *v)
{
    const int least = q->options->signed_activations ? -128 : 0;
    double span = v->high - v->low;
    v->scale = span > 1e-30 ? (float)(span / 255) : 1;
    double zero = rint(least - v->low / (double)v->scale);
    v->zero = (int)fmin(fmax(zero, least), least + 255);
}

/* Nodes that only move or select elements keep the scale. */
static void set_scales(quantizing *q)
{
    for (int i = 0; i < q->value_count; i++) set_scale(q, &q->value[i]);
    for (size_t i = 0; i < q->e->nodes.count; i++) {
        const Onnx__NodeProto *node = quantize_node(q, (int)i);
        quantize_value *x = value_of(q, node->input[0]), *y = value_of(q, node->output[0]);
        if (q->role[i] != QUANTIZE_CARRIER || !is(node, " MaxPool Flatten Reshape ") || x == NULL || y == NULL)
            continue;
        y->scale = x->scale, y->zero = x->zero;
    }
}

/* ---- the graph ---- */

/* Appends the pair after a value: x -> bytes -> x'. */
static void append_pair(quantizing *q, quantize_value *v)
{
    char wanted[512];
    onnx_type type = q->options->signed_activations ? ONNX_INT8 : ONNX_UINT8;
    float *scale = onnx_arena_take(&q->e->arena, sizeof *scale);
    uint8_t *zero = onnx_arena_take(&q->e->arena, sizeof *zero);
    if (scale == NULL || zero == NULL) {
        export_no_memory(q->e);
        return;
    }
    *scale = v->scale;
    *zero = (uint8_t)v->zero;
    snprintf(wanted, sizeof wanted, "%.480s_scale", v->name);
    const char *scale_name = export_initializer(q->e, wanted, ONNX_FLOAT, SDLF_SCALAR, scale);
    snprintf(wanted, sizeof wanted, "%.480s_zero_point", v->name);
    const char *zero_name = export_initializer(q->e, wanted, type, SDLF_SCALAR, zero);
    snprintf(wanted, sizeof wanted, "%.480s_quantized", v->name);
    const char *bytes = export_name(q->e, wanted);
    snprintf(wanted, sizeof wanted, "%.480s_dequantized", v->name);
    v->replaced = export_name(q->e, wanted);
    if (!export_ok(q->e)) return;
    export_append(q->e, "QuantizeLinear", bytes, (const char *const[]){v->name, scale_name, zero_name, NULL}, &bytes, 1,
                  NULL);
    export_append(q->e, "DequantizeLinear", v->replaced, (const char *const[]){bytes, scale_name, zero_name, NULL},
                  &v->replaced, 1, NULL);
}

static void append_node(quantizing *q, Onnx__NodeProto *node, quantize_role role)
{
    const quantize_value *x = value_of(q, node->input[0]);
    if (role == QUANTIZE_LAYER) quantize_weights(q, node, x);
    for (size_t k = 0; k < node->n_input; k++) {
        const quantize_value *v = value_of(q, node->input[k]);
        if (v != NULL && v->replaced != NULL) node->input[k] = (char *)v->replaced;
    }
    if (export_ok(q->e) && !export_list_add(&q->e->nodes, &q->e->arena, node)) export_no_memory(q->e);
    for (size_t k = 0; k < node->n_output && export_ok(q->e); k++) {
        quantize_value *v = value_of(q, node->output[k]);
        if (v != NULL) append_pair(q, v);
    }
}

void quantize_rewrite(quantizing *q)
{
    export_list nodes = q->e->nodes;
    if (q->options->weights_only == 0) set_scales(q);
    q->e->nodes = (export_list){.item = NULL};
    for (size_t i = 0; i < q->e->inputs.count && export_ok(q->e); i++) {
        quantize_value *v = value_of(q, ((Onnx__ValueInfoProto *)q->e->inputs.item[i])->name);
        if (v != NULL) append_pair(q, v);
    }
    for (size_t i = 0; i < nodes.count && export_ok(q->e); i++) append_node(q, nodes.item[i], q->role[i]);
    size_t kept = 0; /* drops float weights that were replaced by integers */
    for (size_t i = 0; i < nodes.count && export_ok(q->e); i++) nodes.item[i] = NULL;
    quantize_index(q);
    for (size_t i = 0; i < q->e->weights.count && export_ok(q->e); i++)
        if (onnx_name_table_find(&q->counts, ((Onnx__TensorProto *)q->e->weights.item[i])->name) > 0)
            q->e->weights.item[kept++] = q->e->weights.item[i];
    if (!export_ok(q->e)) return;
    q->e->weights.count = kept;
    export_collect(q->e);
}
