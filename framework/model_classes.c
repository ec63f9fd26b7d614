/* SPDX-License-Identifier: MIT */
/* Names of the classes that a model predicts. */
#include <stdlib.h>
#include <string.h>

#include "framework/model_internal.h"
#include "framework/require.h"

void model_release_classes(model_classes *classes)
{
    for (int i = 0; i < classes->count; i++) free(classes->name[i]);
    free(classes->name);
    *classes = (model_classes){.count = 0};
}

void model_take_classes(sdlf_model *model, model_classes *classes)
{
    model_release_classes(&model->classes);
    model->classes = *classes;
    *classes = (model_classes){.count = 0};
}

sdlf_status sdlf_model_set_classes(sdlf_model *model, const char *const *names, int count)
{
    if (model == NULL) return sdlf_model_status(NULL);
    if (count > 0) SDLF_REQUIRE(names);
    if (count < 0) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_model_set_classes: %d names", count);
    model_classes made = {.name = calloc((size_t)count + 1, sizeof *made.name)};
    sdlf_status status = made.name != NULL ? SDLF_OK : SDLF_ERROR_MEMORY;
    for (int i = 0; i < count && status == SDLF_OK; i++) {
        if (names[i] == NULL)
            status = SDLF_ERROR_ARGUMENT;
        else if ((made.name[i] = strdup(names[i])) == NULL)
            status = SDLF_ERROR_MEMORY;
        else
            made.count++;
    }
    if (status == SDLF_OK)
        model_take_classes(model, &made);
    else if (status == SDLF_ERROR_ARGUMENT)
        sdlf_fail(status, "sdlf_model_set_classes: names[%d] is NULL", made.count);
    else
        sdlf_fail(status, "out of memory for the names of %d classes", count);
    model_release_classes(&made);
    return status;
}

int sdlf_model_class_count(const sdlf_model *model)
{
    return model != NULL ? model->classes.count : 0;
}

const char *sdlf_model_class_name(const sdlf_model *model, int index)
{
    return index >= 0 && index < sdlf_model_class_count(model) ? model->classes.name[index] : NULL;
}
