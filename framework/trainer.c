/* SPDX-License-Identifier: MIT */
/* Running a trainer: steps, epochs, tests, checkpoints. */
#include "framework/trainer_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "framework/clock.h"
#include "framework/require.h"

/* Steps between fetching results from a device, for which the host must wait. */
enum { DEVICE_INTERVAL = 64 };

void sdlf_trainer_stop(sdlf_trainer *trainer)
{
    if (trainer == NULL) return;
    atomic_store(&trainer->stop_requested, true);
}

static int64_t steps_done(const sdlf_trainer *trainer)
{
    return trainer->epoch * trainer->steps + trainer->epoch_step;
}

static float learning_rate(const sdlf_trainer *trainer, int64_t step)
{
    return sdlf_schedule_rate(&trainer->options.schedule, step, trainer->options.epochs * trainer->steps,
                              trainer->steps);
}

/* The progress of the current epoch. */
static sdlf_progress progress_of(const sdlf_trainer *trainer, float rate)
{
    double samples = trainer->metrics.samples;
    bool counts = trainer->options.loss == SDLF_LOSS_CROSS_ENTROPY || trainer->options.loss == SDLF_LOSS_BCE;
    return (sdlf_progress){
        .event = SDLF_PROGRESS_STEP,
        .epoch = (int)trainer->epoch + 1,
        .epochs = trainer->options.epochs,
        .step = trainer->epoch_step,
        .steps = trainer->steps,
        .samples = (int64_t)samples,
        .loss = samples > 0 ? trainer->metrics.loss_sum / samples : NAN,
        .accuracy = samples > 0 && counts ? trainer->metrics.correct / samples : NAN,
        .test_loss = NAN,
        .test_accuracy = NAN,
        .test_error = NAN,
        .test_iou = NAN,
        .waited = trainer->loader != NULL ? trainer->waited : (double)NAN,
        .seconds = trainer->seconds,
        .test_seconds = NAN,
        .learning_rate = rate,
    };
}

static void report(const sdlf_trainer *trainer, const sdlf_progress *progress)
{
    if (trainer->options.callback != NULL) trainer->options.callback(progress, trainer->options.user);
}

/* ---- one step ---- */

sdlf_status sdlf_trainer_check_loss(sdlf_trainer *trainer, double loss_sum)
{
    if (isfinite(loss_sum)) return SDLF_OK;
    sdlf_model_training_state(trainer->model)->present = false;
    char when[96]; /* the exact step, if every step is checked */
    if (trainer->epoch_step - trainer->collected > 1)
        snprintf(when, sizeof when, "between steps %" PRId64 " and %" PRId64, trainer->collected + 1,
                 trainer->epoch_step);
    else
        snprintf(when, sizeof when, "at step %" PRId64, trainer->epoch_step);
    return sdlf_fail(SDLF_ERROR_NUMERIC,
                     "training: the loss became %s %s of epoch %" PRId64 " (%" PRId64
                     " overall), with learning rate %g; a lower one may help",
                     isnan(loss_sum) ? "NaN" : "infinite", when, trainer->epoch + 1, steps_done(trainer),
                     (double)sdlf_schedule_rate(&trainer->options.schedule, steps_done(trainer) - 1,
                                                trainer->options.epochs * trainer->steps, trainer->steps));
}

/* Sums are fetched and cleared after every step if that costs nothing, so that they do not depend on where training was
 * interrupted. */
sdlf_status sdlf_trainer_collect(sdlf_trainer *trainer, sdlf_plan *plan)
{
    sdlf_metrics metrics;
    sdlf_status status = sdlf_plan_metrics(plan, &metrics);
    if (status == SDLF_OK) status = sdlf_plan_clear_metrics(plan);
    if (status == SDLF_OK && plan == trainer->tail && trainer->tail_share == 0) metrics = (sdlf_metrics){.samples = 0};
    if (status == SDLF_OK) status = sdlf_trainer_sum_metrics(trainer, &metrics);
    if (status != SDLF_OK) return status;
    status = sdlf_trainer_check_loss(trainer, metrics.loss_sum);
    if (trainer->options.communicator != NULL) trainer->options.communicator->agreed = status != SDLF_OK;
    if (status != SDLF_OK) return status;
    trainer->metrics.loss_sum += metrics.loss_sum;
    trainer->metrics.correct += metrics.correct;
    trainer->metrics.samples += metrics.samples;
    return SDLF_OK;
}

static sdlf_status write_tensor(sdlf_plan *plan, const char *input, const sdlf_tensor *tensor)
{
    return sdlf_plan_write_converted(plan, input, tensor->data, tensor->dtype, sdlf_tensor_count(tensor));
}

/* Writes a batch to the plan for its number of samples, and returns that plan in *plan. */
static sdlf_status load_batch(sdlf_trainer *trainer, sdlf_plan **plan)
{
    sdlf_batch batch;
    const sdlf_queue_class *queues = trainer->sender != NULL ? trainer->sender->type->queues : NULL;
    sdlf_status status = queues != NULL ? queues->fence_wait(trainer->sender, trainer->sent) : SDLF_OK;
    if (status != SDLF_OK) return status;
    double asked = sdlf_clock();
    status = sdlf_loader_next(trainer->loader, &batch);
    trainer->waited += sdlf_clock() - asked;
    if (status != SDLF_OK) return status;
    bool last = trainer->tail != NULL && trainer->epoch_step + 1 == trainer->steps;
    *plan = last ? trainer->tail : trainer->full;
    if (sdlf_plan_step_number(*plan) != steps_done(trainer))
        status = sdlf_plan_set_step_number(*plan, steps_done(trainer)); /* the two plans alternate */
    if (status == SDLF_OK) status = write_tensor(*plan, trainer->classifier.samples, &batch.samples);
    if (status == SDLF_OK) status = write_tensor(*plan, trainer->labels, &batch.labels);
    if (status == SDLF_OK && trainer->weights != NULL) status = sdlf_trainer_write_weights(trainer, *plan, &batch);
    if (status == SDLF_OK && queues != NULL)
        status = queues->fence_set(trainer->sender, SDLF_QUEUE_COMPUTE, trainer->sent);
    return status;
}

/* The first batch of a step, within the epoch: full batches are grouped, a shorter last one is a step of its own. */
static int64_t first_batch(const sdlf_trainer *trainer, int64_t step)
{
    int64_t full = trainer->train.samples.shape.dim[0] / trainer->batch, first = step * trainer->options.accumulate;
    if (step == trainer->steps && trainer->tail != NULL) return full + 1;
    return first < full ? first : full;
}

static sdlf_status run_step(sdlf_trainer *trainer, float rate)
{
    sdlf_plan *plan = NULL;
    int64_t batches = first_batch(trainer, trainer->epoch_step + 1) - first_batch(trainer, trainer->epoch_step);
    sdlf_status status = load_batch(trainer, &plan);
    for (int64_t i = 1; i < batches && status == SDLF_OK; i++) {
        status = sdlf_plan_accumulate(plan);
        if (status == SDLF_OK) status = load_batch(trainer, &plan);
    }
    if (status == SDLF_OK) status = sdlf_plan_step(plan, rate);
    if (status != SDLF_OK) return status;
    trainer->epoch_step++;
    bool last = trainer->epoch_step == trainer->steps || trainer->epoch_step + 1 == trainer->steps; /* of its plan */
    if (trainer->host_only || last || trainer->epoch_step % DEVICE_INTERVAL == 0) {
        status = sdlf_trainer_collect(trainer, plan);
        trainer->collected = trainer->epoch_step;
    }
    return status;
}

/* ---- epochs ---- */

/* Writes the checkpoint. Disk errors may be transient, so it is tried three times, within half a second. */
static sdlf_status save(sdlf_trainer *trainer)
{
    static const long pauses[] = {100000000, 400000000}; /* nanoseconds */
    if (trainer->checkpoint == NULL) return SDLF_OK;
    sdlf_status status = SDLF_OK;
    status = sdlf_trainer_gather_states(trainer);
    if (status != SDLF_OK) return status;
    if (sdlf_trainer_leads(trainer)) status = sdlf_model_save_checkpoint(trainer->model, trainer->checkpoint);
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0] && status == SDLF_ERROR_IO; i++) {
        nanosleep(&(struct timespec){.tv_nsec = pauses[i]}, NULL);
        status = sdlf_model_save_checkpoint(trainer->model, trainer->checkpoint);
    }
    sdlf_trainer_part_states(trainer);
    status = sdlf_trainer_share_status(trainer, status);
    trainer->unsaved = status != SDLF_OK;
    return status;
}

/* Between two steps: saves everything that is needed to continue training from here. */
static sdlf_status stop(sdlf_trainer *trainer)
{
    sdlf_status status = SDLF_OK;
    if (trainer->data_place == SDLF_DATA_LOADED && trainer->epoch_step > trainer->collected)
        status = sdlf_trainer_collect(trainer, trainer->full);
    if (status == SDLF_OK) status = sdlf_trainer_rest(trainer);
    if (status == SDLF_OK) status = sdlf_trainer_meet(trainer);
    if (status != SDLF_OK) return status;
    sdlf_trainer_note_state(trainer);
    atomic_store(&trainer->stop_requested, false); /* first: a run after a failed save must not be stopped */
    trainer->stop_agreed = false;
    bool better_kept = trainer->options.keep != SDLF_KEEP_LAST && trainer->best.epoch > 0;
    status = better_kept ? SDLF_OK : save(trainer);
    if (status != SDLF_OK) return status;
    return sdlf_fail(SDLF_ERROR_INTERRUPTED,
                     "training was stopped after step %" PRId64 " of %" PRId64 " in epoch %" PRId64 " of %d%s%s",
                     trainer->epoch_step, trainer->steps, trainer->epoch + 1, trainer->options.epochs,
                     trainer->checkpoint == NULL ? ""
                     : better_kept               ? "; the best epoch is in "
                                                 : "; its state is in ",
                     trainer->checkpoint != NULL ? trainer->checkpoint : "");
}

static sdlf_status finish_epoch(sdlf_trainer *trainer, float rate)
{
    sdlf_evaluation test = {.loss = NAN, .confusion = trainer->test_confusion};
    double start = sdlf_clock();
    if (trainer->options.communicator != NULL) trainer->options.communicator->agreed = false;
    sdlf_status status = sdlf_trainer_rest(trainer);
    if (status == SDLF_OK) status = sdlf_trainer_meet(trainer);
    if (status == SDLF_OK && trainer->test != NULL) status = sdlf_evaluator_run(trainer->test, &test, NULL, NULL);
    if (status != SDLF_OK) return status;
    sdlf_progress progress = progress_of(trainer, rate);
    progress.event = SDLF_PROGRESS_EPOCH;
    progress.test_loss = test.loss;
    progress.test_accuracy = sdlf_evaluation_accuracy(&test);
    progress.test_iou = sdlf_evaluation_mean_iou(&test);
    if (trainer->options.loss != SDLF_LOSS_BCE) progress.test_error = sdlf_evaluation_rmse(&test);
    if (trainer->test != NULL) progress.test_seconds = sdlf_clock() - start;
    progress.weights = sdlf_model_hash(trainer->model);
    progress.loss_scale = trainer->scale.scale;
    progress.skipped_steps = trainer->scale.skipped;
    trainer->epoch++;
    trainer->epoch_step = 0;
    trainer->metrics = (sdlf_metrics){.samples = 0};
    trainer->seconds = trainer->waited = 0;
    sdlf_trainer_note_state(trainer);
    bool told_apart = trainer->options.keep != SDLF_KEEP_LAST || trainer->options.patience > 0;
    if (told_apart) status = sdlf_trainer_note_best(trainer, &test);
    if (status != SDLF_OK) return status;
    progress.best = trainer->best.is_new;
    report(trainer, &progress);
    if (trainer->options.keep != SDLF_KEEP_LAST && !trainer->best.is_new) return SDLF_OK; /* a better epoch is kept */
    status = save(trainer);
    if (status != SDLF_ERROR_IO) return status;
    if (trainer->epoch == trainer->options.epochs) return SDLF_OK; /* sdlf_trainer_run has the last word */
    progress.event = SDLF_PROGRESS_UNSAVED;
    report(trainer, &progress);
    return SDLF_OK;
}

static sdlf_status run_epoch(sdlf_trainer *trainer)
{
    float rate = 0;
    double before = trainer->seconds, start = sdlf_clock();
    bool has_feed = trainer->data_place != SDLF_DATA_LOADED; /* the plans draw their own batches */
    sdlf_status status = sdlf_trainer_take_weights(trainer);
    if (status != SDLF_OK) return status;
    status = has_feed ? sdlf_trainer_begin_feed_epoch(trainer)
                      : sdlf_loader_seek(trainer->loader, trainer->epoch, first_batch(trainer, trainer->epoch_step));
    trainer->collected = trainer->epoch_step;
    while (status == SDLF_OK && trainer->epoch_step < trainer->steps) {
        bool stopping = sdlf_trainer_is_stopping(trainer);
        rate = learning_rate(trainer, steps_done(trainer));
        if (stopping)
            status = has_feed ? sdlf_trainer_finish_slices(trainer) : SDLF_OK;
        else
            status = has_feed ? sdlf_trainer_run_slice(trainer) : run_step(trainer, rate);
        if (status != SDLF_OK) return status;
        if (has_feed) rate = learning_rate(trainer, steps_done(trainer) - 1); /* for a slice, of its last step */
        trainer->seconds = before + sdlf_clock() - start;
        if (stopping && trainer->epoch_step < trainer->steps)
            return stop(trainer); /* otherwise the epoch's last steps were queued */
        sdlf_progress progress = progress_of(trainer, rate);
        report(trainer, &progress);
    }
    return status == SDLF_OK ? finish_epoch(trainer, rate) : status;
}

sdlf_status sdlf_trainer_run(sdlf_trainer *trainer)
{
    SDLF_REQUIRE(trainer);
    sdlf_status status = SDLF_OK;
    while (status == SDLF_OK && trainer->epoch < trainer->options.epochs && sdlf_trainer_is_patient(trainer))
        status = run_epoch(trainer);
    if (status == SDLF_OK) status = sdlf_trainer_take_best(trainer);
    return status == SDLF_OK && trainer->unsaved ? save(trainer) : status;
}
