/* SPDX-License-Identifier: MIT */
/* Epochs of a trainer whose plans draw their own batches (see sdlf_feed in <sdlf/plan.h>): if the forward pass runs on
 * a device, the data set is stored there, or uploaded ahead of time, and steps follow each other without the host. The
 * samples, rates and step numbers are those of a trainer whose loader makes the batches. */
#include "framework/trainer_internal.h"

#include <stdlib.h>
#include <time.h>

#include "framework/clock.h"

/* The host queues the epoch in slices of steps, with a mark after each, and does not wait until all of it is queued:
 * between two slices it only checks whether the oldest mark has passed, to report progress. It waits at the end of the
 * epoch.
 *
 * It is never more than TRAINER_SLICES slices ahead, so that a request to stop takes effect: in a long epoch it then
 * checks again a little later, while the device has all those slices to run. The first slice has FIRST_SLICE steps, and
 * later ones as many as take SECONDS, so that epochs shorter than TRAINER_SLICES times that are queued at once. The
 * host waits in between only if it must: for a free slot in the ring, if batches are uploaded to the device
 * (plan/feed/stage.c), and for copies, if other calculators take part in the step. */
enum { FIRST_SLICE = 16, LONG = 64, SHORT = 8, ASK_AGAIN = 200000 /* ns */ };
static const double SECONDS = 0.1;
_Static_assert((int)TRAINER_SLICES <= (int)SDLF_PLAN_MARKS, "a mark for each slice that is queued");

sdlf_feed sdlf_trainer_make_feed(const sdlf_trainer *trainer)
{
    return (sdlf_feed){
        .samples = trainer->classifier.samples,
        .labels = trainer->labels,
        .sample_data = trainer->train.samples,
        .label_data = trainer->train.labels,
        .mean = trainer->train.mean,
        .scale = trainer->train.scale,
        .channels = trainer->train.channels,
        .augment = trainer->options.augment,
        .automatic = trainer->options.automatic,
        .seed = trainer->options.seed,
    };
}

sdlf_feed sdlf_trainer_tail_feed(const sdlf_trainer *trainer, const sdlf_feed *feed)
{
    sdlf_feed tail = *feed;
    int64_t count = trainer->train.samples.shape.dim[0];
    tail.skip = count - count % trainer->batch;
    if (tail.staged > 1) tail.staged = 1; /* its batches are one epoch apart */
    return tail;
}

sdlf_status sdlf_trainer_prepare_feed(sdlf_trainer *trainer)
{
    trainer->rates = malloc((size_t)trainer->steps * sizeof *trainer->rates);
    trainer->slices = (trainer_slices){.clock = sdlf_clock, .size = FIRST_SLICE};
    if (trainer->rates != NULL) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for the rates of %lld steps", (long long)trainer->steps);
}

void sdlf_trainer_release_feed(sdlf_trainer *trainer)
{
    free(trainer->rates);
}

static int64_t full_steps(const sdlf_trainer *trainer)
{
    return trainer->tail != NULL ? trainer->steps - 1 : trainer->steps;
}

sdlf_status sdlf_trainer_begin_feed_epoch(sdlf_trainer *trainer)
{
    int64_t count = trainer->train.samples.shape.dim[0], full = full_steps(trainer);
    int64_t done = trainer->epoch * trainer->steps;
    for (int64_t i = 0; i < trainer->steps; i++)
        trainer->rates[i] = sdlf_schedule_rate(&trainer->options.schedule, done + i,
                                               trainer->options.epochs * trainer->steps, trainer->steps);
    sdlf_epoch epoch = {
        .order_count = full * trainer->batch,
        .rates = trainer->rates,
        .first = trainer->epoch_step, /* at most `full`: a completed shorter batch ends the epoch */
        .first_step = done,
        .epoch = trainer->epoch,
    };
    trainer->slices = (trainer_slices){
        .clock = trainer->slices.clock,
        .size = trainer->slices.size,
        .queued = epoch.first,
        .before = trainer->metrics,
        .first = epoch.first,
        .begun = trainer->slices.clock(),
    };
    sdlf_status status = sdlf_plan_begin_epoch(trainer->full, &epoch);
    if (status == SDLF_OK) status = sdlf_plan_clear_metrics(trainer->full);
    if (status == SDLF_OK && trainer->tail != NULL) status = sdlf_plan_clear_metrics(trainer->tail);
    if (status != SDLF_OK || trainer->tail == NULL) return status;
    epoch.order_count = count - epoch.order_count;
    epoch.rates += full;
    epoch.first = 0;
    epoch.first_step = done + full;
    return sdlf_plan_begin_epoch(trainer->tail, &epoch);
}

/* ---- slices ---- */

static sdlf_status queue_slice(sdlf_trainer *trainer)
{
    trainer_slices *slices = &trainer->slices;
    int64_t left = full_steps(trainer) - slices->queued;
    int64_t steps = left < slices->size ? left : slices->size;
    sdlf_status status = sdlf_plan_run(trainer->full, steps);
    if (status == SDLF_OK) status = sdlf_plan_mark(trainer->full);
    slices->queued += steps;
    slices->end[slices->count++] = slices->queued;
    return status;
}

/* Queues the shorter batch at an epoch's end, after all others. */
static sdlf_status queue_tail(sdlf_trainer *trainer)
{
    trainer->slices.tail = true;
    return sdlf_plan_run(trainer->tail, 1);
}

int64_t sdlf_trainer_slice_size(int64_t before, int64_t steps, double seconds)
{
    double most = 4 * (double)before, wanted = seconds > 0 ? (double)steps * SECONDS / seconds : most;
    if (wanted > most) wanted = most;
    int64_t unit = wanted >= LONG ? LONG : wanted >= SHORT ? SHORT : 1; /* steps per recording (plan/record.c) */
    return wanted >= 1 ? (int64_t)wanted / unit * unit : 1;
}

/* Gets the results of the oldest slice, waiting for them if necessary. */
static sdlf_status finish_slice(sdlf_trainer *trainer)
{
    trainer_slices *slices = &trainer->slices;
    sdlf_metrics metrics;
    sdlf_status status = sdlf_plan_wait_mark(trainer->full, &metrics);
    if (status != SDLF_OK) return status;
    trainer->collected = trainer->epoch_step;
    trainer->epoch_step = slices->end[0];
    slices->count--;
    for (int i = 0; i < slices->count; i++) slices->end[i] = slices->end[i + 1];
    slices->size =
        sdlf_trainer_slice_size(slices->size, trainer->epoch_step - slices->first, slices->clock() - slices->begun);
    status = sdlf_trainer_check_loss(trainer, metrics.loss_sum);
    trainer->metrics.loss_sum = slices->before.loss_sum + metrics.loss_sum;
    trainer->metrics.correct = slices->before.correct + metrics.correct;
    trainer->metrics.samples = slices->before.samples + metrics.samples;
    return status;
}

/* The same for the shorter batch. */
static sdlf_status finish_tail(sdlf_trainer *trainer)
{
    trainer->collected = trainer->epoch_step++;
    trainer->slices.tail = false;
    return sdlf_trainer_collect(trainer, trainer->tail);
}

/* Queues another slice, or the shorter batch, if there is one and the host is not too far ahead. */
static sdlf_status queue_next(sdlf_trainer *trainer)
{
    const trainer_slices *slices = &trainer->slices;
    if (slices->queued == full_steps(trainer)) return queue_tail(trainer);
    if (slices->count < TRAINER_SLICES) return queue_slice(trainer);
    nanosleep(&(struct timespec){.tv_nsec = ASK_AGAIN}, NULL);
    return SDLF_OK;
}

static bool all_queued(const sdlf_trainer *trainer)
{
    bool tail = trainer->tail == NULL || trainer->slices.tail;
    return tail && trainer->slices.queued == full_steps(trainer);
}

sdlf_status sdlf_trainer_run_slice(sdlf_trainer *trainer)
{
    const trainer_slices *slices = &trainer->slices;
    sdlf_status status = SDLF_OK;
    bool passed = false;
    while (status == SDLF_OK && !passed && !all_queued(trainer)) {
        status = queue_next(trainer);
        if (status == SDLF_OK && slices->count > 0) status = sdlf_plan_mark_passed(trainer->full, &passed);
    }
    if (status == SDLF_OK && slices->count > 0) status = finish_slice(trainer);
    return status == SDLF_OK && slices->count == 0 && slices->tail ? finish_tail(trainer) : status;
}

sdlf_status sdlf_trainer_finish_slices(sdlf_trainer *trainer)
{
    sdlf_status status = SDLF_OK;
    while (status == SDLF_OK && trainer->slices.count > 0) status = finish_slice(trainer);
    return status == SDLF_OK && trainer->slices.tail ? finish_tail(trainer) : status;
}
