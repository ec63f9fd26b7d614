/* SPDX-License-Identifier: MIT */
/* csv: rows of numbers, with the label in one column.
 *
 *     csv:FILE[,label=COLUMN[..COLUMN]][,shape=CxHxW][,all]
 *
 * With several label columns, or if float targets are requested, labels are numbers.
 * A first row of which at most half the cells are numbers is a header. Labels that are all integers from 0 are classes; others are names, sorted.
 * A fifth of the rows are for testing: those whose text sdlf_dataset_is_for_test picks, so that equal rows stay in the same half.
 * With `all`, each half holds all rows. */
#include "datasets/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <sdlf/machine.h>

#include "datasets/datasets_internal.h"
#include "framework/formats/budget.h"
#include "framework/formats/read_file.h"
#include "framework/formats/text.h"

enum { MOST_COLUMNS = 1 << 20, TIMES = 2 /* the text buffer doubles; the numbers are budgeted once counted */ };

/* ---- the shape of the table ---- */

/* The column that `word` specifies, by name or by number from 1; -1: none. */
static int64_t find_column(const csv_table *t, char **names, const char *word, size_t length)
{
    for (int64_t i = 0; names != NULL && i < t->columns; i++)
        if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0) return i;
    char *end;
    long long number = strtoll(word, &end, 10);
    return length > 0 && end == word + length && number >= 1 && number <= t->columns ? number - 1 : -1;
}

/* Parse "COLUMN" or "COLUMN..COLUMN". */
static sdlf_status find_label_columns(csv_table *t, char **names)
{
    const char *wanted = t->options->label, *dots = strstr(wanted, "..");
    int64_t last = t->label = find_column(t, names, wanted, strlen(wanted));
    if (last < 0 && dots != NULL) {
        t->label = find_column(t, names, wanted, (size_t)(dots - wanted));
        last = find_column(t, names, dots + 2, strlen(dots + 2));
    }
    t->label_end = last + 1;
    if (t->label < 0 || last < t->label)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "%s: label=%s: expected the name of a column or a number of 1 to %" PRId64 ", or two with .. "
                         "between them",
                         t->name, text_show(wanted).text, t->columns);
    if (last > t->label && !t->targets && !t->options->unlabelled)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "%s: label=%s: several columns are float targets, which need a loss: --loss mse", t->name,
                         text_show(wanted).text);
    return last - t->label + 1 < t->columns
               ? SDLF_OK
               : sdlf_fail(SDLF_ERROR_FORMAT, "%s: label=%s leaves no column for the samples", t->name,
                           text_show(wanted).text);
}

/* Find the label column; `names` NULL: there is no header. */
static sdlf_status find_label(csv_table *t, char **names)
{
    static const char *const usual[] = {"label", "class", "target", "y"};
    bool all = t->options->unlabelled &&
               (t->options->sample.rank == 0 || sdlf_shape_count(t->options->sample) + 1 != t->columns);
    if (all && t->options->label == NULL) return SDLF_OK; /* no label column */
    if (t->options->label != NULL) return find_label_columns(t, names);
    t->label = t->columns - 1;
    for (size_t k = 0; names != NULL && k < sizeof usual / sizeof usual[0]; k++)
        for (int64_t i = 0; i < t->columns; i++)
            if (strcasecmp(names[i], usual[k]) == 0) {
                t->label = i;
                t->label_end = i + 1;
                return SDLF_OK;
            }
    t->label_end = t->columns;
    return SDLF_OK;
}

/* Count the rows and columns; all rows must have the same number of columns. */
static sdlf_status count_rows_and_columns(csv_table *t, csv_text text)
{
    sdlf_status status = SDLF_OK;
    for (t->rows = 0; status == SDLF_OK && csv_next_row(&text); t->rows++) {
        int64_t cells = 0, line = text.line;
        char *cell;
        for (size_t length; status == SDLF_OK && text.in_row; cells++)
            status = csv_take_cell(&text, &cell, &length, false);
        if (status != SDLF_OK) return status;
        if (t->rows == 0) t->columns = cells;
        if (cells != t->columns || cells > MOST_COLUMNS)
            return sdlf_fail(SDLF_ERROR_FORMAT,
                             "%s: line %" PRId64 ": expected %" PRId64 " columns, as in the first row, found %" PRId64,
                             t->name, line, t->columns < MOST_COLUMNS ? t->columns : MOST_COLUMNS, cells);
    }
    if (t->rows > 0 && t->columns >= (t->options->unlabelled ? 1 : 2) && t->rows <= INT32_MAX) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: expected rows of numbers and a label, found %" PRId64 " rows of %" PRId64 " columns", t->name,
                     t->rows, t->columns);
}

/* Read the first row; it is a header if at most half of its cells are numbers. */
static sdlf_status take_header(csv_table *t, csv_text *text)
{
    double number;
    csv_text first = *text;
    t->column = calloc((size_t)t->columns, sizeof *t->column);
    if (t->column == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", t->name);
    sdlf_status status = SDLF_OK;
    int64_t numbers = 0;
    csv_next_row(&first);
    csv_text begin = first;
    for (int64_t i = 0; i < t->columns && status == SDLF_OK; i++) {
        char *cell;
        char copy[64] = "";
        size_t length;
        status = csv_take_cell(&first, &cell, &length, false);
        bool quoted = *cell == '"';
        if (!quoted && length < sizeof copy) memcpy(copy, cell, length);
        numbers += !quoted && csv_number(copy, &number);
    }
    t->header = numbers <= (t->columns - 1) / 2;
    first = begin;
    for (int64_t i = 0; t->header && i < t->columns && status == SDLF_OK; i++) {
        size_t length;
        status = csv_take_cell(&first, &t->column[i], &length, true);
    }
    if (status != SDLF_OK) return status;
    if (t->header) {
        *text = first;
        t->rows--;
    }
    if (t->rows == 0) return sdlf_fail(SDLF_ERROR_FORMAT, "%s: no rows follow the names of the columns", t->name);
    return find_label(t, t->header ? t->column : NULL);
}

/* ---- rows ---- */

static sdlf_status take_number(const csv_table *t, const char *cell, int64_t line, int64_t column, float *to)
{
    double number = NAN;
    if (csv_number(cell, &number) && isfinite((float)number)) {
        *to = (float)number;
        return SDLF_OK;
    }
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: line %" PRId64 ", column %" PRId64 "%s%s: expected a number, found '%s'",
                     t->name, line, column + 1, t->header ? " " : "",
                     t->header ? text_show(t->column[column]).text : "", text_show(cell).text);
}

/* True if this row belongs to the half. */
static bool wanted(const csv_table *t, const csv_text *text, sdlf_split split)
{
    const char *end = memchr(text->at, '\n', (size_t)(text->end - text->at));
    size_t length = (size_t)((end != NULL ? end : text->end) - text->at);
    if (length > 0 && text->at[length - 1] == '\r') length--;
    return t->options->all || t->options->unlabelled ||
           sdlf_dataset_is_for_test(text->at, length) == (split == SDLF_SPLIT_TEST);
}

static sdlf_status take_row(csv_table *t, csv_text *text, int64_t row, float *to, float *targets)
{
    int64_t line = text->line;
    for (int64_t i = 0; i < t->columns; i++) {
        char *cell;
        size_t length;
        sdlf_status status = csv_take_cell(text, &cell, &length, true);
        bool label = i >= t->label && i < t->label_end;
        if (status == SDLF_OK && label) t->cell[row] = cell;
        if (status == SDLF_OK && label && targets != NULL) status = take_number(t, cell, line, i, targets++);
        if (status == SDLF_OK && !label && to != NULL) status = take_number(t, cell, line, i, to++);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

/* Read the numbers of the half's rows, and the label cells of all rows. */
static sdlf_status take_rows(sdlf_dataset *dataset, csv_table *t, csv_text text, sdlf_split split)
{
    int64_t kept = 0, labels = t->label_end - t->label, size = t->columns - labels;
    csv_text again = text;
    for (int64_t row = 0; row < t->rows; row++) { /* first pass: count, leaving the text unchanged */
        csv_next_row(&again);
        t->kept[row] = wanted(t, &again, split);
        kept += t->kept[row];
        char *cell;
        for (size_t length; again.in_row;) (void)csv_take_cell(&again, &cell, &length, false);
    }
    if (kept == 0)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: too few rows, %" PRId64
                         ", to set some apart for the %s; csv:FILE,all uses all for both halves",
                         t->name, t->rows, split == SDLF_SPLIT_TEST ? "test" : "training");
    sdlf_status status = read_tensor_create(&dataset->samples, SDLF_FLOAT32, sdlf_shape(kept, size), t->name);
    if (status == SDLF_OK)
        status = read_tensor_create(&dataset->labels, t->targets ? SDLF_FLOAT32 : SDLF_INT32,
                                    t->targets ? sdlf_shape(kept, labels) : sdlf_shape(kept), t->name);
    float *to = dataset->samples.data, *targets = t->targets ? dataset->labels.data : NULL;
    for (int64_t row = 0; row < t->rows && status == SDLF_OK; row++) {
        csv_next_row(&text);
        status = take_row(t, &text, row, t->kept[row] ? to : NULL, t->kept[row] ? targets : NULL);
        if (t->kept[row]) to += size;
        if (t->kept[row] && targets != NULL) targets += labels;
    }
    return status;
}

/* ---- samples and labels ---- */

static sdlf_status shape_samples(sdlf_dataset *dataset, const csv_table *t)
{
    sdlf_shape sample = t->options->sample;
    if (sample.rank == 0) return SDLF_OK;
    int64_t found = dataset->samples.shape.dim[1], kept = dataset->samples.shape.dim[0];
    if (t->options->unlabelled && sdlf_shape_count(sample) != found) return SDLF_OK; /* left to the caller to report */
    if (sdlf_shape_count(sample) != found)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: shape=%s takes %" PRId64 " numbers, but a row has %" PRId64 " besides its label", t->name,
                         sdlf_shape_print(sample).text, sdlf_shape_count(sample), found);
    sdlf_shape shape = {.rank = sample.rank + 1, .dim = {kept}};
    memcpy(shape.dim + 1, sample.dim, (size_t)sample.rank * sizeof *sample.dim);
    dataset->samples = sdlf_tensor_view(SDLF_FLOAT32, shape, dataset->samples.data);
    return SDLF_OK;
}

/* Unlabelled samples have one class. If a label column was skipped, the class has its name. */
static sdlf_status name_passed_over(sdlf_dataset *dataset, const csv_table *t)
{
    char number[24];
    dataset->class_count = 1;
    if (t->label_end == t->label) return SDLF_OK;
    snprintf(number, sizeof number, "%" PRId64, t->label + 1);
    dataset->class_names = calloc(1, sizeof *dataset->class_names);
    if (dataset->class_names != NULL) dataset->class_names[0] = strdup(t->header ? t->column[t->label] : number);
    return dataset->class_names != NULL && dataset->class_names[0] != NULL
               ? SDLF_OK
               : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", t->name);
}

sdlf_status csv_take(sdlf_dataset *dataset, char *bytes, size_t size, const char *name, const csv_options *options,
                     sdlf_split split)
{
    csv_text text = csv_begin(bytes, size, name);
    csv_table t = {.name = name, .options = options, .targets = options->targets};
    sdlf_status status = count_rows_and_columns(&t, text);
    if (status == SDLF_OK) status = take_header(&t, &text);
    if (status != SDLF_OK) goto done;
    status = sdlf_machine_check(t.rows * (int64_t)(sizeof *t.cell + sizeof *t.kept), name);
    if (status != SDLF_OK) goto done;
    t.cell = calloc((size_t)t.rows, sizeof *t.cell);
    t.kept = calloc((size_t)t.rows, sizeof *t.kept);
    status = t.cell != NULL && t.kept != NULL ? take_rows(dataset, &t, text, split)
                                              : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", name);
    if (status == SDLF_OK) status = options->unlabelled ? name_passed_over(dataset, &t) : csv_take_labels(dataset, &t);
    if (status == SDLF_OK) status = shape_samples(dataset, &t);
done:
    free(t.kept);
    free(t.cell);
    free(t.column);
    return status;
}

/* ---- the argument ---- */

static bool read_shape(sdlf_shape *shape, const char *text)
{
    char *end = (char *)(uintptr_t)text;
    *shape = sdlf_shape(0, 0, 0);
    for (int i = 0; i < 3; i++) {
        shape->dim[i] = strtol(text, &end, 10);
        if (end == text || shape->dim[i] < 1 || shape->dim[i] > 65535 || *end != (i < 2 ? 'x' : '\0')) return false;
        text = end + 1;
    }
    return true;
}

/* Split FILE from its options, starting at the last comma; the caller owns *path. */
static sdlf_status read_argument(char **path, csv_options *options, const char *argument)
{
    *options = (csv_options){.sample = SDLF_SCALAR};
    *path = argument != NULL ? strdup(argument) : NULL;
    if (argument != NULL && *path == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "csv: out of memory");
    for (char *comma; *path != NULL && (comma = strrchr(*path, ',')) != NULL; *comma = '\0') {
        if (strcmp(comma + 1, "all") == 0)
            options->all = true;
        else if (strncmp(comma + 1, "label=", 6) == 0)
            options->label = comma + 7;
        else if (strncmp(comma + 1, "shape=", 6) == 0 && read_shape(&options->sample, comma + 7))
            continue;
        else if (strncmp(comma + 1, "shape=", 6) == 0)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "csv: %s: expected CxHxW, as in shape=1x28x28", comma + 1);
        else
            break;
    }
    const char *last = *path != NULL ? strrchr(*path, ',') : NULL; /* a comma in the file's name, or an unknown word */
    if (last != NULL && strchr(last, '=') != NULL && access(*path, F_OK) != 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "csv: unknown option '%s'; there are label=COLUMN, shape=CxHxW and all",
                         last + 1);
    if (*path != NULL && **path != '\0') return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "csv: expected csv:FILE[,label=COLUMN][,shape=CxHxW][,all], found 'csv:%s'",
                     argument != NULL ? argument : "");
}

static sdlf_status load(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *dataset_options)
{
    char *path, *bytes = NULL;
    size_t size = 0;
    csv_options options;
    sdlf_status status = read_argument(&path, &options, argument);
    if (status == SDLF_OK) status = sdlf_dataset_name(dataset, "csv", path);
    size_t most = 0;
    if (status == SDLF_OK) status = read_budget_file(&most, path, TIMES);
    if (status == SDLF_OK) status = read_file(&bytes, &size, path, most);
    options.targets = dataset_options->targets;
    options.unlabelled = dataset_options->unlabelled;
    options.all = options.all || dataset_options->whole;
    dataset->held_out = !options.all && !options.unlabelled;
    if (options.unlabelled && options.sample.rank == 0) options.sample = dataset_options->sample;
    if (status == SDLF_OK) status = csv_take(dataset, bytes, size, path, &options, split);
    if (status == SDLF_OK && !options.unlabelled) sdlf_dataset_measure(dataset);
    free(bytes);
    free(path);
    return status;
}

static sdlf_status check(const char *argument, sdlf_split split)
{
    char *path;
    csv_options options;
    (void)split;
    sdlf_status status = read_argument(&path, &options, argument);
    FILE *file = status == SDLF_OK ? fopen(path, "r") : NULL;
    if (status == SDLF_OK && file == NULL)
        status = sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (file != NULL) fclose(file);
    free(path);
    return status;
}

const sdlf_dataset_class sdlf_csv_dataset_class = {
    .name = "csv",
    .summary = "csv:FILE, a table of numbers with a label in each row; csv:FILE,label=COLUMN names its column, "
               "label=COLUMN..COLUMN columns of float targets, shape=1x28x28 makes rows pictures, all uses all rows "
               "for both halves",
    .load = load,
    .check = check,
};
