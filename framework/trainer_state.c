/* SPDX-License-Identifier: MIT */
/* Saving the state of a training in the model's training state, and restoring it. */
#include "framework/trainer_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void sdlf_trainer_note_state(sdlf_trainer *trainer)
{
    sdlf_training_state *state = sdlf_model_training_state(trainer->model);
    *state = (sdlf_training_state){
        .present = true,
        .step = trainer->epoch * trainer->steps + trainer->epoch_step,
        .epoch = (int)trainer->epoch,
        .epoch_step = trainer->epoch_step,
        .loss_sum = trainer->metrics.loss_sum,
        .correct = trainer->metrics.correct,
        .samples = trainer->metrics.samples,
        .loss_scale = trainer->scale,
        .seed = trainer->options.seed,
        .batch = trainer->options.batch,
        .epochs = trainer->options.epochs,
    };
    snprintf(state->optimizer, sizeof state->optimizer, "%s", trainer->options.optimizer.type->name);
    memcpy(state->data, trainer->data, sizeof trainer->data);
    memcpy(state->settings, trainer->settings, sizeof trainer->settings);
}

_Static_assert(sizeof((sdlf_training_state *)0)->data == sizeof((sdlf_trainer *)0)->data, "the same room for names");
_Static_assert(sizeof((sdlf_training_state *)0)->settings == sizeof((sdlf_trainer *)0)->settings,
               "the same room for settings");

/* Checks that all of the optimizer's states were kept; otherwise training could not continue as before. */
static sdlf_status check_optimizer_states(const sdlf_trainer *trainer)
{
    const sdlf_optimizer *optimizer = &trainer->options.optimizer;
    int wanted =
        optimizer->type->state_count(optimizer) + (trainer->options.ema > 0) + (trainer->options.lookahead > 0);
    for (int index = 0; index < sdlf_model_parameter_count(trainer->model); index++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(trainer->model, index);
        for (int state = 0; parameter->spec.trainable && state < wanted; state++)
            if (!sdlf_tensor_present(&parameter->state[state]))
                return sdlf_fail(SDLF_ERROR_FORMAT, "resume: the checkpoint lacks state %d of %s for %s", state,
                                 optimizer->type->name, parameter->name);
    }
    return SDLF_OK;
}

sdlf_status sdlf_trainer_take_state(sdlf_trainer *trainer)
{
    const sdlf_training_state *state = sdlf_model_training_state(trainer->model);
    sdlf_trainer_options found = {.batch = 0};
    if (!state->present)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "resume: network '%s' holds no training state: its weights were saved "
                         "without one, or were never trained",
                         sdlf_model_name(trainer->model));
    sdlf_status status = sdlf_trainer_restore_options(&found, state);
    if (status != SDLF_OK) return sdlf_fail_context(status, "resume");
    bool finished = state->epoch >= state->epochs;
    status = sdlf_trainer_compare_options(&found, &trainer->options, finished);
    if (status != SDLF_OK) return status;
    if (state->epoch < 0 || state->epoch > state->epochs || state->epoch_step < 0 || state->step < 0 ||
        !(state->samples >= 0) || !isfinite(state->loss_sum) || !isfinite(state->correct))
        return sdlf_fail(SDLF_ERROR_FORMAT, "resume: the training state says %d of %d epochs and %" PRId64 " steps",
                         state->epoch, state->epochs, state->step);
    const sdlf_loss_scale *scale = &state->loss_scale;
    if (!(scale->scale >= 0) || isinf(scale->scale) || scale->good < 0 || scale->skipped < 0 ||
        scale->good > state->step || scale->skipped > state->step)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "resume: the training state says a loss scale of %g and %" PRId64 " skipped steps of %" PRId64,
                         scale->scale, scale->skipped, state->step);
    if (state->epoch_step >= trainer->steps || state->step != state->epoch * trainer->steps + state->epoch_step)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "resume: the checkpoint is at step %" PRId64 ", %" PRId64 " into epoch %d, which does not "
                         "fit %" PRId64 " steps an epoch on %s; it was trained on %s",
                         state->step, state->epoch_step, state->epoch + 1, trainer->steps, trainer->train.name,
                         state->data);
    if (state->epoch > trainer->options.epochs || (state->epoch == trainer->options.epochs && state->epoch_step > 0))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "resume: the checkpoint is %d epochs and %" PRId64 " steps old, more than "
                         "the %d epochs asked for",
                         state->epoch, state->epoch_step, trainer->options.epochs);
    status = check_optimizer_states(trainer);
    if (status != SDLF_OK) return status;
    trainer->epoch = state->epoch;
    trainer->epoch_step = state->epoch_step;
    trainer->scale = *scale;
    trainer->metrics =
        (sdlf_metrics){.loss_sum = state->loss_sum, .correct = state->correct, .samples = state->samples};
    return SDLF_OK;
}
