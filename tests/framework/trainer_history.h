/* SPDX-License-Identifier: MIT */
/* Shared by tests of the trainer: training the synthetic network with a recording callback. */
#ifndef SDLF_TESTS_TRAINER_HISTORY_H
#define SDLF_TESTS_TRAINER_HISTORY_H

#include <math.h>

#include "framework/synthetic.h"

/* What the callback has recorded. */
typedef struct history {
    sdlf_trainer *trainer;
    int64_t steps, epochs, stop_after; /* steps; 0: never */
    double first_loss, last_loss, test_accuracy;
    uint32_t weights;
    float last_rate;
} history;

static inline void watch(const sdlf_progress *progress, void *user)
{
    history *seen = user;
    seen->last_loss = progress->loss;
    seen->last_rate = progress->learning_rate;
    if (progress->event == SDLF_PROGRESS_STEP) {
        if (seen->steps++ == 0) seen->first_loss = progress->loss;
        CHECK(isnan(progress->test_loss) && progress->step >= 1 && progress->step <= progress->steps);
        if (seen->steps == seen->stop_after) sdlf_trainer_stop(seen->trainer);
    } else {
        seen->epochs++;
        seen->weights = progress->weights;
        seen->test_accuracy = progress->test_accuracy;
        CHECK(progress->step == progress->steps && progress->seconds >= 0);
        CHECK(isnan(progress->test_loss) ? isnan(progress->test_seconds) : progress->test_seconds >= 0);
    }
}

static inline sdlf_trainer_options base_options(history *seen)
{
    return (sdlf_trainer_options){
        .batch = 16,
        .epochs = 4,
        .seed = 5,
        .optimizer = sdlf_sgd(.momentum = 0.9f, .weight_decay = 1e-4f),
        .schedule = sdlf_one_cycle(.peak = 0.1f),
        .augment = {.shift = 1, .rotate = 5},
        .forward = synthetic_calculator(),
        .callback = watch,
        .user = seen,
    };
}

/* Create, run and free a trainer. */
static inline sdlf_status train(sdlf_model *model, const sdlf_dataset *data, const sdlf_dataset *test,
                                const sdlf_trainer_options *options)
{
    sdlf_trainer *trainer = NULL;
    sdlf_status status = sdlf_trainer_create(&trainer, model, data, test, options);
    if (status == SDLF_OK) {
        ((history *)options->user)->trainer = trainer;
        status = sdlf_trainer_run(trainer);
    }
    sdlf_trainer_free(trainer);
    return status;
}

/* The hash of the weights after a complete training run. */
static inline uint32_t trained_hash(const sdlf_dataset *data, sdlf_trainer_options options)
{
    history seen = {0};
    options.user = &seen;
    sdlf_model *model = synthetic_model();
    CHECK_OK(train(model, data, NULL, &options));
    uint32_t hash = sdlf_model_hash(model);
    CHECK_EQUAL(seen.weights, hash);
    sdlf_model_free(model);
    return hash;
}

#endif
