/* SPDX-License-Identifier: MIT */
/* The samples of an array (.npy) or of a table (.csv, .tsv), without labels, as inputs for prediction. */
#ifndef SDLF_APPS_INPUT_ROWS_H
#define SDLF_APPS_INPUT_ROWS_H

#include <sdlf/dataset.h>

typedef struct rows {
    sdlf_dataset *data;
    sdlf_dataset normalized; /* a view of it with the model's normalisation; unchanged if it has none */
    sdlf_loader *loader;
    int64_t count;
} rows;

/* True if the file's name says that it holds rows; pipes are not read this way. */
bool rows_are_in(const char *path);

/* True if the rows are in a table, which may have label columns. */
bool rows_have_columns(const char *path);

/* Close with rows_close, whatever the status. `label` names a table's columns that are not part of the samples,
 * "COLUMN" or "COLUMN..COLUMN". NULL: inferred, with a warning. For a model with `outputs` outputs trained on float
 * targets: the columns with its targets' names; with one column more than the model's input: the label, as data set csv
 * finds it; with as many more as there are outputs: the last ones. Errors: those of the data sets npy and csv;
 * SDLF_ERROR_SHAPE if the samples do not have the size of the model's first input. */
sdlf_status rows_open(rows *rows, const char *path, sdlf_model *model, int outputs, const char *label);
void rows_close(rows *rows);

/* Read row `index`, from 0, normalised, valid until the next call. Errors: SDLF_ERROR_ARGUMENT if it does not exist. */
sdlf_status rows_read(rows *rows, int64_t index, const float **sample);

#endif
