/* SPDX-License-Identifier: MIT */
/* Queries of a model: its layers, inputs, outputs and shapes. What does not exist is returned as NULL, 0, a node of no
 * layer, or a scalar. */
#include <string.h>

#include "framework/input_layer.h"
#include "framework/model_internal.h"

static const sdlf_node no_node = {-1, 0};

static bool is_layer(const sdlf_model *model, int index)
{
    return model != NULL && index >= 0 && index < model->layer_count;
}

sdlf_normalization *sdlf_model_normalization(sdlf_model *model)
{
    if (model == NULL) return NULL;
    return &model->normalization;
}

sdlf_training_state *sdlf_model_training_state(sdlf_model *model)
{
    if (model == NULL) return NULL;
    return &model->training_state;
}

int sdlf_model_layer_count(const sdlf_model *model)
{
    if (model == NULL) return 0;
    return model->layer_count;
}

const sdlf_layer *sdlf_model_layer(const sdlf_model *model, int index)
{
    return is_layer(model, index) ? &model->layers[index].layer : NULL;
}

int sdlf_model_layer_input_count(const sdlf_model *model, int index)
{
    return is_layer(model, index) ? model->layers[index].input_count : 0;
}

sdlf_node sdlf_model_layer_input(const sdlf_model *model, int index, int input)
{
    if (!is_layer(model, index) || input < 0 || input >= model->layers[index].input_count) return no_node;
    return model->layers[index].inputs[input];
}

int sdlf_model_input_count(const sdlf_model *model)
{
    if (model == NULL) return 0;
    int count = 0;
    for (int i = 0; i < model->layer_count; i++) count += model->layers[i].layer.type == &sdlf_input_layer_class;
    return count;
}

sdlf_node sdlf_model_input(const sdlf_model *model, int index)
{
    if (model == NULL || index < 0) return no_node;
    for (int i = 0; i < model->layer_count; i++) {
        if (model->layers[i].layer.type == &sdlf_input_layer_class && index-- == 0) return (sdlf_node){i, 0};
    }
    return no_node;
}

static bool reads_tokens(const sdlf_model *model, const model_layer *reader)
{
    bool embedding = strcmp(reader->layer.type->name, "embedding") == 0;
    for (int i = 0; i < reader->input_count; i++) {
        if (!is_layer(model, reader->inputs[i].layer)) continue;
        const model_layer *from = &model->layers[reader->inputs[i].layer];
        if (from->layer.type != &sdlf_input_layer_class) continue;
        const sdlf_input_options *options = from->layer.options;
        if (embedding || !sdlf_dtype_is_float((sdlf_dtype)options->dtype)) return true;
    }
    return false;
}

bool sdlf_model_takes_tokens(const sdlf_model *model)
{
    for (int i = 0; model != NULL && i < model->layer_count; i++)
        if (!model->layers[i].layer.type->is_loss && reads_tokens(model, &model->layers[i])) return true;
    return false;
}

int sdlf_model_output_count(const sdlf_model *model)
{
    if (model == NULL) return 0;
    return model->output_count;
}

sdlf_node sdlf_model_output(const sdlf_model *model, int index)
{
    if (model == NULL) return no_node;
    return index >= 0 && index < model->output_count ? model->outputs[index].node : no_node;
}

const char *sdlf_model_output_name(const sdlf_model *model, int index)
{
    if (model == NULL) return NULL;
    return index >= 0 && index < model->output_count ? model->outputs[index].name : NULL;
}

bool sdlf_model_output_is_length(const sdlf_model *model, int index)
{
    for (int i = 0; model != NULL && i < model->output_count; i++)
        if (model->outputs[i].length == index && index >= 0) return true;
    return false;
}

sdlf_shape sdlf_model_node_shape(const sdlf_model *model, sdlf_node node)
{
    bool known = is_layer(model, node.layer) && node.output >= 0 && node.output < SDLF_MAX_LAYER_OUTPUTS;
    return known ? model->layers[node.layer].output_shape[node.output] : SDLF_SCALAR;
}
