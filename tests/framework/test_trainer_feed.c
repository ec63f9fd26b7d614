/* Trainers whose plans draw their own batches, as they do on a device: the same training, bit for bit, as with a loader;
 * repeated, stopped and gone on with. On every calculator that works here; "guarded" (see testing.h) stands in for a device. */
#include <stdlib.h>

#include "framework/synthetic.h"

enum { SAMPLES = 150 };

typedef struct watcher {
    sdlf_trainer *trainer;
    int calls, stop_after; /* 0: never */
    int64_t stopped_at;
    double loss;
} watcher;

static void watch(const sdlf_progress *progress, void *user)
{
    watcher *seen = user;
    seen->loss = progress->loss;
    if (progress->event != SDLF_PROGRESS_STEP || ++seen->calls != seen->stop_after) return;
    seen->stopped_at = progress->step;
    sdlf_trainer_stop(seen->trainer);
}

/* Batches of 2 or 4 with a shorter last one; everything that depends on a step's number or rate is in use. */
static sdlf_trainer_options options_on(const char *calculator, int64_t batch, watcher *seen)
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

static sdlf_status train(sdlf_model *model, const sdlf_dataset *data, const sdlf_trainer_options *options)
{
    watcher *seen = options->user;
    sdlf_status status = sdlf_trainer_create(&seen->trainer, model, data, data, options);
    if (status == SDLF_OK) status = sdlf_trainer_run(seen->trainer);
    sdlf_trainer_free(seen->trainer);
    return status;
}

/* The weights' hash after a whole training. */
static uint32_t trained(const char *calculator, int64_t batch, double *loss)
{
    watcher seen = {.calls = 0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *model = synthetic_model();
    sdlf_trainer_options options = options_on(calculator, batch, &seen);
    CHECK_OK(train(model, &data, &options));
    uint32_t hash = sdlf_model_hash(model);
    *loss = seen.loss;
    sdlf_model_free(model);
    synthetic_release(&data);
    return hash;
}

/* "guarded" computes as "reference" does, and its trainer has no loader. */
static void drawing_equals_loading(void)
{
    const int64_t batches[] = {4, SAMPLES / 3, SAMPLES, 1000};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        double loaded = 0, drawn = 0;
        uint32_t hash = trained("reference", batches[i], &loaded);
        CHECK_EQUAL(trained("guarded", batches[i], &drawn), hash);
        CHECK_CLOSE(drawn, loaded, 1e-12);
    }
}

static void runs_agree(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        double first = 0, second = 0;
        uint32_t hash = trained(test_calculator_class_at(i)->name, 4, &first);
        CHECK_EQUAL(trained(test_calculator_class_at(i)->name, 4, &second), hash);
        CHECK_CLOSE(second, first, 0);
    }
}

/* Stopped in the middle of an epoch (which has more steps than a device runs between two looks), and gone on with. */
static void resuming_changes_nothing(void)
{
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        double loss;
        uint32_t hash = trained(test_calculator_class_at(i)->name, 2, &loss);
        watcher seen = {.stop_after = 1};
        sdlf_trainer_options options = options_on(test_calculator_class_at(i)->name, 2, &seen);
        sdlf_model *model = synthetic_model();
        CHECK_FAILS(train(model, &data, &options), SDLF_ERROR_INTERRUPTED, "training was stopped");
        CHECK(seen.stopped_at > 0 && seen.stopped_at < SAMPLES / 2);
        CHECK(sdlf_model_hash(model) != hash);
        seen.stop_after = 0;
        options.resume = true;
        CHECK_OK(train(model, &data, &options));
        CHECK_EQUAL(sdlf_model_hash(model), hash);
        sdlf_model_free(model);
    }
    synthetic_release(&data);
}

/* Forward in one memory, backward in another, and a layer elsewhere: the same losses up to rounding. */
static void placements_agree(void)
{
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    double expected = 0;
    trained("reference", 4, &expected);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const char *name = test_calculator_class_at(i)->name;
        const sdlf_trainer_placement placement = {.layer = "fully_connected", .forward = "cpu", .backward = name};
        for (int which = 0; which < 3; which++) {
            watcher seen = {.calls = 0};
            sdlf_trainer_options options = options_on(which == 0 ? "cpu" : name, 4, &seen);
            options.backward = which == 0 ? name : "cpu";
            options.placement = &placement;
            options.placement_count = which == 2;
            sdlf_model *model = synthetic_model();
            CHECK_OK(train(model, &data, &options));
            CHECK_CLOSE(seen.loss, expected, 1e-4);
            sdlf_model_free(model);
        }
    }
    synthetic_release(&data);
}

int main(void)
{
    RUN(drawing_equals_loading);
    RUN(runs_agree);
    RUN(resuming_changes_nothing);
    RUN(placements_agree);
    return test_summary();
}
