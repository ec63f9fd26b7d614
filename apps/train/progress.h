/* SPDX-License-Identifier: MIT */
/* Progress of a training run: a progress bar on a terminal, a plain line every few seconds elsewhere, and one line an
 * epoch on both. */
#ifndef SDLF_APPS_TRAIN_PROGRESS_H
#define SDLF_APPS_TRAIN_PROGRESS_H

#include <sdlf/trainer.h>

#include "apps/output/terminal.h"

typedef struct progress {
    terminal out;
    bool testing;     /* each epoch ends with a test */
    const char *unit; /* the counted unit: samples, tokens, pixels */
    bool sequences;   /* positions are counted, and their loss is also shown as perplexity */
    bool smoothed;    /* the training loss is of smoothed labels: it has no perplexity */
    double drawn;     /* when the last line was drawn, on the monotonic clock */
    bool open;        /* the terminal shows an unfinished line */
    /* where this run started its epoch: in the middle, if it was resumed */
    int epoch;
    int64_t first_step, first_samples;
    double first_seconds;
} progress;

progress progress_begin(const terminal *out, bool testing);

/* Show what a trainer's callback received. */
void progress_show(progress *progress, const sdlf_progress *now);

/* Call before printing anything else: ends the unfinished line, if there is one. */
void progress_end(progress *progress);

#endif
