/* The time of a training epoch. */
#include "apps/epoch_time.h"

static const double short_epoch = 2; /* seconds: one that took less is run again, now that everything is warm */

/* What the trainer's callback sees. A device reports many steps at once. */
typedef struct stopwatch {
    sdlf_trainer *trainer;
    int64_t limit, warmup; /* steps; limit 0: the whole epoch */
    int64_t steps;         /* of the epoch */
    struct mark {
        double seconds;
        int64_t samples, step;
    } warm, now; /* after the first steps; after the last one */
    bool enough; /* the trainer was told to stop */
} stopwatch;

static void on_step(const sdlf_progress *now, void *user)
{
    stopwatch *watch = user;
    if (watch->enough) return;
    watch->steps = now->steps;
    watch->now = (struct mark){now->seconds, now->samples, now->step};
    if (now->step <= watch->warmup || watch->warm.step == 0) watch->warm = watch->now;
    if (now->event == SDLF_PROGRESS_EPOCH) {
        watch->enough = now->seconds > short_epoch;
        watch->warm = (struct mark){.step = 0};
    } else {
        watch->enough = watch->limit > 0 && now->step >= watch->limit && now->step > watch->warm.step;
        watch->enough = watch->enough && now->step < now->steps;
    }
    if (watch->enough) sdlf_trainer_stop(watch->trainer);
}

sdlf_status epoch_time_measure(epoch_time *epoch, sdlf_model *model, const sdlf_dataset *data,
                               const sdlf_trainer_options *options, int64_t steps)
{
    stopwatch watch = {.limit = steps, .warmup = steps < 10 ? 1 : steps / 10};
    sdlf_trainer_options copy = *options;
    copy.epochs = 2;
    copy.callback = on_step;
    copy.user = &watch;
    sdlf_status status = sdlf_trainer_create(&watch.trainer, model, data, NULL, &copy);
    if (status != SDLF_OK) return status;
    int64_t memory = sdlf_trainer_memory(watch.trainer);
    status = sdlf_trainer_run(watch.trainer);
    sdlf_trainer_free(watch.trainer);
    if (status != SDLF_OK && status != SDLF_ERROR_INTERRUPTED) return status;

    *epoch = (epoch_time){.samples = data->samples.shape.dim[0],
                          .steps = watch.steps,
                          .measured_steps = watch.now.step,
                          .seconds = watch.now.seconds,
                          .memory = memory};
    if (watch.now.step < watch.steps) {
        epoch->seconds = (watch.now.seconds - watch.warm.seconds) / (double)(watch.now.samples - watch.warm.samples) *
                         (double)epoch->samples;
    }
    return SDLF_OK;
}
