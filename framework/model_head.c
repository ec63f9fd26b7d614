/* SPDX-License-Identifier: MIT */
/* The layer that computes a classifier's scores, and its replacement. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/layers.h>

#include "framework/model_internal.h"

/* The number of classes, as an option of the layer; NULL: it is not such a layer. */
static int *classes_of(const sdlf_layer *layer)
{
    void *options = (void *)(uintptr_t)layer->options; /* the model's own */
    if (strcmp(layer->type->name, "fully_connected") == 0) return &((sdlf_fully_connected_options *)options)->units;
    if (strcmp(layer->type->name, "conv2d") == 0) return &((sdlf_conv2d_options *)options)->filters;
    return NULL;
}

int sdlf_model_head(const sdlf_model *model)
{
    if (model == NULL || model->layer_count == 0) return -1;
    int at = model->output_count > 0 ? model->outputs[0].node.layer : model->layer_count - 1;
    while (model->layers[at].parameter_count == 0) {
        if (model->layers[at].input_count < 1) return -1;
        at = model->layers[at].inputs[0].layer;
    }
    return classes_of(&model->layers[at].layer) != NULL ? at : -1;
}

/* True if no layer behind it has parameters: these would follow the head's and be removed with them. */
static bool is_last_with_parameters(const sdlf_model *model, int head)
{
    const model_layer *entry = &model->layers[head];
    return entry->first_parameter + entry->parameter_count == model->parameter_count;
}

sdlf_status sdlf_model_replace_head(sdlf_model *model, int classes, uint64_t seed)
{
    sdlf_status status = sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    if (!model->built || model->users > 0 || classes < 1)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "sdlf_model_replace_head: expected a model that is built, without plans, and 1 class or more");
    int head = sdlf_model_head(model);
    if (head < 0 || !is_last_with_parameters(model, head))
        return sdlf_fail(
            SDLF_ERROR_UNSUPPORTED,
            "network '%s' does not end in a fully connected layer or a convolution that could be replaced for %d "
            "classes",
            model->name, classes);
    model_layer *entry = &model->layers[head];
    int *own = classes_of(&entry->layer);
    model_release_classes(&model->classes);
    model_truncate_parameters(model, entry->first_parameter);
    *own = classes;
    free(entry->frozen);
    entry->frozen = NULL;
    return sdlf_fail_context(sdlf_model_build(model, seed), "network '%s' with %d classes", model->name, classes);
}
