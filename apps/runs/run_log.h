/* SPDX-License-Identifier: MIT */
/* Training runs by the logs that 'sdlf train --log' writes: what was trained, how, and how it went. */
#ifndef SDLF_APPS_RUNS_RUN_LOG_H
#define SDLF_APPS_RUNS_RUN_LOG_H

#include <jansson.h>

#include <sdlf/status.h>

typedef struct run_log {
    char *name;     /* the file's, without folder and ending */
    json_t *start;  /* the last line of event "start": a run that went on has several */
    json_t *steps;  /* array: lines of event "step" */
    json_t *epochs; /* array: lines of event "epoch"; of two of one number, the later */
    json_t *end;    /* NULL: it has not ended yet, or was killed */
} run_log;

/* Read a log. A last line that is being written is left out. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT with the file and
 * the line. End with run_log_release, whatever the status. */
sdlf_status run_log_read(run_log *run, const char *path);
void run_log_release(run_log *run);

/* A number of a line; NaN where it has none. */
double run_number(const json_t *line, const char *key);

/* How it went, by its epochs; NaN where that is not known. */
typedef struct run_figures {
    int epochs;                                      /* done */
    double loss, accuracy, test_loss, test_accuracy; /* of the last epoch */
    double best_accuracy;                            /* of the tests */
    int best_epoch;
    double seconds, samples_per_second; /* over all epochs, testing left out */
    const char *weights;                /* the check sum after the last epoch, or "" */
} run_figures;
run_figures run_figures_of(const run_log *run);

/* An option that runs differ in, with its value in each as text: "-" where it has none. */
typedef struct run_difference {
    const char *key; /* in the logs, borrowed from one: "learning_rate" */
    char *option;    /* the option's name: "learning-rate" */
    char **value;
} run_difference;

/* What the runs differ in, except for where they are written; of one run: all its options that have a value. *count of
 * them, the caller's: run_differences_free. */
run_difference *run_differences(const run_log *runs, int run_count, int *count);
void run_differences_free(run_difference *differences, int count, int run_count);

#endif
