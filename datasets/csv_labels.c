/* SPDX-License-Identifier: MIT */
/* Labels of a table: integers from 0 are classes, other words are names of classes, and float targets are named after
 * their columns. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/csv.h"
#include "datasets/datasets_internal.h"
#include "framework/formats/text.h"

enum { MOST_CLASSES = 1 << 20 };

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The class number that a label spells; -1: it is not a class number. */
static int64_t class_number(const char *label)
{
    double number;
    bool whole = csv_number(label, &number) && number >= 0 && number < MOST_CLASSES && number == floor(number);
    return whole ? (int64_t)number : -1;
}

/* Name the classes by the distinct labels, sorted. */
static sdlf_status name_classes(sdlf_dataset *dataset, const csv_table *t, char **sorted)
{
    int64_t names = 0;
    memcpy(sorted, t->cell, (size_t)t->rows * sizeof *sorted);
    qsort(sorted, (size_t)t->rows, sizeof *sorted, compare_names);
    for (int64_t i = 0; i < t->rows; i++)
        if (i == 0 || strcmp(sorted[i], sorted[names - 1]) != 0) sorted[names++] = sorted[i];
    if (names > MOST_CLASSES || names > t->rows / 2 + 1)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: column %" PRId64 " holds %" PRId64 " different labels in %" PRId64
                         " rows; label=COLUMN names another, and float targets need a loss: --loss mse",
                         t->name, t->label + 1, names, t->rows);
    dataset->class_names = calloc((size_t)names, sizeof *dataset->class_names);
    if (dataset->class_names == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", t->name);
    dataset->class_count = (int)names;
    for (int64_t i = 0; i < names; i++) {
        if (sorted[i][0] == '\0' || !text_is_utf8(sorted[i]))
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: label '%s': expected a name in UTF-8", t->name,
                             text_show(sorted[i]).text);
        dataset->class_names[i] = strdup(sorted[i]);
        if (dataset->class_names[i] == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", t->name);
    }
    return SDLF_OK;
}

/* Name the targets after their columns. */
static sdlf_status name_targets(sdlf_dataset *dataset, const csv_table *t)
{
    int count = (int)(t->label_end - t->label);
    dataset->class_count = count;
    if (!t->header) return SDLF_OK;
    dataset->class_names = calloc((size_t)count, sizeof *dataset->class_names);
    for (int i = 0; dataset->class_names != NULL && i < count; i++) {
        const char *name = t->column[t->label + i];
        if (name[0] == '\0' || !text_is_utf8(name))
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: column '%s': expected a name in UTF-8", t->name,
                             text_show(name).text);
        dataset->class_names[i] = strdup(name);
        if (dataset->class_names[i] == NULL) break;
        if (i + 1 == count) return SDLF_OK;
    }
    return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", t->name);
}

sdlf_status csv_take_labels(sdlf_dataset *dataset, const csv_table *t)
{
    if (t->targets) return name_targets(dataset, t);
    bool numbers = true;
    int32_t *to = dataset->labels.data;
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t number = class_number(t->cell[i]);
        numbers = numbers && number >= 0;
        if (number >= dataset->class_count) dataset->class_count = (int)number + 1;
    }
    sdlf_status status = SDLF_OK;
    if (!numbers) {
        dataset->class_count = 0;
        char **sorted = malloc((size_t)t->rows * sizeof *sorted);
        status = sorted != NULL ? name_classes(dataset, t, sorted)
                                : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", t->name);
        free(sorted);
    }
    for (int64_t i = 0; i < t->rows && status == SDLF_OK; i++) {
        if (!t->kept[i]) continue;
        char **named = numbers ? NULL
                               : bsearch(&t->cell[i], dataset->class_names, (size_t)dataset->class_count,
                                         sizeof *dataset->class_names, compare_names);
        *to++ = (int32_t)(numbers ? class_number(t->cell[i]) : named - dataset->class_names);
    }
    return status;
}
