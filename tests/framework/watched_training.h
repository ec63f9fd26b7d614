/* SPDX-License-Identifier: MIT */
/* A short training of the synthetic network with a callback that can stop it. */
#ifndef SDLF_TESTS_WATCHED_TRAINING_H
#define SDLF_TESTS_WATCHED_TRAINING_H

#include "framework/synthetic.h"
#include "framework/trainer_internal.h"

enum { SAMPLES = 150 };

typedef struct watcher {
    sdlf_trainer *trainer;
    int calls, stop_after; /* 0: never */
    int64_t stopped_at;
    double loss;
    double stop_seconds, epoch_seconds; /* when it was stopped, and of the last epoch */
    double (*clock)(void);              /* used to size slices (trainer_internal.h); NULL: the machine's */
} watcher;

static inline void watch(const sdlf_progress *progress, void *user)
{
    watcher *seen = user;
    seen->loss = progress->loss;
    if (progress->event == SDLF_PROGRESS_EPOCH) seen->epoch_seconds = progress->seconds;
    if (progress->event != SDLF_PROGRESS_STEP || ++seen->calls != seen->stop_after) return;
    seen->stop_seconds = progress->seconds;
    seen->stopped_at = progress->step;
    sdlf_trainer_stop(seen->trainer);
}

/* Batches of 2 or 4 with a shorter last one; enables everything that depends on the step number or learning rate. */
static inline sdlf_trainer_options options_on(const char *calculator, int64_t batch, watcher *seen)
{
    return (sdlf_trainer_options){
        .batch = batch,
        .epochs = 2,
        .seed = 5,
        .optimizer = sdlf_adamw(.weight_decay = 0.01f),
        .schedule = sdlf_one_cycle(.peak = 0.01f),
        .augment = {.shift = 1, .rotate = 5},
        .forward = calculator,
        .callback = watch,
        .user = seen,
    };
}

static inline sdlf_status train(sdlf_model *model, const sdlf_dataset *data, const sdlf_trainer_options *options)
{
    watcher *seen = options->user;
    sdlf_status status = sdlf_trainer_create(&seen->trainer, model, data, data, options);
    if (status == SDLF_OK && seen->clock != NULL) seen->trainer->slices.clock = seen->clock;
    if (status == SDLF_OK) status = sdlf_trainer_run(seen->trainer);
    sdlf_trainer_free(seen->trainer);
    return status;
}

#endif
