/* SPDX-License-Identifier: MIT */
/* Progress of a training run: a bar that redraws itself on a terminal, a plain line every few seconds elsewhere, and
 * one line an epoch on both. */
#ifndef SDLF_APPS_TRAIN_PROGRESS_H
#define SDLF_APPS_TRAIN_PROGRESS_H

#include <sdlf/trainer.h>

#include "apps/output/terminal.h"

typedef struct progress {
    terminal out;
    bool testing;     /* is there a test after an epoch? */
    const char *unit; /* what is counted: samples, tokens, pixels */
    bool sequences;   /* what is counted are positions, whose loss is shown as perplexity, too */
    bool smoothed;    /* the loss in training is not that of the labels: it has no perplexity */
    double drawn;     /* when the last line was drawn, on the monotonic clock */
    bool open;        /* an unfinished line stands on the terminal */
    /* where this run took its epoch up: in the middle, when it was resumed */
    int epoch;
    int64_t first_step, first_samples;
    double first_seconds;
} progress;

progress progress_begin(const terminal *out, bool testing);

/* Tell it what a trainer's callback was told. */
void progress_show(progress *progress, const sdlf_progress *now);

/* Before anything else is printed: leave the unfinished line, if there is one. */
void progress_end(progress *progress);

#endif
