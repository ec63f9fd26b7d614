/* Names of classes, one a line of a text file. */
#ifndef SDLF_APPS_INPUT_LABELS_H
#define SDLF_APPS_INPUT_LABELS_H

#include <stdint.h>

#include <sdlf/status.h>

typedef struct labels {
    const char *path; /* NULL: there are none */
    char **name;      /* cleaned for terminals */
    int count;
} labels;

/* Read the file; NULL: none is wanted. End with labels_release, whatever the status. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT,
 * SDLF_ERROR_MEMORY. */
sdlf_status labels_read(labels *labels, const char *path);
void labels_release(labels *labels);

/* The name of a class; NULL where the file has none. */
const char *labels_name(const labels *labels, int64_t class);

/* Warn where there are not as many names as classes: they may be another model's. */
void labels_warn(const labels *labels, int64_t classes, const char *command);

#endif
