/* Epochs of a trainer whose plans draw their own batches (see sdlf_feed in <sdlf/plan.h>): where the forward pass runs on a
 * device, the data set lives there, and steps follow each other without the host. The samples, rates and numbers of every
 * step are those of a trainer that is fed by a loader. */
#include "framework/trainer_internal.h"

#include <stdlib.h>

#include "framework/clock.h"

/* Steps between two looks at the results, each of which makes the host wait: to begin with, and as many as take SECONDS. */
enum { FIRST_SLICE = 64 };
static const double SECONDS = 0.25;

sdlf_feed sdlf_trainer_make_feed(const sdlf_trainer *trainer)
{
    sdlf_feed feed = {
        .samples = trainer->classifier.samples,
        .labels = trainer->labels,
        .sample_data = trainer->train.samples,
        .label_data = trainer->train.labels,
        .mean = trainer->train.mean,
        .scale = trainer->train.scale,
        .augment = trainer->options.augment,
    };
    if (feed.augment.seed == 0) feed.augment.seed = trainer->options.seed;
    return feed;
}

sdlf_status sdlf_trainer_prepare_feed(sdlf_trainer *trainer)
{
    size_t count = (size_t)trainer->train.samples.shape.dim[0];
    trainer->order = malloc(count * sizeof *trainer->order);
    trainer->keys = malloc(count * sizeof *trainer->keys);
    trainer->rates = malloc((size_t)trainer->steps * sizeof *trainer->rates);
    trainer->slice = FIRST_SLICE;
    if (trainer->order != NULL && trainer->keys != NULL && trainer->rates != NULL) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for the order of %zu samples", count);
}

void sdlf_trainer_release_feed(sdlf_trainer *trainer)
{
    free(trainer->order);
    free(trainer->keys);
    free(trainer->rates);
}

static int64_t full_steps(const sdlf_trainer *trainer)
{
    return trainer->tail != NULL ? trainer->steps - 1 : trainer->steps;
}

sdlf_status sdlf_trainer_begin_fed_epoch(sdlf_trainer *trainer)
{
    int64_t count = trainer->train.samples.shape.dim[0], full = full_steps(trainer);
    int64_t done = trainer->epoch * trainer->steps;
    sdlf_shuffle_order(trainer->order, trainer->keys, count, trainer->options.seed, (uint32_t)trainer->epoch);
    for (int64_t i = 0; i < trainer->steps; i++)
        trainer->rates[i] = sdlf_schedule_rate(&trainer->options.schedule, done + i,
                                               trainer->options.epochs * trainer->steps, trainer->steps);
    sdlf_epoch epoch = {
        .order = trainer->order,
        .order_count = full * trainer->batch,
        .rates = trainer->rates,
        .first = trainer->epoch_step < full ? trainer->epoch_step : full,
        .first_step = done,
        .epoch = trainer->epoch,
    };
    sdlf_status status = sdlf_plan_begin_epoch(trainer->full, &epoch);
    if (status != SDLF_OK || trainer->tail == NULL) return status;
    epoch.order += epoch.order_count;
    epoch.order_count = count - epoch.order_count;
    epoch.rates += full;
    epoch.first = 0;
    epoch.first_step = done + full;
    return sdlf_plan_begin_epoch(trainer->tail, &epoch);
}

sdlf_status sdlf_trainer_run_slice(sdlf_trainer *trainer)
{
    double start = sdlf_clock();
    int64_t left = full_steps(trainer) - trainer->epoch_step;
    int64_t steps = left < trainer->slice ? left : trainer->slice;
    sdlf_status status = sdlf_plan_run(trainer->full, steps);
    trainer->epoch_step += steps;
    bool last = trainer->tail != NULL && trainer->epoch_step == full_steps(trainer);
    if (status == SDLF_OK && last) status = sdlf_plan_run(trainer->tail, 1);
    if (last) trainer->epoch_step++;
    if (status == SDLF_OK && steps > 0) status = sdlf_trainer_collect(trainer, trainer->full);
    if (status == SDLF_OK && last) status = sdlf_trainer_collect(trainer, trainer->tail);
    trainer->collected = trainer->epoch_step;
    double seconds = sdlf_clock() - start;
    if (steps == trainer->slice && seconds > 0) trainer->slice = 1 + (int64_t)((double)steps * SECONDS / seconds);
    return status;
}
