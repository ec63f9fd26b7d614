/* SPDX-License-Identifier: MIT */
/* Building a model: layers and outputs are appended; the first error is kept until it is asked for. */
#include "framework/model_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/field.h"
#include "framework/input_layer.h"

static const sdlf_node no_node = {-1, 0};

sdlf_model *sdlf_model_create(const char *name)
{
    sdlf_model *model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    model->name = strdup(name != NULL ? name : "network");
    if (model->name == NULL) {
        free(model);
        return NULL;
    }
    model->normalization = (sdlf_normalization){.mean = 0, .scale = 1};
    return model;
}

static void release_layer(model_layer *entry)
{
    free((char *)entry->layer.name);
    free((char *)entry->layer.origin);
    free((void *)entry->layer.options);
    free(entry->frozen);
    free(entry->inputs);
}

void sdlf_model_free(sdlf_model *model)
{
    if (model == NULL) return;
    model_free_parameters(model);
    for (int i = 0; i < model->layer_count; i++) release_layer(&model->layers[i]);
    for (int i = 0; i < model->output_count; i++) free(model->outputs[i].name);
    model_release_classes(&model->classes);
    free(model->layers);
    free(model->names.layer);
    free(model->outputs);
    free(model->message);
    free(model->origin);
    free(model->name);
    free(model);
}

const char *sdlf_model_name(const sdlf_model *model)
{
    if (model == NULL) return NULL;
    return model->name;
}

/* Keeps the calling thread's message as the model's, unless an earlier error is kept already. */
static void record_error(sdlf_model *model, sdlf_status status)
{
    if (model == NULL || model->status != SDLF_OK || status == SDLF_OK) return;
    model->status = status;
    model->message = strdup(sdlf_error_message());
}

sdlf_status sdlf_model_status(const sdlf_model *model)
{
    if (model == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "model: there is none: memory ran out when it was created");
    if (model->status == SDLF_OK && model->source.file != NULL)
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "network '%s': its weights have been left in their file (leave_weights), for one plan that takes "
            "them (consume_parameters)",
            model->name);
    if (model->status == SDLF_OK) return SDLF_OK;
    if (model->given_away)
        return sdlf_fail(
            model->status,
            "network '%s': a plan has taken its parameters (consume_parameters), and only that plan can use them",
            model->name);
    return sdlf_fail(model->status, "%s", model->message != NULL ? model->message : "out of memory");
}

void sdlf_model_set_origin(sdlf_model *model, const char *origin)
{
    if (model == NULL) return;
    free(model->origin);
    model->origin = NULL;
    if (origin == NULL) return;
    model->origin = strdup(origin);
    if (model->origin == NULL) record_error(model, sdlf_fail(SDLF_ERROR_MEMORY, "model: out of memory"));
}

static sdlf_status reserve_layer(sdlf_model *model)
{
    if (model->layer_count < model->layer_capacity) return SDLF_OK;
    int capacity = model->layer_capacity != 0 ? 2 * model->layer_capacity : 16;
    model_layer *layers = realloc(model->layers, (size_t)capacity * sizeof *layers);
    if (layers == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "model: out of memory for %d layers", capacity);
    model->layers = layers;
    model->layer_capacity = capacity;
    return SDLF_OK;
}

/* Checks that a name is not NULL; if it is, the model records an error. */
static bool has_name(sdlf_model *model, const char *name, const char *function)
{
    if (name != NULL || model->status != SDLF_OK) return true;
    record_error(model, sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: name is NULL", function));
    return false;
}

/* True if plans use the model: its outputs are then fixed, and an attempt to change them is an error of the model. */
static bool has_plans(sdlf_model *model)
{
    if (model->users == 0) return false;
    record_error(model, sdlf_fail(SDLF_ERROR_ARGUMENT,
                                  "network '%s' is in use by a plan: its outputs cannot be changed", model->name));
    return true;
}

static sdlf_status check_inputs(const sdlf_model *model, const sdlf_layer_class *type, const sdlf_node *inputs,
                                int input_count)
{
    if (type == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_model_add: type is NULL");
    if (input_count < type->minimum_inputs || input_count > type->maximum_inputs) {
        if (type->minimum_inputs == type->maximum_inputs)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s takes %d inputs, not %d", type->name, type->minimum_inputs,
                             input_count);
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s takes %d to %d inputs, not %d", type->name, type->minimum_inputs,
                         type->maximum_inputs, input_count);
    }
    if (inputs == NULL && input_count > 0) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_model_add: inputs is NULL");
    for (int i = 0; i < input_count; i++) {
        if (inputs[i].layer < 0 || inputs[i].layer >= model->layer_count || inputs[i].output < 0 ||
            inputs[i].output >= SDLF_MAX_LAYER_OUTPUTS)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "input %d of %s is not a node of this model", i, type->name);
    }
    return SDLF_OK;
}

/* Fills a new entry; on failure it is empty again. */
static sdlf_status make_layer(model_layer *entry, sdlf_model *model, const sdlf_layer_class *type, const void *options,
                              const sdlf_node *inputs, int input_count)
{
    memset(entry, 0, sizeof *entry);
    const char *given = options != NULL ? *(const char *const *)options : NULL;
    if (given != NULL && model_find_layer(model, given) >= 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "two layers are named '%s'", given);
    entry->layer.type = type;
    entry->layer.name = model_choose_name(model, type, given);
    void *copy = calloc(1, type->options_size);
    entry->layer.options = copy;
    entry->inputs = malloc((size_t)(input_count > 0 ? input_count : 1) * sizeof *inputs);
    if (model->origin != NULL) entry->layer.origin = strdup(model->origin);
    sdlf_status status = SDLF_OK;
    if (entry->layer.name == NULL || copy == NULL || entry->inputs == NULL ||
        (model->origin != NULL && entry->layer.origin == NULL)) {
        status = sdlf_fail(SDLF_ERROR_MEMORY, "model: out of memory for layer %d (%s)", model->layer_count, type->name);
        goto fail;
    }
    if (options != NULL) memcpy(copy, options, type->options_size);
    *(const char **)copy = entry->layer.name;
    if (input_count > 0) memcpy(entry->inputs, inputs, (size_t)input_count * sizeof *inputs);
    entry->input_count = input_count;
    status = type->fields != NULL ? sdlf_fields_complete(type->fields, copy) : SDLF_OK;
    if (status != SDLF_OK) {
        if (entry->layer.origin != NULL)
            status = sdlf_fail_context(status, "%s: layer %d '%s' (%s)", entry->layer.origin, model->layer_count,
                                       entry->layer.name, type->name);
        else
            status = sdlf_fail_context(status, "layer %d '%s' (%s)", model->layer_count, entry->layer.name, type->name);
        goto fail;
    }
    return SDLF_OK;
fail:
    release_layer(entry);
    memset(entry, 0, sizeof *entry);
    return status;
}

sdlf_node sdlf_model_add(sdlf_model *model, const sdlf_layer_class *type, const void *options, const sdlf_node *inputs,
                         int input_count)
{
    if (model == NULL || model->status != SDLF_OK) return no_node;
    sdlf_status status = check_inputs(model, type, inputs, input_count);
    if (status == SDLF_OK && model->users > 0)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "network '%s' is in use by a plan: no layer can be added", model->name);
    if (status == SDLF_OK && model->source.file != NULL) status = sdlf_model_status(model);
    if (status == SDLF_OK) status = reserve_layer(model);
    if (status == SDLF_OK) status = model_reserve_name(model);
    if (status == SDLF_OK)
        status = make_layer(&model->layers[model->layer_count], model, type, options, inputs, input_count);
    if (status != SDLF_OK) {
        record_error(model, status);
        return no_node;
    }
    model->built = false; /* parameters of the earlier layers keep their values */
    model_enter_name(model, model->layer_count);
    return (sdlf_node){.layer = model->layer_count++, .output = 0};
}

void model_mark_consumed(sdlf_model *model)
{
    model_close_source(model);
    model->given_away = true;
    model->status = SDLF_ERROR_ARGUMENT;
}

void model_drop_last(sdlf_model *model)
{
    model_remove_last_name(model);
    release_layer(&model->layers[--model->layer_count]);
}

void model_forget_error(sdlf_model *model)
{
    free(model->message);
    model->message = NULL;
    model->status = SDLF_OK;
}

sdlf_node sdlf_input(sdlf_model *model, const char *name, sdlf_dtype dtype, sdlf_shape shape)
{
    if (model == NULL || !has_name(model, name, __func__)) return no_node;
    sdlf_input_options options = {.name = name, .dtype = (int)dtype, .shape = shape};
    return sdlf_model_add(model, &sdlf_input_layer_class, &options, NULL, 0);
}

sdlf_node sdlf_sparse_input(sdlf_model *model, const char *name)
{
    if (model == NULL || !has_name(model, name, __func__)) return no_node;
    sdlf_input_options options = {.name = name, .dtype = SDLF_FLOAT32, .sparse = true};
    return sdlf_model_add(model, &sdlf_input_layer_class, &options, NULL, 0);
}

void sdlf_model_clear_outputs(sdlf_model *model)
{
    if (model == NULL || has_plans(model)) return;
    while (model->output_count > 0) free(model->outputs[--model->output_count].name);
}

void sdlf_output(sdlf_model *model, const char *name, sdlf_node node)
{
    if (model == NULL || model->status != SDLF_OK || !has_name(model, name, __func__)) return;
    if (has_plans(model)) return;
    if (node.layer < 0 || node.layer >= model->layer_count) {
        record_error(model, sdlf_fail(SDLF_ERROR_ARGUMENT, "output '%s' is not a node of this model", name));
        return;
    }
    for (int i = 0; i < model->output_count; i++) {
        if (strcmp(model->outputs[i].name, name) == 0) {
            record_error(model, sdlf_fail(SDLF_ERROR_ARGUMENT, "two outputs are named '%s'", name));
            return;
        }
    }
    size_t count = (size_t)model->output_count + 1;
    model_output *outputs = realloc(model->outputs, count * sizeof *outputs);
    if (outputs != NULL) model->outputs = outputs;
    char *copy = outputs != NULL ? strdup(name) : NULL;
    if (copy == NULL) {
        record_error(model, sdlf_fail(SDLF_ERROR_MEMORY, "model: out of memory for output '%s'", name));
        return;
    }
    model->outputs[model->output_count++] = (model_output){.name = copy, .node = node, .length = -1};
}

static int find_output(const sdlf_model *model, const char *name)
{
    int index = model->output_count - 1;
    while (index >= 0 && strcmp(model->outputs[index].name, name) != 0) index--;
    return index;
}

void sdlf_output_length(sdlf_model *model, const char *name, int axis, const char *length)
{
    if (model == NULL || model->status != SDLF_OK || !has_name(model, name, __func__)) return;
    if (!has_name(model, length, __func__) || has_plans(model)) return;
    int which = find_output(model, name), by = find_output(model, length);
    if (which < 0 || by < 0 || which == by || axis < 0 || axis >= SDLF_MAX_RANK || model->outputs[by].length >= 0) {
        record_error(model, sdlf_fail(SDLF_ERROR_ARGUMENT, "output '%s' is to be as long, along axis %d, as '%s' says",
                                      name, axis, length));
        return;
    }
    model->outputs[which].length = by;
    model->outputs[which].axis = axis;
}
