/* SPDX-License-Identifier: MIT */
/* Combines an evaluation of which several ranks have each done a part. */
#include <stdlib.h>

#include "framework/evaluator.h"

enum { FIGURES = 3, TARGET_FIGURES = 8 };

/* Copies a count to the list, or from it. */
static void move_count(double *place, int64_t *count, bool out)
{
    if (out)
        *count = (int64_t)*place;
    else
        *place = (double)*count;
}

static void move_number(double *place, double *number, bool out)
{
    if (out)
        *number = *place;
    else
        *place = *number;
}

static void move_all(double *list, sdlf_evaluation *e, bool out)
{
    int64_t cells = e->confusion != NULL ? (int64_t)e->class_count * e->class_count : 0;
    move_number(list++, &e->loss, out);
    move_count(list++, &e->samples, out);
    move_count(list++, &e->correct, out);
    for (int64_t i = 0; i < cells; i++) move_count(list++, &e->confusion[i], out);
    for (int k = 0; k < e->class_count && e->targets != NULL; k++) {
        sdlf_target_figures *f = &e->targets[k];
        double *numbers[] = {&f->absolute, &f->squared, &f->sum, &f->sum_squares};
        int64_t *counts[] = {&f->hits, &f->false_alarms, &f->misses, &f->rejections};
        for (int i = 0; i < 4; i++) move_number(list++, numbers[i], out);
        for (int i = 0; i < 4; i++) move_count(list++, counts[i], out);
    }
}

sdlf_status sdlf_evaluation_sum(sdlf_evaluation *e, sdlf_communicator *ranks)
{
    int64_t classes = e->class_count, count = FIGURES;
    if (e->confusion != NULL) count += classes * classes;
    if (e->targets != NULL) count += TARGET_FIGURES * classes;
    double *list = malloc((size_t)count * sizeof *list);
    if (list == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "evaluation: no memory to add what %lld classes count up to",
                         (long long)classes);
    move_all(list, e, false);
    sdlf_status status = sdlf_communicator_sum(ranks, list, count);
    if (status == SDLF_OK) move_all(list, e, true);
    free(list);
    return status;
}
