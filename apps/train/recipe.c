/* SPDX-License-Identifier: MIT */
/* A network's own training options. */
#include "apps/train/recipe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/system/memory.h"

/* Writes the effective values back to the settings, for the log. */
static void write_back(train_session *s)
{
    training_from_trainer(&s->set.training, &s->options);
    optimizer_to_arguments(&s->options.optimizer, &s->optimizers, &s->set.optimizer);
}

static const char *text_of(const void *value)
{
    const char *text = *(const char *const *)value;
    return text != NULL ? text : "";
}

static bool differs(const argument *row, const char *was, const char *is)
{
    switch (row->type) {
    case ARGUMENT_FLAG: return memcmp(was, is, sizeof(bool)) != 0;
    case ARGUMENT_INT: return memcmp(was, is, sizeof(int64_t)) != 0;
    case ARGUMENT_FLOAT: /* NaN equals NaN here */
        return *(const double *)(const void *)was != *(const double *)(const void *)is &&
               !isnan(*(const double *)(const void *)is);
    case ARGUMENT_CHOICE: return memcmp(was, is, sizeof(int)) != 0;
    case ARGUMENT_NAME:
    case ARGUMENT_TEXT: return strcmp(text_of(was), text_of(is)) != 0;
    default: return false;
    }
}

static void put_value(FILE *file, const argument *row, const void *is)
{
    switch (row->type) {
    case ARGUMENT_INT: fprintf(file, " %lld", (long long)*(const int64_t *)is); break;
    case ARGUMENT_FLOAT: fprintf(file, " %.6g", *(const double *)is); break;
    case ARGUMENT_CHOICE: fprintf(file, " %s", row->choices[*(const int *)is]); break;
    case ARGUMENT_NAME:
    case ARGUMENT_TEXT: fprintf(file, " %s", text_of(is)); break;
    default: break;
    }
}

/* "--batch 32 --nesterov": the options that differ from `before`. */
static char *print_differences(const train_session *s, const train_settings *before)
{
    memory_text text;
    size_t offset;
    bool begun = false;
    const argument *row;
    if (!memory_text_open(&text)) memory_exhausted();
    for (int i = 0; (row = arguments_row(s->given.usage, i, &offset)); i++) {
        const char *was = (const char *)before + offset + row->offset,
                   *is = (const char *)&s->set + offset + row->offset;
        if (!differs(row, was, is)) continue;
        fprintf(text.file, "%s--%s", begun ? " " : "", row->name);
        begun = true;
        put_value(text.file, row, is);
    }
    if (!memory_text_close(&text)) memory_exhausted();
    return text.text;
}

sdlf_status recipe_apply(train_session *s)
{
    const train_settings given = s->set; /* its strings are the user's own, which the network's do not replace */
    write_back(s);
    const sdlf_trainer_options plain = s->options;
    if (s->options.resume || arguments_given(&s->given, "optimizer") ||
        !sdlf_network_builtin_training(&s->options, s->set.net))
        return SDLF_OK;
    train_settings before = s->set;
    training_from_trainer(&before.training, &plain);
    sdlf_status status = training_to_trainer(&given.training, &s->given, true, &s->options);
    if (status == SDLF_OK)
        status = optimizer_from_arguments(&s->options.optimizer, true, &s->optimizers, &given.optimizer, &s->given);
    if (status == SDLF_OK) status = sdlf_schedule_complete(&s->options.schedule);
    if (status != SDLF_OK) return status;
    write_back(s);
    s->own = print_differences(s, &before);
    return SDLF_OK;
}
