/* SPDX-License-Identifier: MIT */
/* The log of a training run: JSON, one object a line, each flushed, so that a program can follow it.
 *
 *     {"event":"start", ...}    the network, the data and every option of the command, "learning_rate" for --learning-rate, with
 *                               its effective value; null: not given, or without meaning for this optimizer or schedule
 *     {"event":"step", ...}     periodically within an epoch
 *     {"event":"epoch", ...}    after each epoch, with the test's figures
 *     {"event":"unsaved", ...}  its checkpoint could not be written, and why
 *     {"event":"end", ...}      how it ended, with the final evaluation if there was one */
#ifndef SDLF_APPS_TRAIN_LOG_H
#define SDLF_APPS_TRAIN_LOG_H

#include <sys/types.h>

#include <sdlf/trainer.h>

#include "apps/arguments/arguments.h"
#include "apps/output/json.h"

typedef struct training_log {
    FILE *file; /* NULL: no log is kept */
    const char *path;
    int64_t every;           /* steps between two "step" lines; 0: none */
    off_t whole;             /* bytes of whole lines */
    bool torn;               /* the last line could not be written; part of it may be there */
    bool failed;             /* writing an earlier line failed, too; reported */
    const sdlf_model *model; /* of its "start" line; borrowed */
} training_log;

/* Open `path` for writing, or for appending if `append`, which first cuts off an unfinished last line; otherwise an
 * existing file is renamed to `path`.1 or the next free name. A NULL path keeps no log. */
sdlf_status training_log_open(training_log *log, const char *path, bool append, int64_t every);
void training_log_close(training_log *log);

/* The run that is about to start. */
typedef struct training_log_start {
    sdlf_model *model;
    const sdlf_dataset *train, *test;
    const sdlf_trainer_options *options;
    int64_t memory;
    const char *own;            /* the network's own training options; NULL: none */
    const command_usage *usage; /* every option of the command is in the line, with the value in `settings` */
    const void *settings;       /* what `usage` describes, with effective values */
} training_log_start;

/* The line of event "start", for other displays of a run; "command" is the command line that repeats it. */
json_t *training_log_start_json(const training_log_start *start);
void training_log_begin(training_log *log, const training_log_start *start);

/* Convert what a trainer's callback receives to a line, except for SDLF_PROGRESS_UNSAVED; and write it to the log. */
json_t *training_log_line(const sdlf_progress *now);
void training_log_progress(training_log *log, const sdlf_progress *now);

/* The run ended with `status`; its message is noted if it failed. `evaluation` may be NULL. */
void training_log_end(training_log *log, sdlf_status status, const sdlf_evaluation *evaluation);

#endif
