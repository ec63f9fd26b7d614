/* SPDX-License-Identifier: MIT */
/* Saving a model: its parameters, and what is needed for inference or further training. */
#include <sdlf/formats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/training_json.h"
#include "framework/formats/weights.h"
#include "framework/require.h"

/* The tensors to write, and the names that were allocated for some of them. */
typedef struct tensor_list {
    safetensors_item *items;
    char **names;
    size_t count, name_count;
} tensor_list;

static sdlf_status out_of_memory(const char *path)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory saving '%s'", path);
}

/* Stores a text under a key; takes ownership of `text`. */
static sdlf_status add_metadata(json_t *metadata, const char *key, char *text, const char *path)
{
    bool ok = json_object_set_new(metadata, key, json_string(text)) == 0;
    free(text);
    return ok ? SDLF_OK : out_of_memory(path);
}

static sdlf_status make_metadata(json_t **metadata, sdlf_model *model, const char *path, bool training)
{
    *metadata = json_object();
    if (*metadata == NULL) return out_of_memory(path);
    char *text = NULL;
    sdlf_status status = sdlf_network_write(model, &text);
    if (status == SDLF_OK) status = add_metadata(*metadata, WEIGHTS_NETWORK, text, path);
    if (status == SDLF_OK && model->normalization.known) {
        status = normalization_json_write(&text, &model->normalization);
        if (status == SDLF_OK) status = add_metadata(*metadata, WEIGHTS_NORMALIZATION, text, path);
    }
    if (status == SDLF_OK && model->classes.count > 0) {
        status = classes_json_write(&text, &model->classes);
        if (status == SDLF_OK) status = add_metadata(*metadata, WEIGHTS_CLASSES, text, path);
    }
    if (status == SDLF_OK && model->loss != SDLF_LOSS_CROSS_ENTROPY) {
        text = strdup(sdlf_loss_names[model->loss]);
        status = text != NULL ? add_metadata(*metadata, WEIGHTS_LOSS, text, path) : out_of_memory(path);
    }
    if (status == SDLF_OK && model->loss == SDLF_LOSS_HUBER && sdlf_model_huber_delta(model) != 1) {
        char number[32];
        snprintf(number, sizeof number, "%.9g", (double)sdlf_model_huber_delta(model));
        text = strdup(number);
        status = text != NULL ? add_metadata(*metadata, WEIGHTS_HUBER_DELTA, text, path) : out_of_memory(path);
    }
    if (status == SDLF_OK && training && model->training_state.present) {
        status = training_json_write(&text, &model->training_state);
        if (status == SDLF_OK) status = add_metadata(*metadata, WEIGHTS_TRAINING, text, path);
    }
    return status;
}

static sdlf_status add_state(tensor_list *list, const sdlf_parameter *parameter, int state, const char *path)
{
    size_t size = strlen(parameter->name) + sizeof WEIGHTS_STATE "0.";
    char *name = malloc(size);
    if (name == NULL) return out_of_memory(path);
    snprintf(name, size, WEIGHTS_STATE "%d.%s", state, parameter->name);
    list->names[list->name_count++] = name;
    list->items[list->count++] = (safetensors_item){name, parameter->state[state]};
    return SDLF_OK;
}

static sdlf_status make_list(tensor_list *list, const sdlf_model *model, bool training, const char *path)
{
    size_t parameters = (size_t)model->parameter_count + 1; /* one more, so that no size is 0 */
    list->items = malloc(parameters * (1 + WEIGHTS_STATES) * sizeof *list->items);
    list->names = malloc(parameters * WEIGHTS_STATES * sizeof *list->names);
    sdlf_status status = list->items != NULL && list->names != NULL ? SDLF_OK : out_of_memory(path);
    for (int i = 0; i < model->parameter_count && status == SDLF_OK; i++) {
        const sdlf_parameter *parameter = &model->parameters[i];
        list->items[list->count++] = (safetensors_item){parameter->name, parameter->value};
        for (int state = 0; training && state < WEIGHTS_STATES && status == SDLF_OK; state++)
            if (sdlf_tensor_present(&parameter->state[state])) status = add_state(list, parameter, state, path);
    }
    return status;
}

static void release_list(tensor_list *list)
{
    for (size_t i = 0; i < list->name_count; i++) free(list->names[i]);
    free(list->names);
    free(list->items);
}

static sdlf_status save(sdlf_model *model, const char *path, bool training)
{
    sdlf_status status = sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    if (!model->built)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "model '%s' has no parameters to save yet: build it first", model->name);
    json_t *metadata = NULL;
    tensor_list list = {0};
    status = make_metadata(&metadata, model, path, training);
    if (status == SDLF_OK) status = make_list(&list, model, training, path);
    if (status == SDLF_OK) status = safetensors_write(path, list.items, list.count, metadata);
    release_list(&list);
    json_decref(metadata);
    return status;
}

sdlf_status sdlf_model_save(sdlf_model *model, const char *path)
{
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(path);
    return save(model, path, false);
}

sdlf_status sdlf_model_save_checkpoint(sdlf_model *model, const char *path)
{
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(path);
    return save(model, path, true);
}
