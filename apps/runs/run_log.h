/* SPDX-License-Identifier: MIT */
/* Training runs, read from the logs of 'sdlf train --log': the settings, and the course of training. */
#ifndef SDLF_APPS_RUNS_RUN_LOG_H
#define SDLF_APPS_RUNS_RUN_LOG_H

#include <jansson.h>

#include <sdlf/status.h>

typedef struct run_log {
    char *name;     /* the file's, without folder and ending */
    json_t *start;  /* the last line of event "start": a resumed run has several */
    json_t *steps;  /* array: lines of event "step" */
    json_t *epochs; /* array: lines of event "epoch"; the later of two for one epoch */
    json_t *end;    /* NULL: it has not ended yet, or was killed */
} run_log;

/* Read a log. An incomplete last line is left out. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT with the file and the line.
 * End with run_log_release, whatever the status. */
sdlf_status run_log_read(run_log *run, const char *path);
void run_log_release(run_log *run);

/* A number in a line; NaN if it has none. */
double run_number(const json_t *line, const char *key);

/* The results of a run over its epochs; NaN if unknown. */
typedef struct run_figures {
    int epochs;                                      /* done */
    double loss, accuracy, test_loss, test_accuracy; /* of the last epoch */
    double best_accuracy;                            /* of the tests */
    int best_epoch;
    double seconds, samples_per_second; /* over all epochs, testing left out */
    const char *weights;                /* the checksum after the last epoch, or "" */
} run_figures;
run_figures run_figures_of(const run_log *run);

/* An option in which runs differ, with its value in each as text: "-" if it has none. */
typedef struct run_difference {
    const char *key; /* in the logs, borrowed from one: "learning_rate" */
    char *option;    /* the option's name: "learning-rate" */
    char **value;
} run_difference;

/* The options in which the runs differ, except for output paths; for one run, all options that have a value. Returns
 * *count of them, which the caller frees with run_differences_free. */
run_difference *run_differences(const run_log *runs, int run_count, int *count);
void run_differences_free(run_difference *differences, int count, int run_count);

#endif
