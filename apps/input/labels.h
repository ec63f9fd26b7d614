/* SPDX-License-Identifier: MIT */
/* Class names: one a line of a text file, or those stored in a model. */
#ifndef SDLF_APPS_INPUT_LABELS_H
#define SDLF_APPS_INPUT_LABELS_H

#include <stdint.h>

#include <sdlf/model.h>

typedef struct labels {
    const char *path; /* NULL: not a file */
    char **name;      /* cleaned for terminals */
    int count;
} labels;

/* Read the file; NULL gives no names. End with labels_release, whatever the status. Errors: SDLF_ERROR_IO,
 * SDLF_ERROR_FORMAT, SDLF_ERROR_MEMORY. */
sdlf_status labels_read(labels *labels, const char *path);
void labels_release(labels *labels);

/* The names stored in the model, possibly none; end with labels_release, too. */
void labels_of_model(labels *labels, const sdlf_model *model);

/* The name of a class; NULL where there is none. */
const char *labels_name(const labels *labels, int64_t class);

/* Warn if the numbers of names and classes differ: the names may be another model's. */
void labels_warn(const labels *labels, int64_t classes, const char *command);

#endif
