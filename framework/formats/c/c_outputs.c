/* SPDX-License-Identifier: MIT */
/* Liveness and folding: which layers the outputs depend on, and which need no statement of their own. */
#include "framework/formats/c/c_export.h"

#include <stdlib.h>

static void add_output(c_export *e, sdlf_node node, const char *name)
{
    if (c_at(e, node.layer)->layer.type->is_loss) return;
    e->output[e->output_count] = node;
    e->output_name[e->output_count++] = name;
}

/* The model's outputs, without losses; the last layer if the model declares none. If only losses remain, their inputs:
 * the scores. */
static void list_outputs(c_export *e)
{
    const sdlf_model *model = e->model;
    const sdlf_node last = {model->layer_count - 1, 0};
    for (int i = 0; i < model->output_count; i++) add_output(e, model->outputs[i].node, model->outputs[i].name);
    if (model->output_count == 0) add_output(e, last, c_at(e, last.layer)->layer.name);
    if (e->output_count > 0) return;
    sdlf_node scores = c_at(e, model->output_count > 0 ? model->outputs[0].node.layer : last.layer)->inputs[0];
    add_output(e, scores, c_at(e, scores.layer)->layer.name);
}

static void mark(c_export *e)
{
    for (int i = 0; i < e->output_count; i++) {
        e->state[e->output[i].layer].live = true;
        e->state[e->output[i].layer].readers++;
    }
    for (int i = e->model->layer_count - 1; i >= 0; i--)
        for (int k = 0; e->state[i].live && k < c_at(e, i)->input_count; k++) {
            e->state[c_at(e, i)->inputs[k].layer].live = true;
            e->state[c_at(e, i)->inputs[k].layer].readers++;
        }
}

/* Folds a batch normalisation over the filters or units of the preceding layer, if it is that layer's only reader. */
static void fold(c_export *e, int layer)
{
    if (!e->state[layer].live || !c_is(e, layer, "batch_norm2d")) return;
    int before = c_at(e, layer)->inputs[0].layer;
    bool fits = c_is(e, before, "conv2d") || c_is(e, before, "fully_connected");
    if (!fits || e->state[before].readers != 1) return;
    e->state[before].norm = layer;
    e->state[layer].folded = true;
}

void c_choose_outputs(c_export *e)
{
    size_t layers = (size_t)e->model->layer_count, outputs = (size_t)e->model->output_count + 1;
    e->state = calloc(layers, sizeof *e->state);
    e->output = calloc(outputs, sizeof *e->output);
    e->output_name = calloc(outputs, sizeof *e->output_name);
    if (e->state == NULL || e->output == NULL || e->output_name == NULL) {
        c_no_memory(e);
        return;
    }
    list_outputs(e);
    mark(e);
    for (int i = 0; i < e->model->layer_count; i++) e->state[i].norm = -1;
    for (int i = 0; i < e->model->layer_count; i++) fold(e, i);
}
