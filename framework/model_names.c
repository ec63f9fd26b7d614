/* SPDX-License-Identifier: MIT */
/* Finding layers by name, and names for layers that are added without one. */
#include "framework/model_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if the layer in a slot is named by the first `length` characters of `name`. */
static bool is_named(const sdlf_model *model, int slot, const char *name, size_t length)
{
    const char *own = model->layers[model->names.layer[slot] - 1].layer.name;
    return strncmp(own, name, length) == 0 && own[length] == 0;
}

/* The slot of the name's layer, or the one where to insert it: FNV-1a, then linear probing. */
static int slot_of(const sdlf_model *model, const char *name, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    int mask = model->names.capacity - 1, slot = (int)(hash & (uint32_t)mask);
    while (model->names.layer[slot] != 0 && !is_named(model, slot, name, length)) slot = (slot + 1) & mask;
    return slot;
}

static int find(const sdlf_model *model, const char *name, size_t length)
{
    return model->names.capacity > 0 ? model->names.layer[slot_of(model, name, length)] - 1 : -1;
}

int model_find_layer(const sdlf_model *model, const char *name)
{
    return find(model, name, strlen(name));
}

int model_find_parameter(const sdlf_model *model, const char *name)
{
    const char *end = strrchr(name, '.'); /* LAYER.weight */
    int layer = -1;
    if (end != NULL && model->parameter_count > 0) layer = find(model, name, (size_t)(end - name));
    for (int i = 0; layer >= 0 && i < model->layers[layer].parameter_count; i++) {
        int index = model->layers[layer].first_parameter + i;
        if (strcmp(model->parameters[index].spec.name, end + 1) == 0) return index;
    }
    return -1;
}

sdlf_status model_reserve_name(sdlf_model *model)
{
    model_names *names = &model->names;
    if (2 * (model->layer_count + 1) <= names->capacity) return SDLF_OK;
    int capacity = names->capacity != 0 ? 2 * names->capacity : 32;
    int *layer = calloc((size_t)capacity, sizeof *layer);
    if (layer == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "model: out of memory for the names of %d layers", capacity);
    free(names->layer);
    *names = (model_names){.layer = layer, .capacity = capacity};
    for (int i = 0; i < model->layer_count; i++) model_enter_name(model, i);
    return SDLF_OK;
}

void model_enter_name(sdlf_model *model, int layer)
{
    const char *name = model->layers[layer].layer.name;
    model->names.layer[slot_of(model, name, strlen(name))] = layer + 1;
}

/* "relu_7" is free again: the search for names of "relu" restarts. */
static void give_number_back(sdlf_model *model, const char *name)
{
    const char *end = strrchr(name, '_');
    int layer = end != NULL ? find(model, name, (size_t)(end - name)) : -1;
    if (layer >= 0) model->layers[layer].next_number = 0;
}

/* No later name was probed past its slot, so clearing the slot leaves no gap. */
void model_remove_last_name(sdlf_model *model)
{
    const char *name = model->layers[model->layer_count - 1].layer.name;
    model->names.layer[slot_of(model, name, strlen(name))] = 0;
    give_number_back(model, name);
}

char *model_choose_name(sdlf_model *model, const sdlf_layer_class *type, const char *given)
{
    if (given != NULL) return strdup(given);
    int first = model_find_layer(model, type->name);
    if (first < 0) return strdup(type->name);
    char name[96];
    int *number = &model->layers[first].next_number;
    if (*number < 2) *number = 2;
    for (;; (*number)++) {
        snprintf(name, sizeof name, "%.64s_%d", type->name, *number);
        if (model_find_layer(model, name) < 0) return strdup(name);
    }
}
