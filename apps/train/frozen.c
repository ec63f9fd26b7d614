/* SPDX-License-Identifier: MIT */
/* See frozen.h. */
#include "apps/train/frozen.h"

#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

/* Applies to all but the parameters of the layer that computes the scores. */
static sdlf_status apply_trunk(sdlf_model *model, bool frozen, const char *option)
{
    int head = sdlf_model_head(model);
    bool any = false;
    if (head < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "%s trunk: network '%s' does not end in a fully connected layer or a "
                         "convolution: name the parameters",
                         option, sdlf_model_name(model));
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        if (parameter->layer == head) continue;
        any = sdlf_model_freeze(model, parameter->name, frozen) == SDLF_OK || any;
    }
    if (any) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s trunk: network '%s' has one layer with parameters, its last", option,
                     sdlf_model_name(model));
}

static sdlf_status apply_word(sdlf_model *model, const char *word, bool frozen, const char *option)
{
    if (strcmp(word, "trunk") == 0) return apply_trunk(model, frozen, option);
    size_t length = strlen(word);
    bool any = false, prefix = length > 0 && word[length - 1] == '*';
    if (!prefix) return sdlf_fail_context(sdlf_model_freeze(model, word, frozen), "%s", option);
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        if (strncmp(parameter->name, word, length - 1) != 0) continue;
        any = sdlf_model_freeze(model, parameter->name, frozen) == SDLF_OK || any;
    }
    if (any) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: network '%s' has no parameter '%s' that can be trained", option,
                     sdlf_model_name(model), word);
}

sdlf_status frozen_apply(sdlf_model *model, const char *list, bool frozen, const char *option)
{
    if (!list) return SDLF_OK;
    char *words = memory_copy_text(list), *rest = NULL;
    sdlf_status status = SDLF_OK;
    for (char *word = strtok_r(words, ",", &rest); word && status == SDLF_OK; word = strtok_r(NULL, ",", &rest))
        status = apply_word(model, word, frozen, option);
    free(words);
    return status;
}
