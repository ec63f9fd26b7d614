/* SPDX-License-Identifier: MIT */
/* Nodes, their attributes, and the graph's inputs and outputs. */
#include "framework/formats/onnx/export/export.h"

#include <stdio.h>
#include <string.h>

#include "framework/input_layer.h"

/* ---- attributes ---- */

export_attribute export_integer(const char *name, int64_t value)
{
    return (export_attribute){.name = name, .type = EXPORT_INTEGER, .integer = value};
}

export_attribute export_integers(const char *name, sdlf_shape values)
{
    return (export_attribute){.name = name, .type = EXPORT_INTEGERS, .integers = values};
}

export_attribute export_pair(const char *name, const int values[2])
{
    return export_integers(name, sdlf_shape(values[0], values[1]));
}

export_attribute export_real(const char *name, float value)
{
    return (export_attribute){.name = name, .type = EXPORT_REAL, .real = value};
}

export_attribute export_word(const char *name, const char *value)
{
    return (export_attribute){.name = name, .type = EXPORT_WORD, .word = value};
}

/* AttributeProto.AttributeType. */
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_STRING = 3, TYPE_INTS = 7 };

static Onnx__AttributeProto *make_attribute(onnx_export *e, const export_attribute *from)
{
    Onnx__AttributeProto *to = onnx_arena_take(&e->arena, sizeof *to);
    if (to == NULL) return NULL;
    onnx__attribute_proto__init(to);
    to->name = (char *)from->name;
    to->has_type = true;
    switch (from->type) {
    case EXPORT_INTEGER:
        to->type = TYPE_INT;
        to->has_i = true;
        to->i = from->integer;
        break;
    case EXPORT_REAL:
        to->type = TYPE_FLOAT;
        to->has_f = true;
        to->f = from->real;
        break;
    case EXPORT_WORD:
        to->type = TYPE_STRING;
        to->has_s = true;
        to->s = (ProtobufCBinaryData){strlen(from->word), (uint8_t *)from->word};
        break;
    case EXPORT_INTEGERS:
        to->type = TYPE_INTS;
        to->n_ints = (size_t)from->integers.rank;
        to->ints = onnx_arena_array(&e->arena, to->n_ints + 1, sizeof *to->ints);
        if (to->ints == NULL) return NULL;
        memcpy(to->ints, from->integers.dim, to->n_ints * sizeof *to->ints);
        break;
    }
    return to;
}

/* ---- nodes ---- */

static bool fill_node(onnx_export *e, Onnx__NodeProto *node, const char *const *inputs, const char *const *outputs,
                      size_t output_count, const export_attribute *attributes)
{
    size_t count = 0;
    while (inputs[node->n_input] != NULL) node->n_input++;
    while (node->n_input > 0 && inputs[node->n_input - 1][0] == '\0') node->n_input--; /* trailing omitted inputs */
    while (attributes != NULL && attributes[count].name != NULL) count++;
    node->input = onnx_arena_array(&e->arena, node->n_input + 1, sizeof *node->input);
    node->output = onnx_arena_array(&e->arena, output_count + 1, sizeof *node->output);
    node->attribute = onnx_arena_array(&e->arena, count + 1, sizeof(void *));
    if (node->input == NULL || node->output == NULL || node->attribute == NULL) return false;
    for (size_t i = 0; i < node->n_input; i++) node->input[i] = (char *)inputs[i];
    for (node->n_output = 0; node->n_output < output_count; node->n_output++)
        node->output[node->n_output] = (char *)outputs[node->n_output];
    for (; node->n_attribute < count; node->n_attribute++) {
        node->attribute[node->n_attribute] = make_attribute(e, &attributes[node->n_attribute]);
        if (node->attribute[node->n_attribute] == NULL) return false;
    }
    return export_list_add(&e->nodes, &e->arena, node);
}

void export_append(onnx_export *e, const char *type, const char *name, const char *const *inputs,
                   const char *const *outputs, size_t output_count, const export_attribute *attributes)
{
    if (!export_ok(e)) return;
    Onnx__NodeProto *node = onnx_arena_take(&e->arena, sizeof *node);
    bool ok = node != NULL;
    if (ok) {
        onnx__node_proto__init(node);
        node->name = (char *)name;
        node->op_type = (char *)type;
        ok = fill_node(e, node, inputs, outputs, output_count, attributes);
    }
    if (!ok) export_no_memory(e);
}

/* "LAYER/1", "LAYER/2", ... */
static const char *step_name(onnx_export *e)
{
    char wanted[512];
    if (!export_ok(e)) return "";
    snprintf(wanted, sizeof wanted, "%.480s/%d", e->now->layer.name, ++e->steps);
    const char *name = export_name(e, wanted);
    return name != NULL ? name : "";
}

void export_node(onnx_export *e, const char *type, const char *const *inputs, const export_attribute *attributes)
{
    const export_layer *layer = &e->layer[e->position];
    size_t count = (size_t)e->now->output_count;
    while (count > 1 && !layer->wanted[count - 1]) count--;
    export_append(e, type, e->named ? step_name(e) : e->now->layer.name, inputs, layer->value, count, attributes);
}

const char *export_step(onnx_export *e, const char *type, const char *const *inputs, const export_attribute *attributes)
{
    const char *name = step_name(e);
    export_append(e, type, name, inputs, &name, 1, attributes);
    return name;
}

const char *export_main_step(onnx_export *e, const char *type, const char *const *inputs)
{
    const char *name = step_name(e);
    export_append(e, type, e->now->layer.name, inputs, &name, 1, NULL);
    e->named = true;
    return name;
}

const char *export_step1(onnx_export *e, const char *type, const char *x)
{
    return export_step(e, type, (const char *const[]){x, NULL}, NULL);
}

const char *export_step2(onnx_export *e, const char *type, const char *a, const char *b)
{
    return export_step(e, type, (const char *const[]){a, b, NULL}, NULL);
}

/* ---- inputs and outputs ---- */

/* Dimensions that depend on the batch: "N" if it is the batch itself, otherwise left open. */
static bool fill_shape(onnx_export *e, Onnx__TensorShapeProto *to, sdlf_shape shape, sdlf_shape wide)
{
    to->dim = onnx_arena_array(&e->arena, (size_t)shape.rank + 1, sizeof(void *));
    if (to->dim == NULL) return false;
    for (int i = 0; i < shape.rank; i++) {
        Onnx__Dimension *dim = onnx_arena_take(&e->arena, sizeof *dim);
        if (dim == NULL) return false;
        onnx__dimension__init(dim);
        dim->has_dim_value = e->fixed_batch || wide.dim[i] == shape.dim[i];
        dim->dim_value = dim->has_dim_value ? shape.dim[i] : 0;
        if (!dim->has_dim_value && shape.dim[i] == 1) dim->dim_param = (char *)"N";
        to->dim[to->n_dim++] = dim;
    }
    return true;
}

static void add_value(onnx_export *e, export_list *list, const char *name, sdlf_node node)
{
    const model_layer *layer = &e->model->layers[node.layer];
    Onnx__ValueInfoProto *value = onnx_arena_take(&e->arena, sizeof *value);
    Onnx__TypeProto *type = onnx_arena_take(&e->arena, sizeof *type);
    Onnx__TensorTypeProto *tensor = onnx_arena_take(&e->arena, sizeof *tensor);
    Onnx__TensorShapeProto *shape = onnx_arena_take(&e->arena, sizeof *shape);
    bool ok = value != NULL && type != NULL && tensor != NULL && shape != NULL;
    if (ok) {
        onnx__value_info_proto__init(value);
        onnx__type_proto__init(type);
        onnx__tensor_type_proto__init(tensor);
        onnx__tensor_shape_proto__init(shape);
        value->name = (char *)name;
        value->type = type;
        type->tensor_type = tensor;
        tensor->has_elem_type = true;
        tensor->elem_type = (int32_t)onnx_type_of(layer->output_dtype[node.output]);
        tensor->shape = shape;
        ok = fill_shape(e, shape, layer->output_shape[node.output], e->layer[node.layer].wide[node.output]) &&
             export_list_add(list, &e->arena, value);
    }
    if (!ok) export_no_memory(e);
}

void export_inputs(onnx_export *e)
{
    for (int i = 0; i < e->model->layer_count && e->status == SDLF_OK; i++)
        if (e->layer[i].live && e->model->layers[i].layer.type == &sdlf_input_layer_class)
            add_value(e, &e->inputs, e->layer[i].value[0], (sdlf_node){i, 0});
}

void export_normalization(onnx_export *e)
{
    const sdlf_normalization *n = &e->model->normalization;
    const int input = sdlf_model_input(e->model, 0).layer, channels = n->channels.count;
    if (!export_ok(e) || !e->layer[input].live) return;
    e->now = &e->model->layers[input];
    e->position = input;
    e->steps = 0;
    const sdlf_shape shape = channels > 0 ? sdlf_shape(channels, 1, 1) : sdlf_shape(1);
    const char *mean = export_reals(e, channels > 0 ? n->channels.mean : &n->mean, shape);
    const char *scale = export_reals(e, channels > 0 ? n->channels.scale : &n->scale, shape);
    const char *centred = export_step2(e, "Sub", e->layer[input].value[0], mean);
    e->layer[input].value[0] = export_step2(e, "Mul", centred, scale);
}

/* A value that already has another name is passed through Identity to the output's name. */
void export_outputs(onnx_export *e)
{
    for (int i = 0; i < e->output_count && export_ok(e); i++) {
        const export_output *output = &e->output[i];
        const char *value = e->layer[output->node.layer].value[output->node.output];
        if (value != output->name)
            export_append(e, "Identity", output->name, (const char *const[]){value, NULL}, &output->name, 1, NULL);
        add_value(e, &e->outputs, output->name, output->node);
    }
}
