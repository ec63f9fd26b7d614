/* SPDX-License-Identifier: MIT */
/* What a training run writes for TensorBoard (--tensorboard DIR). */
#ifndef SDLF_APPS_TRAIN_TENSORBOARD_H
#define SDLF_APPS_TRAIN_TENSORBOARD_H

#include <sdlf/trainer.h>

#include "apps/tensorboard/events.h"
#include "apps/train/log.h"

typedef struct training_board {
    event_file *file;  /* NULL: none is written */
    int64_t every;     /* steps between two values within an epoch; 0: none */
    bool histograms;   /* of parameters, after each epoch */
    sdlf_model *model; /* borrowed, from training_board_begin on */
    int64_t step;      /* the last, over all epochs */
} training_board;

/* A NULL folder: nothing is written. */
sdlf_status training_board_open(training_board *board, const char *folder, int64_t every, bool histograms);
void training_board_close(training_board *board);

/* The graph, the options as hyper-parameters, and some samples, as they are and as augmentation changes them. */
void training_board_begin(training_board *board, const training_log_start *start);
void training_board_progress(training_board *board, const sdlf_progress *now);
/* `evaluation` may be NULL. */
void training_board_end(training_board *board, sdlf_status status, const sdlf_evaluation *evaluation);

#endif
