/* SPDX-License-Identifier: MIT */
/* Adding the layers of a node: names, shapes, parameters to be filled; and setting a node's outputs. See import.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/import/fold.h"
#include "framework/formats/text.h"

static const onnx_flow no_flow = {.node = {-1, 0}, .dtype = SDLF_FLOAT32};

/* ---- names ---- */

enum { MAX_NAME = 96 }; /* with a number appended, it fits in network files */

/* The node's name, or its operator's and position; further layers append "/2", "/3". Unique, and UTF-8. */
static const char *make_name(onnx_context *c)
{
    char name[MAX_NAME + 32];
    const char *given = c->name != NULL ? c->name : c->node->name;
    bool usable = given != NULL && given[0] != '\0' && strlen(given) <= MAX_NAME && text_is_utf8(given);
    int length =
        usable ? snprintf(name, sizeof name, "%s", given)
               : snprintf(name, sizeof name, "%.40s_%d",
                          c->node->op_type != NULL && text_is_utf8(c->node->op_type) ? c->node->op_type : "constant",
                          c->position);
    int first = c->name != NULL ? 1 : c->layers + 1;
    for (int number = first;; number++) {
        int tries =
            number - first + 1; /* many nodes share a name: use their positions instead, as probing would take long */
        if (tries > 8)
            snprintf(name + length, sizeof name - (size_t)length, "/%d/%d", c->position, number);
        else if (number > 1)
            snprintf(name + length, sizeof name - (size_t)length, "/%d", number);
        if (onnx_name_table_find(&c->import->layers, name) < 0) break;
    }
    return onnx_arena_text(&c->import->file->arena, name, strlen(name));
}

/* ---- layers ---- */

enum { MAX_LAYERS = 30000 }; /* the limit of network files */

static onnx_flow add(onnx_context *c, const sdlf_layer_class *type, void *options, const onnx_flow *inputs,
                     int input_count)
{
    sdlf_model *model = c->import->model;
    sdlf_node nodes[SDLF_MAX_LAYER_INPUTS];
    sdlf_signature signature;
    if (sdlf_model_layer_count(model) >= MAX_LAYERS) {
        onnx_unsupported(c, "the model would have more than %d layers", (int)MAX_LAYERS);
        return no_flow;
    }
    const char *name = make_name(c);
    if (name == NULL || !onnx_name_table_put(&c->import->layers, name, sdlf_model_layer_count(model))) {
        onnx_no_memory(c);
        return no_flow;
    }
    for (int i = 0; i < input_count; i++) nodes[i] = inputs[i].node;
    *(const char **)options = name;
    sdlf_node node = sdlf_model_add(model, type, options, nodes, input_count);
    sdlf_status status = sdlf_model_status(model);
    if (status == SDLF_OK) {
        status = model_infer_layer(model, node.layer, &signature);
        if (status != SDLF_OK) model_drop_last(model);
    } else {
        model_forget_error(model);
    }
    if (status != SDLF_OK) {
        c->status = status == SDLF_ERROR_MEMORY ? status : SDLF_ERROR_UNSUPPORTED;
        return no_flow;
    }
    if (!onnx_batch_note(c->import, node.layer)) {
        onnx_no_memory(c);
        return no_flow;
    }
    if (c->name == NULL) c->layers++;
    return (onnx_flow){node, signature.output_dtype[0], signature.output_shape[0]};
}

onnx_flow onnx_layer(onnx_context *c, const char *type, const void *options, const onnx_flow *inputs, int input_count)
{
    if (!onnx_ok(c)) return no_flow;
    const sdlf_layer_class *found = sdlf_layer_class_find(type);
    if (found == NULL || input_count > SDLF_MAX_LAYER_INPUTS) {
        onnx_unsupported(c, "this build has no layer '%s' of %d inputs", type, input_count);
        return no_flow;
    }
    void *copy = calloc(1, found->options_size);
    if (copy == NULL) {
        onnx_no_memory(c);
        return no_flow;
    }
    if (options != NULL) memcpy(copy, options, found->options_size);
    onnx_flow flow = add(c, found, copy, inputs, input_count);
    free(copy);
    return flow;
}

onnx_flow onnx_layer_output(onnx_context *c, onnx_flow flow, int output)
{
    if (!onnx_ok(c)) return no_flow;
    const model_layer *layer = &c->import->model->layers[flow.node.layer];
    if (output >= layer->output_count) {
        onnx_unsupported(c, "layer '%s' has no output %d", layer->layer.type->name, output);
        return no_flow;
    }
    return (onnx_flow){{flow.node.layer, output}, layer->output_dtype[output], layer->output_shape[output]};
}

/* ---- parameters ---- */

void onnx_fill_with(onnx_context *c, onnx_flow flow, const char *parameter, onnx_fill fill)
{
    onnx_import *import = c->import;
    if (!onnx_ok(c)) return;
    if (import->fill_count == import->fill_capacity) {
        int capacity = import->fill_capacity > 0 ? 2 * import->fill_capacity : 64;
        onnx_fill *larger = onnx_arena_array(&import->file->arena, (size_t)capacity, sizeof *larger);
        if (larger == NULL) {
            onnx_no_memory(c);
            return;
        }
        if (import->fill_count > 0) memcpy(larger, import->fill, (size_t)import->fill_count * sizeof *larger);
        import->fill = larger;
        import->fill_capacity = capacity;
    }
    onnx_block_hold(fill.tensor.block);
    fill.layer = flow.node.layer;
    fill.parameter = parameter;
    import->fill[import->fill_count++] = fill;
}

/* ---- outputs ---- */

void onnx_set_output(onnx_context *c, int output, onnx_flow flow)
{
    if (!onnx_ok(c) || output >= c->output_count || c->output[output] == NULL) return;
    c->output[output]->kind = ONNX_FLOW;
    c->output[output]->flow = flow;
}

void onnx_set_output_constant(onnx_context *c, int output, const onnx_tensor *tensor)
{
    if (!onnx_ok(c) || output >= c->output_count || c->output[output] == NULL) return;
    onnx_block_hold(tensor->block);
    c->output[output]->kind = ONNX_CONSTANT;
    c->output[output]->tensor = *tensor;
    c->output[output]->flow = no_flow;
}

/* ---- absorbing the next node ---- */

const onnx_tensor *onnx_constant_behind(onnx_context *c, const char *type, const Onnx__NodeProto **node)
{
    const onnx_value *value = c->output[0];
    if (!onnx_ok(c) || value == NULL || value->readers != 1 || value->reader < 0) return NULL;
    const Onnx__NodeProto *behind = c->import->file->node[value->reader];
    bool standard = behind->domain == NULL || behind->domain[0] == '\0';
    if (!standard || behind->op_type == NULL || strcmp(behind->op_type, type) != 0 || behind->n_input != 2 ||
        behind->n_output != 1 || behind->n_attribute != 0)
        return NULL;
    const char *other = strcmp(behind->input[0], value->name) == 0 ? behind->input[1] : behind->input[0];
    int index = onnx_name_table_find(&c->import->names, other);
    if (index < 0 || c->import->value[index].kind != ONNX_CONSTANT) return NULL;
    *node = behind;
    return &c->import->value[index].tensor;
}

void onnx_absorb(onnx_context *c, const Onnx__NodeProto *node, onnx_flow flow)
{
    int index = onnx_name_table_find(&c->import->names, node->output[0]);
    if (!onnx_ok(c) || index < 0) return;
    c->import->value[index].kind = ONNX_FLOW;
    c->import->value[index].flow = flow;
}
