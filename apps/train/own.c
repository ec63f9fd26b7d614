/* What a network brings for its training. */
#include "apps/train/own.h"

#include <stdio.h>
#include <string.h>

#include "apps/system/memory.h"

/* The settings say what is trained with, for the log. */
static void write_back(train_session *s)
{
    training_from_trainer(&s->set.training, &s->options);
    optimizer_to_arguments(&s->options.optimizer, &s->optimizers, &s->set.optimizer);
}

/* Was an option given that shapes training, beside how long it is and its seed? */
static bool is_shaped(const train_session *s)
{
    const argument *const tables[] = {training_arguments, s->optimizers.row, schedule_arguments,
                                      augmentation_arguments};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const argument *row = tables[i]; row->name; row++) {
            bool shapes =
                row->type != ARGUMENT_HEADING && strcmp(row->name, "epochs") != 0 && strcmp(row->name, "seed") != 0;
            if (shapes && arguments_given(&s->given, row->name)) return true;
        }
    }
    return false;
}

/* "--batch 32 --nesterov": numbers and flags that are others than in `before`. */
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
        bool flag = row->type == ARGUMENT_FLAG, number = row->type == ARGUMENT_INT || row->type == ARGUMENT_FLOAT;
        if ((!flag && !number) || memcmp(was, is, flag ? sizeof(bool) : sizeof(int64_t)) == 0) continue;
        fprintf(text.file, "%s--%s", begun ? " " : "", row->name);
        begun = true;
        if (number)
            fprintf(text.file, " %.6g", row->type == ARGUMENT_INT ? (double)*(const int64_t *)is : *(const double *)is);
    }
    if (!memory_text_close(&text)) memory_exhausted();
    return text.text;
}

sdlf_status own_options_take(train_session *s)
{
    write_back(s);
    if (s->options.resume || is_shaped(s) || !sdlf_network_builtin_training(&s->options, s->set.net)) return SDLF_OK;
    const train_settings before = s->set;
    sdlf_status status = sdlf_optimizer_complete(&s->options.optimizer);
    if (status == SDLF_OK) status = sdlf_schedule_complete(&s->options.schedule);
    if (status != SDLF_OK) return status;
    write_back(s);
    s->own = print_differences(s, &before);
    return SDLF_OK;
}
