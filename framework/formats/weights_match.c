/* SPDX-License-Identifier: MIT */
/* Matches the tensors of a weights file with parameters. */
#include "framework/formats/weights.h"

#include <stdio.h>
#include <string.h>

#include "framework/formats/json_text.h"
#include "framework/formats/text.h"

/* The parameter and slot that a tensor's name refers to; -1 if none. */
static int find_parameter(const sdlf_model *model, const char *name, int *slot)
{
    size_t prefix = strlen(WEIGHTS_STATE);
    bool state = strncmp(name, WEIGHTS_STATE, prefix) == 0 && name[prefix] >= '0' &&
                 name[prefix] < '0' + WEIGHTS_STATES && name[prefix + 1] == '.';
    int own = model_find_parameter(model, name), stated = state ? model_find_parameter(model, name + prefix + 2) : -1;
    bool is_state = stated >= 0 && (own < 0 || stated < own);
    *slot = is_state ? 1 + name[prefix] - '0' : 0;
    return is_state ? stated : own;
}

static sdlf_status check_entry(const safetensors_file *file, const safetensors_entry *entry,
                               const sdlf_parameter *parameter)
{
    if (!sdlf_shape_equal(entry->shape, parameter->spec.shape))
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: tensor '%s' has the shape %s, but the network expects %s", file->path,
                         text_show(entry->name).text, sdlf_shape_print(entry->shape).text,
                         sdlf_shape_print(parameter->spec.shape).text);
    if (!sdlf_dtype_is_float(entry->dtype))
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: tensor '%s' has dtype %s, expected F32, F64, F16 or BF16", file->path,
                         text_show(entry->name).text, entry->dtype_name);
    return SDLF_OK;
}

/* "; the file holds weights of 'lenet5', this network is 'mlp'", if the names differ. */
static void list_networks(char *text, size_t size, const safetensors_file *file, const sdlf_model *model)
{
    text[0] = '\0';
    const char *network = safetensors_metadata(&file->header, WEIGHTS_NETWORK);
    json_text_error error;
    json_t *root = NULL;
    if (network == NULL || json_text_check(network, strlen(network)) != SDLF_OK) return;
    if (json_text_parse(&root, network, strlen(network), &error) != SDLF_OK) return;
    const char *name = json_string_value(json_object_get(root, "name"));
    if (name != NULL && strcmp(name, model->name) != 0)
        snprintf(text, size, "; the file holds weights of '%s', this network is '%s'", text_show(name).text,
                 text_show(model->name).text);
    json_decref(root);
}

static sdlf_status fail_tensors(const loaded_weights *weights, const sdlf_model *model, const char *what,
                                const char *name, sdlf_shape shape)
{
    char networks[240];
    list_networks(networks, sizeof networks, weights->file, model);
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: %s '%s' of shape %s%s", weights->file->path, what, text_show(name).text,
                     sdlf_shape_print(shape).text, networks);
}

/* Assigns every tensor to its parameter; every parameter needs its own, and all trainable ones equally many states. */
sdlf_status weights_match(loaded_weights *weights, const sdlf_model *model)
{
    const safetensors_header *header = &weights->file->header;
    for (size_t i = 0; i < header->count; i++) {
        const safetensors_entry *entry = &header->entries[i];
        int slot, index = find_parameter(model, entry->name, &slot);
        if (index < 0)
            return fail_tensors(weights, model, "the network has no parameter for the tensor", entry->name,
                                entry->shape);
        sdlf_status status = check_entry(weights->file, entry, &model->parameters[index]);
        if (status != SDLF_OK) return status;
        weights->parameters[index].entry[slot] = entry;
        if (slot > weights->state_count) weights->state_count = slot;
    }
    for (int i = 0; i < model->parameter_count; i++) {
        const sdlf_parameter *parameter = &model->parameters[i];
        int wanted = parameter->spec.trainable ? weights->state_count : 0;
        for (int slot = 0; slot < WEIGHTS_SLOTS; slot++) {
            bool found = weights->parameters[i].entry[slot] != NULL;
            if (!found && slot == 0)
                return fail_tensors(weights, model, "the file has no tensor for the parameter", parameter->name,
                                    parameter->spec.shape);
            if (slot > 0 && found != (slot <= wanted))
                return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the file %s optimizer state %d of parameter '%s'",
                                 weights->file->path, found ? "has an" : "has no", slot - 1,
                                 text_show(parameter->name).text);
        }
    }
    return SDLF_OK;
}
