/* SPDX-License-Identifier: MIT */
/* The time of a training epoch. */
#include "apps/timing/epoch.h"

#include "apps/system/interrupt.h"

/* Seconds: an epoch that took less is run again, now that everything is warm; so is a part of an epoch, in which the
 * start-up time would count too much. */
static const double short_epoch = 2, short_part = 10;

/* The state of the trainer's callback. */
typedef struct stopwatch {
    sdlf_trainer *trainer;
    bool part;
    double seconds; /* of the last completed epoch */
    sdlf_progress last;
} stopwatch;

static void on_progress(const sdlf_progress *now, void *user)
{
    stopwatch *watch = user;
    watch->last = *now;
    if (interrupt_signal() != 0) sdlf_trainer_stop(watch->trainer);
    if (now->event != SDLF_PROGRESS_EPOCH) return;
    watch->seconds = now->seconds;
    if (now->seconds > (watch->part ? short_part : short_epoch)) sdlf_trainer_stop(watch->trainer);
}

sdlf_status epoch_time_measure(epoch_time *epoch, sdlf_model *model, const sdlf_dataset *data,
                               const sdlf_trainer_options *options, int64_t steps)
{
    int64_t samples = data->samples.shape.dim[0], batch = options->batch < samples ? options->batch : samples;
    int64_t all = (samples + batch - 1) / batch;
    bool part = steps > 0 && steps < all;
    sdlf_dataset some = *data; /* a view of its first samples: an epoch of that many steps */
    if (part) some.samples.shape.dim[0] = some.labels.shape.dim[0] = steps * batch;

    stopwatch watch = {.part = part};
    sdlf_trainer_options copy = *options;
    copy.epochs = 2;
    copy.callback = on_progress;
    copy.user = &watch;
    sdlf_status status = sdlf_trainer_create(&watch.trainer, model, &some, NULL, &copy);
    if (status != SDLF_OK) return status;
    *epoch = (epoch_time){.samples = samples,
                          .steps = all,
                          .measured_steps = part ? steps : all,
                          .memory = sdlf_trainer_memory(watch.trainer)};
    status = sdlf_trainer_run(watch.trainer);
    sdlf_trainer_free(watch.trainer);
    if (status != SDLF_OK && status != SDLF_ERROR_INTERRUPTED) return status;
    if (watch.seconds == 0) { /* a signal came first */
        if (watch.last.samples == 0) return sdlf_fail(SDLF_ERROR_INTERRUPTED, "no step was timed");
        epoch->measured_steps = watch.last.step;
        epoch->seconds = watch.last.seconds * (double)samples / (double)watch.last.samples;
        return SDLF_OK;
    }
    epoch->seconds = part ? watch.seconds * (double)samples / (double)(steps * batch) : watch.seconds;
    return SDLF_OK;
}
