/* SPDX-License-Identifier: MIT */
/* The tables of a graph, and its simplification before quantisation. See quantize.h. */
#include "framework/formats/onnx/export/quantize.h"

#include <math.h>
#include <string.h>

/* ---- tables ---- */

Onnx__NodeProto *quantize_node(const quantizing *q, int index)
{
    return q->e->nodes.item[index];
}

static void put(quantizing *q, onnx_name_table *names, const char *name, int number)
{
    if (!onnx_name_table_put(names, name, number)) export_no_memory(q->e);
}

static void count_reader(quantizing *q, const char *value)
{
    int count = onnx_name_table_find(&q->counts, value);
    put(q, &q->counts, value, count < 0 ? 1 : count + 1);
}

void quantize_index(quantizing *q)
{
    const onnx_name_table empty = {.arena = &q->e->arena};
    q->weights = q->makers = q->counts = q->readers = empty;
    for (size_t i = 0; i < q->e->weights.count; i++)
        put(q, &q->weights, ((Onnx__TensorProto *)q->e->weights.item[i])->name, (int)i);
    for (size_t i = 0; i < q->e->nodes.count; i++) {
        const Onnx__NodeProto *node = quantize_node(q, (int)i);
        for (size_t k = 0; k < node->n_input; k++) {
            count_reader(q, node->input[k]);
            put(q, &q->readers, node->input[k], (int)i);
        }
        for (size_t k = 0; k < node->n_output; k++) put(q, &q->makers, node->output[k], (int)i);
    }
    for (size_t i = 0; i < q->e->outputs.count; i++) {
        const char *name = ((Onnx__ValueInfoProto *)q->e->outputs.item[i])->name;
        count_reader(q, name);
        put(q, &q->readers, name, -1);
    }
}

Onnx__TensorProto *quantize_weight(const quantizing *q, const char *name)
{
    int index = onnx_name_table_find(&q->weights, name);
    Onnx__TensorProto *tensor = index >= 0 ? q->e->weights.item[index] : NULL;
    return tensor != NULL && tensor->data_type == ONNX_FLOAT ? tensor : NULL;
}

int quantize_only_reader(const quantizing *q, const char *value)
{
    return onnx_name_table_find(&q->counts, value) == 1 ? onnx_name_table_find(&q->readers, value) : -1;
}

static const Onnx__AttributeProto *find(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (strcmp(node->attribute[i]->name, name) == 0) return node->attribute[i];
    return NULL;
}

int64_t quantize_attribute(const Onnx__NodeProto *node, const char *name, int64_t fallback)
{
    const Onnx__AttributeProto *attribute = find(node, name);
    return attribute != NULL ? attribute->i : fallback;
}

/* ---- simplification ---- */

static const float *floats_of(const Onnx__TensorProto *tensor)
{
    return (const float *)(const void *)tensor->raw_data.data;
}

static float *new_floats(quantizing *q, size_t count)
{
    float *made = onnx_arena_array(&q->e->arena, count, sizeof *made);
    if (made == NULL) export_no_memory(q->e);
    return made;
}

/* A float weight read only by this node. */
static Onnx__TensorProto *own_weight(const quantizing *q, const Onnx__NodeProto *node, size_t input)
{
    if (input >= node->n_input || onnx_name_table_find(&q->counts, node->input[input]) != 1) return NULL;
    return quantize_weight(q, node->input[input]);
}

/* conv(x) g + b with g = scale / sqrt(variance + epsilon) and b = bias - mean g. */
static void fold_batch_norm(quantizing *q, int index)
{
    Onnx__NodeProto *norm = quantize_node(q, index), *conv;
    const float *of_norm[4];
    int maker = onnx_name_table_find(&q->makers, norm->input[0]);
    if (maker < 0 || quantize_only_reader(q, norm->input[0]) != index || norm->n_input != 5) return;
    conv = quantize_node(q, maker);
    Onnx__TensorProto *weight = own_weight(q, conv, 1), *bias = own_weight(q, conv, 2);
    if (strcmp(conv->op_type, "Conv") != 0 || weight == NULL || (conv->n_input > 2 && bias == NULL)) return;
    for (size_t i = 0; i < 4; i++) {
        const Onnx__TensorProto *tensor = quantize_weight(q, norm->input[i + 1]);
        if (tensor == NULL) return;
        of_norm[i] = floats_of(tensor);
    }
    const Onnx__AttributeProto *epsilon = find(norm, "epsilon");
    size_t filters = (size_t)weight->dims[0], count = weight->raw_data.len / sizeof(float), each = count / filters;
    float *w = new_floats(q, count), *b = new_floats(q, filters);
    if (!export_ok(q->e)) return;
    for (size_t k = 0; k < filters; k++) {
        double g = (double)of_norm[0][k] / sqrt((double)of_norm[3][k] + (epsilon != NULL ? (double)epsilon->f : 1e-5));
        double old = bias != NULL ? (double)floats_of(bias)[k] : 0;
        b[k] = (float)((double)of_norm[1][k] + (old - (double)of_norm[2][k]) * g);
        for (size_t i = k * each; i < (k + 1) * each; i++) w[i] = (float)((double)floats_of(weight)[i] * g);
    }
    weight->raw_data.data = (uint8_t *)w;
    if (bias != NULL)
        bias->raw_data.data = (uint8_t *)b;
    else /* there is space: export.h makes every list one longer */
        conv->input[conv->n_input++] =
            (char *)export_initializer(q->e, norm->input[2], ONNX_FLOAT, sdlf_shape((int64_t)filters), b);
    conv->output[0] = norm->output[0];
    put(q, &q->makers, norm->output[0], maker);
    q->e->nodes.item[index] = NULL;
}

static void fold_transpose(quantizing *q, int index)
{
    const Onnx__NodeProto *node = quantize_node(q, index);
    const Onnx__TensorProto *weight = quantize_weight(q, node->input[0]);
    const Onnx__AttributeProto *order = find(node, "perm");
    int reader = quantize_only_reader(q, node->output[0]);
    if (weight == NULL || weight->n_dims != 2 || reader < 0 || (order != NULL && order->ints[0] == 0)) return;
    size_t rows = (size_t)weight->dims[0], columns = (size_t)weight->dims[1];
    float *turned = new_floats(q, rows * columns);
    if (!export_ok(q->e)) return;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++) turned[k * rows + i] = floats_of(weight)[i * columns + k];
    const char *name =
        export_initializer(q->e, weight->name, ONNX_FLOAT, sdlf_shape((int64_t)columns, (int64_t)rows), turned);
    Onnx__NodeProto *product = quantize_node(q, reader);
    for (size_t i = 0; i < product->n_input; i++)
        if (strcmp(product->input[i], node->output[0]) == 0) product->input[i] = (char *)name;
    q->e->nodes.item[index] = NULL;
}

/* Removes deleted nodes, and weights without readers. */
static void clear(quantizing *q)
{
    export_list *nodes = &q->e->nodes, *weights = &q->e->weights;
    size_t kept = 0;
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->item[i] != NULL) nodes->item[kept++] = nodes->item[i];
    nodes->count = kept;
    quantize_index(q);
    kept = 0;
    for (size_t i = 0; i < weights->count && export_ok(q->e); i++)
        if (onnx_name_table_find(&q->counts, ((Onnx__TensorProto *)weights->item[i])->name) > 0)
            weights->item[kept++] = weights->item[i];
    if (!export_ok(q->e)) return;
    weights->count = kept;
    quantize_index(q);
    export_collect(q->e);
}

void quantize_simplify(quantizing *q)
{
    quantize_index(q);
    for (size_t i = 0; i < q->e->nodes.count && export_ok(q->e); i++) {
        const char *type = quantize_node(q, (int)i)->op_type;
        if (strcmp(type, "BatchNormalization") == 0)
            fold_batch_norm(q, (int)i);
        else if (strcmp(type, "Transpose") == 0)
            fold_transpose(q, (int)i);
    }
    if (export_ok(q->e)) clear(q);
}
