/* SPDX-License-Identifier: MIT */
/* The log of a training run: JSON, one object a line, each flushed, so that a program can follow it.
 *
 *     {"event":"start", ...}    what is trained, on what, how: with every option of the command, "learning_rate" for --learning-rate,
 *                               as it is in effect; null: not given, or of no meaning for this optimizer or schedule
 *     {"event":"step", ...}     now and then within an epoch
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
    bool torn;               /* the last line could not be written: some of it may be there */
    bool failed;             /* so could not a line before; it was said */
    const sdlf_model *model; /* that it begins with; borrowed */
} training_log;

/* Open `path` for writing, or at its end if `append`, where a line that was never finished is cut off; else what is there
 * gets another name, `path`.1 or the next that is free. A NULL path keeps no log. */
sdlf_status training_log_open(training_log *log, const char *path, bool append, int64_t every);
void training_log_close(training_log *log);

/* What is about to run. */
typedef struct training_log_start {
    sdlf_model *model;
    const sdlf_dataset *train, *test;
    const sdlf_trainer_options *options;
    int64_t memory;
    const char *own;            /* the options that the network brings; NULL: none */
    const command_usage *usage; /* every option of the command is in the line, with the value in `settings` */
    const void *settings;       /* what `usage` describes, with what is trained with */
} training_log_start;

/* The line of event "start", for others that show a run too; "command" is the one that repeats it. */
json_t *training_log_start_json(const training_log_start *start);
void training_log_begin(training_log *log, const training_log_start *start);

/* What a trainer's callback is told: as a line, except for SDLF_PROGRESS_UNSAVED, and into the log. */
json_t *training_log_line(const sdlf_progress *now);
void training_log_progress(training_log *log, const sdlf_progress *now);

/* The run ended with `status`; its message is noted if it failed. `evaluation` may be NULL. */
void training_log_end(training_log *log, sdlf_status status, const sdlf_evaluation *evaluation);

#endif
