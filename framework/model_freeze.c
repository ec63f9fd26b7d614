/* SPDX-License-Identifier: MIT */
/* Frozen parameters, which training does not change. A layer keeps a list of them beside its options, except for
 * `value`, which has an option for it. */
#include "framework/model_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/layers/values.h>

#include "framework/require.h"

/* The position of " NAME " in the list; NULL: it is not in it. */
static char *find(char *list, const char *name)
{
    size_t length = strlen(name);
    for (char *at = list; at != NULL && at[1] != '\0'; at = strchr(at + 1, ' '))
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == ' ') return at;
    return NULL;
}

bool model_is_frozen(const model_layer *layer, const char *parameter)
{
    return find(layer->frozen, parameter) != NULL;
}

sdlf_status model_freeze(sdlf_model *model, int layer, const char *parameter)
{
    model_layer *entry = &model->layers[layer];
    if (find(entry->frozen, parameter) != NULL) return SDLF_OK;
    size_t before = entry->frozen != NULL ? strlen(entry->frozen) : 1, length = strlen(parameter);
    char *list = realloc(entry->frozen, before + length + 2);
    if (list == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "model: out of memory for the names of frozen parameters");
    list[0] = ' ';
    memcpy(list + before, parameter, length);
    memcpy(list + before + length, " ", 2);
    entry->frozen = list;
    return SDLF_OK;
}

static void thaw(model_layer *entry, const char *parameter)
{
    char *at = find(entry->frozen, parameter);
    if (at == NULL) return;
    char *rest = at + 1 + strlen(parameter);
    memmove(at, rest, strlen(rest) + 1);
}

sdlf_status model_check_frozen(const model_layer *layer, const sdlf_signature *signature)
{
    char name[128];
    for (const char *at = layer->frozen; at != NULL && at[1] != '\0'; at = strchr(at + 1, ' ')) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, " "), at + 1);
        bool found = false;
        for (int i = 0; i < signature->parameter_count; i++)
            found = found || strcmp(signature->parameter[i].name, name) == 0;
        if (!found)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "layer '%s' (%s) has no parameter '%s' to freeze", layer->layer.name,
                             layer->layer.type->name, name);
    }
    return SDLF_OK;
}

sdlf_status sdlf_model_freeze(sdlf_model *model, const char *parameter, bool frozen)
{
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(parameter);
    int index = model_find_parameter(model, parameter);
    if (index < 0) return sdlf_fail(SDLF_ERROR_ARGUMENT, "network '%s' has no parameter '%s'", model->name, parameter);
    if (model->users > 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "network '%s' is in use by a plan: free its plans before freezing parameters", model->name);
    sdlf_parameter *found = &model->parameters[index];
    model_layer *entry = &model->layers[found->layer];
    bool value = entry->layer.type == sdlf_layer_class_find("value");
    sdlf_value_options *options = value ? (sdlf_value_options *)entry->layer.options : NULL;
    sdlf_signature signature;
    if (value && options->dtype == SDLF_VALUE_FLOAT) options->trainable = !frozen;
    sdlf_status status = model_infer_layer(model, found->layer, &signature);
    if (status != SDLF_OK) return status;
    bool could = signature.parameter[index - entry->first_parameter].trainable;
    if (!could && !(value && frozen && options->dtype == SDLF_VALUE_FLOAT))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s is not trained in any case", parameter);
    if (frozen && !value) status = model_freeze(model, found->layer, found->spec.name);
    if (!frozen && !value) thaw(entry, found->spec.name);
    if (status == SDLF_OK) found->spec.trainable = !frozen;
    return status;
}
