/* SPDX-License-Identifier: MIT */
/* The samples of an array (.npy) or of a table (.csv, .tsv), without labels, for a network to predict from. */
#ifndef SDLF_APPS_INPUT_ROWS_H
#define SDLF_APPS_INPUT_ROWS_H

#include <sdlf/dataset.h>

typedef struct rows {
    sdlf_dataset *data;
    sdlf_dataset normalized; /* a view of it, as the model says; as the file has them where it does not */
    sdlf_loader *loader;
    int64_t count;
} rows;

/* By the file's name; pipes are not read so. */
bool rows_are_in(const char *path);

/* Are they in a table, which may have columns of labels? */
bool rows_have_columns(const char *path);

/* Close with rows_close, whatever the status. `label` are a table's columns that are no samples, "COLUMN" or
 * "COLUMN..COLUMN". NULL: found out, and told in a warning: of a model with `outputs` outputs that was trained on float
 * targets those of its targets' names; of one column more than the model takes the label's, as the data set csv finds
 * it; of as many more as there are outputs the last. Errors: those of the data sets npy and csv; SDLF_ERROR_SHAPE where
 * the samples are not of the size that the model's first input takes. */
sdlf_status rows_open(rows *rows, const char *path, sdlf_model *model, int outputs, const char *label);
void rows_close(rows *rows);

/* Row `index`, from 0, normalised, valid until the next call. Errors: SDLF_ERROR_ARGUMENT where there is none. */
sdlf_status rows_read(rows *rows, int64_t index, const float **sample);

#endif
