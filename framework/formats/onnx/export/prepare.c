/* SPDX-License-Identifier: MIT */
/* Before the first node: dependencies of the graph's outputs, shapes for a batch other than 1, and the names of all
 * values. */
#include "framework/formats/onnx/export/export.h"

#include <stdio.h>
#include <string.h>

#include "framework/formats/text.h"
#include "framework/input_layer.h"

static bool is_loss(const onnx_export *e, sdlf_node node)
{
    return e->model->layers[node.layer].layer.type->is_loss;
}

/* ---- outputs ---- */

static void add_output(onnx_export *e, sdlf_node node, const char *name)
{
    if (!is_loss(e, node)) e->output[e->output_count++] = (export_output){node, name};
}

/* The model's outputs, without losses; the last layer if the model declares none. If only losses remain, their inputs:
 * the scores. */
static void choose_outputs(onnx_export *e)
{
    const sdlf_model *model = e->model;
    const sdlf_node last = {model->layer_count - 1, 0};
    for (int i = 0; i < model->output_count; i++) add_output(e, model->outputs[i].node, model->outputs[i].name);
    if (model->output_count == 0) add_output(e, last, model->layers[last.layer].layer.name);
    if (e->output_count > 0) return;
    const model_layer *loss = &model->layers[model->output_count > 0 ? model->outputs[0].node.layer : last.layer];
    sdlf_node scores = loss->inputs[0];
    add_output(e, scores, model->layers[scores.layer].layer.name);
}

static void mark_live(onnx_export *e)
{
    for (int i = 0; i < e->output_count; i++) {
        sdlf_node node = e->output[i].node;
        e->layer[node.layer].live = e->layer[node.layer].wanted[node.output] = true;
    }
    for (int i = e->model->layer_count - 1; i >= 0; i--) {
        const model_layer *layer = &e->model->layers[i];
        for (int k = 0; e->layer[i].live && k < layer->input_count; k++) {
            if (layer->layer.type->backward_inputs >> k & 1) continue;
            sdlf_node node = layer->inputs[k];
            e->layer[node.layer].live = e->layer[node.layer].wanted[node.output] = true;
        }
    }
}

/* ---- another batch ---- */

static bool infer_wide(onnx_export *e, int index)
{
    const model_layer *layer = &e->model->layers[index];
    sdlf_signature signature = {.batch = MODEL_OTHER_BATCH, .input_count = layer->input_count, .dtype = SDLF_FLOAT32};
    for (int i = 0; i < layer->input_count; i++) {
        sdlf_node node = layer->inputs[i];
        const model_layer *from = &e->model->layers[node.layer];
        signature.input_shape[i] = e->layer[node.layer].wide[node.output];
        signature.input_dtype[i] = from->output_dtype[node.output];
        signature.input_sparse[i] = from->output_sparse[node.output];
    }
    if (layer->layer.type->infer(&layer->layer, &signature) != SDLF_OK) return false;
    memcpy(e->layer[index].wide, signature.output_shape, sizeof e->layer[index].wide);
    for (int i = 0; i < signature.parameter_count; i++) { /* a weight whose size depends on the batch */
        const sdlf_parameter *parameter = &e->model->parameters[layer->first_parameter + i];
        if (!sdlf_shape_equal(signature.parameter[i].shape, parameter->spec.shape)) return false;
    }
    return true;
}

static void try_another_batch(onnx_export *e)
{
    for (int i = 0; i < e->model->layer_count && !e->fixed_batch; i++)
        if (e->layer[i].live && !infer_wide(e, i)) e->fixed_batch = true;
}

/* ---- names ---- */

const char *export_name(onnx_export *e, const char *wanted)
{
    char name[512];
    if (e->status != SDLF_OK) return NULL;
    if (!text_is_utf8(wanted)) {
        e->status = sdlf_fail(SDLF_ERROR_ARGUMENT, "the name '%s' is not UTF-8", text_show(wanted).text);
        return NULL;
    }
    snprintf(name, sizeof name, "%.480s", wanted[0] != '\0' ? wanted : "value");
    size_t length = strlen(name);
    for (int number = 2; onnx_name_table_find(&e->names, name) >= 0; number++)
        snprintf(name + length, sizeof name - length, "_%d", number);
    const char *copy = onnx_arena_text(&e->arena, name, strlen(name));
    if (copy != NULL && onnx_name_table_put(&e->names, copy, 0)) return copy;
    export_no_memory(e);
    return NULL;
}

/* True if this layer's value keeps its name even as an output. */
static bool has_own_name(const onnx_export *e, sdlf_node node)
{
    return e->model->layers[node.layer].input_count == 0; /* inputs and values */
}

/* Inputs and outputs keep the model's names; the first of a layer's other values is named after the layer. */
static void name_values(onnx_export *e)
{
    const sdlf_model *model = e->model;
    for (int i = 0; i < model->layer_count; i++)
        if (e->layer[i].live && model->layers[i].layer.type == &sdlf_input_layer_class)
            e->layer[i].value[0] = export_name(e, model->layers[i].layer.name);
    for (int i = 0; i < e->output_count; i++) {
        sdlf_node node = e->output[i].node;
        const char **value = &e->layer[node.layer].value[node.output];
        e->output[i].name = export_name(e, e->output[i].name);
        if (*value == NULL && !has_own_name(e, node)) *value = e->output[i].name;
    }
    for (int i = 0; i < model->layer_count && e->status == SDLF_OK; i++) {
        const model_layer *layer = &model->layers[i];
        if (!e->layer[i].live || layer->input_count == 0) continue;
        for (int k = 0; k < layer->output_count; k++) {
            char name[512];
            snprintf(name, sizeof name, k == 0 ? "%.480s" : "%.480s:%d", layer->layer.name, k);
            if (e->layer[i].value[k] == NULL) e->layer[i].value[k] = export_name(e, name);
        }
    }
}

sdlf_status export_prepare(onnx_export *e)
{
    size_t layers = (size_t)e->model->layer_count, outputs = (size_t)e->model->output_count + 1;
    e->names.arena = &e->arena;
    e->layer = onnx_arena_array(&e->arena, layers, sizeof *e->layer);
    e->output = onnx_arena_array(&e->arena, outputs, sizeof *e->output);
    if (e->layer == NULL || e->output == NULL) {
        export_no_memory(e);
        return e->status;
    }
    choose_outputs(e);
    mark_live(e);
    try_another_batch(e);
    name_values(e);
    return e->status;
}
