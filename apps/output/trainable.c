/* SPDX-License-Identifier: MIT */
/* See trainable.h. */
#include "apps/output/trainable.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/system/memory.h"

enum { NAMES = 6 }; /* listed one by one */

static bool is_statistic(const sdlf_parameter *parameter)
{
    return strcmp(parameter->spec.name, "running_mean") == 0 || strcmp(parameter->spec.name, "running_var") == 0;
}

bool trainable_any_frozen(sdlf_model *model)
{
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        if (!parameter->spec.trainable && !is_statistic(parameter)) return true;
    }
    return false;
}

bool trainable_is_finite(sdlf_model *model)
{
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        const sdlf_tensor *value = &sdlf_model_parameter(model, i)->value;
        const float *number = value->dtype == SDLF_FLOAT32 ? value->data : NULL;
        for (int64_t k = 0; number && k < sdlf_tensor_count(value); k++)
            if (!isfinite(number[k])) return false;
    }
    return true;
}

int64_t trainable_total(sdlf_model *model)
{
    int64_t total = 0;
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        if (!is_statistic(parameter)) total += sdlf_shape_count(parameter->spec.shape);
    }
    return total;
}

/* Prints a name from a file, without control characters. */
static void put_name(FILE *file, const char *name)
{
    for (; *name != '\0'; name++) fputc((unsigned char)*name < ' ' || *name == 127 ? '?' : *name, file);
}

void trainable_print(const terminal *out, sdlf_model *model, int at)
{
    memory_text line;
    if (!memory_text_open(&line)) memory_exhausted();
    FILE *file = line.file;
    int count = sdlf_model_parameter_count(model), left = 0, told = 0;
    for (int i = 0; i < count; i++) left += !sdlf_model_parameter(model, i)->spec.trainable;
    fprintf(file, "%d parameter%s (%s numbers)", count - left, count - left == 1 ? "" : "s",
            number_count(sdlf_model_trainable_count(model)).text);
    if (left > 0) fprintf(file, "; not trained %d: ", left);
    for (int i = 0; i < count && told < NAMES; i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        if (parameter->spec.trainable) continue;
        if (told++ > 0) fputs(", ", file);
        put_name(file, parameter->name);
    }
    if (left > told) fprintf(file, " and %d more", left - told);
    if (!memory_text_close(&line)) memory_exhausted();
    report_wrapped(out, line.text, at);
    free(line.text);
}

json_t *trainable_json(sdlf_model *model)
{
    json_t *list = json_array();
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        json_array_append_new(list,
                              json_pack("{so so sb}", "name", json_text(parameter->name), "shape",
                                        json_shape(parameter->spec.shape), "trained", (int)parameter->spec.trainable));
    }
    return list;
}
