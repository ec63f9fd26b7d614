/* SPDX-License-Identifier: MIT */
/* A model's parameters. Layers are only appended, and so are parameters: those of the layers that a model already had
 * keep their indices and values. */
#include "framework/model_internal.h"

#include <assert.h>
#include <sdlf/communicator.h>
#include <sdlf/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "framework/initializer.h"

int model_valued_count(const sdlf_model *model)
{
    int count = 0;
    while (count < model->parameter_count && model->parameters[count].value.data != NULL) count++;
    return count;
}

void model_truncate_parameters(sdlf_model *model, int count)
{
    while (model->parameter_count > count) {
        sdlf_parameter *parameter = &model->parameters[--model->parameter_count];
        free(parameter->name);
        sdlf_tensor_release(&parameter->value, NULL);
        for (int s = 0; s < 3; s++) sdlf_tensor_release(&parameter->state[s], NULL);
    }
    while (model->described > 0) {
        model_layer *last = &model->layers[model->described - 1];
        if (last->first_parameter + last->parameter_count <= count) break;
        last->parameter_count = 0;
        model->described--;
    }
    model->built = false;
}

void model_free_parameters(sdlf_model *model)
{
    model_truncate_parameters(model, 0);
    free(model->parameters);
    model_close_source(model);
    model->parameters = NULL;
    model->parameter_capacity = model->described = 0;
}

/* Appends the parameters of one layer, without values. */
static sdlf_status add_parameters(sdlf_model *model, int index, const sdlf_signature *signature)
{
    model_layer *entry = &model->layers[index];
    entry->first_parameter = model->parameter_count;
    entry->parameter_count = signature->parameter_count;
    sdlf_status status = model_check_frozen(entry, signature);
    if (status != SDLF_OK || signature->parameter_count == 0) return status;
    int count = model->parameter_count + signature->parameter_count;
    if (count > model->parameter_capacity) {
        int capacity = 2 * count;
        sdlf_parameter *parameters = realloc(model->parameters, (size_t)capacity * sizeof *parameters);
        if (parameters == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "model: out of memory for %d parameters", capacity);
        model->parameters = parameters;
        model->parameter_capacity = capacity;
    }
    for (int i = 0; i < signature->parameter_count; i++) {
        const sdlf_parameter_spec *spec = &signature->parameter[i];
        sdlf_parameter *parameter = &model->parameters[model->parameter_count];
        *parameter = (sdlf_parameter){.spec = *spec, .layer = index};
        if (model_is_frozen(entry, spec->name)) parameter->spec.trainable = false;
        size_t length = strlen(entry->layer.name) + strlen(spec->name) + 2;
        parameter->name = malloc(length);
        if (parameter->name == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "model: out of memory for a parameter's name");
        snprintf(parameter->name, length, "%s.%s", entry->layer.name, spec->name);
        model->parameter_count++; /* from here on model_free_parameters cleans up */
    }
    return SDLF_OK;
}

sdlf_status model_describe(sdlf_model *model)
{
    sdlf_status status = model_infer(model);
    if (status != SDLF_OK) return status;
    if (model->users > 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "network '%s': its parameters are in use by %d plan%s, free %s before they are made again",
                         model->name, model->users, model->users > 1 ? "s" : "", model->users > 1 ? "them" : "it");
    if (model->built) model_free_parameters(model);
    int before = model->parameter_count;
    while (model->described < model->layer_count && status == SDLF_OK) {
        sdlf_signature signature;
        status = model_infer_layer(model, model->described, &signature);
        if (status == SDLF_OK) status = add_parameters(model, model->described, &signature);
        model->described++; /* counted already, so that a partial list of its parameters is removed too */
    }
    if (status != SDLF_OK) model_truncate_parameters(model, before);
    return status;
}

sdlf_status model_allocate(sdlf_model *model, const uint64_t *seed)
{
    int first = model_valued_count(model);
    for (int i = first; i < model->parameter_count; i++) {
        sdlf_parameter *parameter = &model->parameters[i];
        sdlf_status status = sdlf_tensor_create(&parameter->value, NULL, SDLF_FLOAT32, parameter->spec.shape);
        if (status == SDLF_OK && seed != NULL)
            status = sdlf_initialize(&parameter->value, &parameter->spec, *seed, sdlf_parameter_stream(i));
        if (status != SDLF_OK) {
            status = sdlf_fail_context(status, "parameter %s", parameter->name);
            model_truncate_parameters(model, first);
            return status;
        }
    }
    model->built = true;
    return SDLF_OK;
}

sdlf_status sdlf_model_build(sdlf_model *model, uint64_t seed)
{
    if (model == NULL) return sdlf_model_status(NULL);
    sdlf_status status = model_describe(model);
    return status == SDLF_OK ? model_allocate(model, &seed) : status;
}

int sdlf_model_parameter_count(const sdlf_model *model)
{
    if (model == NULL) return 0;
    return model->parameter_count;
}

sdlf_parameter *sdlf_model_parameter(sdlf_model *model, int index)
{
    if (model == NULL) return NULL;
    return index >= 0 && index < model->parameter_count ? &model->parameters[index] : NULL;
}

sdlf_parameter *sdlf_model_find_parameter(sdlf_model *model, const char *name)
{
    if (model == NULL || name == NULL) return NULL;
    int index = model_find_parameter(model, name);
    return index >= 0 ? &model->parameters[index] : NULL;
}

int64_t model_state_first(const sdlf_model *model, int parameter)
{
    int64_t count = sdlf_shape_count(model->parameters[parameter].spec.shape);
    return model->shards > 0 ? sdlf_communicator_shard(model->shard, model->shards, count) : 0;
}

int64_t model_state_count(const sdlf_model *model, int parameter)
{
    int64_t count = sdlf_shape_count(model->parameters[parameter].spec.shape);
    if (model->shards == 0) return count;
    return sdlf_communicator_shard(model->shard + 1, model->shards, count) - model_state_first(model, parameter);
}

/* A part of a state is flat and never empty: an empty part has one element, which is not used. */
static sdlf_shape state_shape(const sdlf_model *model, int parameter)
{
    int64_t count = model_state_count(model, parameter);
    return model->shards > 0 ? sdlf_shape(count > 0 ? count : 1) : model->parameters[parameter].spec.shape;
}

sdlf_status model_shard_states(sdlf_model *model, int shard, int shards)
{
    if (model->shards > 0 || shards == 0) {
        sdlf_status status = sdlf_model_require_states(model, 0);
        model->shard = shard;
        model->shards = shards;
        return status;
    }
    model->shard = shard;
    model->shards = shards;
    for (int i = 0; i < model->parameter_count; i++) {
        for (int s = 0; s < 3; s++) {
            sdlf_tensor *state = &model->parameters[i].state[s], part;
            if (!sdlf_tensor_present(state)) continue;
            sdlf_status status = sdlf_tensor_create(&part, NULL, SDLF_FLOAT32, state_shape(model, i));
            if (status != SDLF_OK) return sdlf_fail_context(status, "optimizer state of %s", model->parameters[i].name);
            memset(part.data, 0, (size_t)sdlf_tensor_bytes(&part));
            memcpy(part.data, (float *)state->data + model_state_first(model, i),
                   (size_t)model_state_count(model, i) * sizeof(float));
            sdlf_tensor_release(state, NULL);
            *state = part;
        }
    }
    return SDLF_OK;
}

sdlf_status sdlf_model_require_states(sdlf_model *model, int count)
{
    if (model == NULL) return sdlf_model_status(NULL);
    if (count < 0 || count > 3)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_model_require_states: %d states, expected 0 to 3", count);
    for (int i = 0; i < model->parameter_count && model->state_users > 0; i++) {
        const sdlf_parameter *parameter = &model->parameters[i];
        for (int s = count; s < 3; s++)
            if (sdlf_tensor_present(&parameter->state[s]))
                return sdlf_fail(SDLF_ERROR_ARGUMENT,
                                 "network '%s' is being trained: the optimizer state of %s is in use "
                                 "by a plan, free that first",
                                 model->name, parameter->name);
    }
    for (int i = 0; i < model->parameter_count; i++) {
        sdlf_parameter *parameter = &model->parameters[i];
        int wanted = parameter->spec.trainable ? count : 0;
        for (int s = wanted; s < 3; s++) sdlf_tensor_release(&parameter->state[s], NULL);
        for (int s = 0; s < wanted; s++) {
            if (sdlf_tensor_present(&parameter->state[s])) continue;
            sdlf_status status = sdlf_tensor_create(&parameter->state[s], NULL, SDLF_FLOAT32, state_shape(model, i));
            if (status != SDLF_OK) return sdlf_fail_context(status, "optimizer state of %s", parameter->name);
            memset(parameter->state[s].data, 0, (size_t)sdlf_tensor_bytes(&parameter->state[s]));
        }
    }
    return SDLF_OK;
}

void model_start_using(sdlf_model *model, bool states)
{
    model->users++;
    model->state_users += states;
}

void model_note_change(sdlf_model *model)
{
    atomic_fetch_add_explicit(&model->changes, 1, memory_order_relaxed);
}

void model_stop_using(sdlf_model *model, bool states)
{
    model->users--;
    model->state_users -= states;
}

int64_t sdlf_model_trainable_count(const sdlf_model *model)
{
    if (model == NULL) return 0;
    int64_t count = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        const sdlf_parameter_spec *spec = &model->parameters[i].spec;
        if (spec->trainable) count += sdlf_shape_count(spec->shape);
    }
    return count;
}

uint32_t sdlf_model_hash(const sdlf_model *model)
{
    if (model == NULL) return 0;
    uLong hash = crc32_z(0, NULL, 0);
    for (int i = 0; i < model->parameter_count; i++) {
        const sdlf_tensor *value = &model->parameters[i].value;
        if (sdlf_tensor_present(value)) hash = crc32_z(hash, value->data, (z_size_t)sdlf_tensor_bytes(value));
    }
    return (uint32_t)hash;
}

bool sdlf_model_parameter_matches(const sdlf_model *model, int index, const char *pattern)
{
    if (model == NULL || pattern == NULL || index < 0 || index >= model->parameter_count) return false;
    const sdlf_parameter *parameter = &model->parameters[index];
    int head = sdlf_model_head(model);
    if (strcmp(pattern, "trunk") == 0 || strcmp(pattern, "head") == 0)
        return head >= 0 && (parameter->layer == head) == (pattern[0] == 'h');
    size_t length = strlen(pattern);
    if (length > 0 && pattern[length - 1] == '*') return strncmp(parameter->name, pattern, length - 1) == 0;
    return strcmp(parameter->name, pattern) == 0;
}
