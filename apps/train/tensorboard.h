/* SPDX-License-Identifier: MIT */
/* The TensorBoard output of a training run (--tensorboard DIR). */
#ifndef SDLF_APPS_TRAIN_TENSORBOARD_H
#define SDLF_APPS_TRAIN_TENSORBOARD_H

#include <sdlf/trainer.h>

#include "apps/tensorboard/events.h"
#include "apps/train/gradients.h"
#include "apps/train/log.h"

typedef struct tensorboard_log {
    event_file *file;              /* NULL: none is written */
    int64_t every;                 /* steps between two values within an epoch; 0: none */
    bool histograms;               /* of parameters, after each epoch */
    sdlf_model *model;             /* borrowed, from tensorboard_log_begin on */
    training_gradients *gradients; /* owned; NULL: none are written */
    int64_t step;                  /* the last, over all epochs */
    sdlf_progress written, seen;   /* at the last loss/train that was written, and the latest received */
    int64_t rated;                 /* the step whose learning rate was written last */
} tensorboard_log;

/* A NULL folder: nothing is written. */
sdlf_status tensorboard_log_open(tensorboard_log *board, const char *folder, int64_t every, bool histograms);
void tensorboard_log_close(tensorboard_log *board);

/* Write the graph, the options as hyper-parameters, and some samples, with and without augmentation. */
void tensorboard_log_begin(tensorboard_log *board, const training_log_start *start);
/* Also write histograms of gradients after each epoch, computed on that calculator, which is borrowed until the log is
 * closed. Call between tensorboard_log_begin and the first progress. */
sdlf_status tensorboard_log_gradients(tensorboard_log *board, const training_log_start *start,
                                      sdlf_calculator *calculator);
void tensorboard_log_progress(tensorboard_log *board, const sdlf_progress *now);
/* `evaluation` may be NULL. */
void tensorboard_log_end(tensorboard_log *board, sdlf_status status, const sdlf_evaluation *evaluation);

#endif
