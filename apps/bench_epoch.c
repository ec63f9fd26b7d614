/* The time of a training epoch. */
#include "apps/bench_epoch.h"

/* What the trainer's callback sees. */
typedef struct stopwatch {
    sdlf_trainer *trainer;
    int64_t limit, warmup; /* steps; limit 0: the whole epoch */
    int64_t steps;         /* of the epoch */
    struct mark {
        double seconds;
        int64_t samples;
    } warm, now; /* after the first steps; after the last one */
} stopwatch;

static void on_step(const sdlf_progress *now, void *user)
{
    stopwatch *watch = user;
    if (watch->limit > 0 && now->step > watch->limit) return;
    watch->steps = now->steps;
    watch->now = (struct mark){now->seconds, now->samples};
    if (now->step <= watch->warmup) watch->warm = watch->now;
    if (now->step == watch->limit && now->step < now->steps) sdlf_trainer_stop(watch->trainer);
}

sdlf_status bench_epoch_time(bench_epoch *epoch, int64_t *memory, sdlf_model *model, const sdlf_dataset *data,
                             const sdlf_trainer_options *options, int64_t steps)
{
    stopwatch watch = {.limit = steps, .warmup = steps < 10 ? 1 : steps / 10};
    sdlf_trainer_options copy = *options;
    copy.epochs = 1;
    copy.callback = on_step;
    copy.user = &watch;
    sdlf_status status = sdlf_trainer_create(&watch.trainer, model, data, NULL, &copy);
    if (status != SDLF_OK) return status;
    *memory = sdlf_trainer_memory(watch.trainer);
    status = sdlf_trainer_run(watch.trainer);
    sdlf_trainer_free(watch.trainer);
    bool stopped = status == SDLF_ERROR_INTERRUPTED;
    if (status != SDLF_OK && !stopped) return status;

    *epoch = (bench_epoch){.samples = data->samples.shape.dim[0],
                           .steps = watch.steps,
                           .measured_steps = stopped ? watch.limit : watch.steps,
                           .seconds = watch.now.seconds};
    if (stopped) {
        epoch->seconds = (watch.now.seconds - watch.warm.seconds) / (double)(watch.now.samples - watch.warm.samples) *
                         (double)epoch->samples;
    }
    return SDLF_OK;
}
