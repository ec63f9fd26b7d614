/* SPDX-License-Identifier: MIT */
/* Trainers whose plans draw their own batches, as they do on a device: training is bitwise the same as with a loader,
 * when repeated, and when stopped and resumed. Runs on every available calculator; "guarded" (see testing.h) replaces
 * a device. */
#include "framework/watched_training.h"

static int64_t device_data; /* of the training runs below */
static sdlf_auto_augment automatic;

/* The weights' hash after a whole training. */
static uint32_t trained(const char *calculator, int64_t batch, double *loss)
{
    watcher seen = {.calls = 0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *model = synthetic_model();
    sdlf_trainer_options options = options_on(calculator, batch, &seen);
    options.device_data = device_data;
    options.automatic = automatic;
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
        for (int staged = 0; staged < 3; staged++) { /* data resident, copied, and copied as late as allowed */
            device_data = staged > 0;
            test_guarded_late(staged == 2 ? SDLF_QUEUE_TRANSFER : SDLF_QUEUE_COMPUTE);
            CHECK_EQUAL(trained("guarded", batches[i], &drawn), hash);
            CHECK_CLOSE(drawn, loaded, 1e-12);
        }
        device_data = 0;
        test_guarded_late(SDLF_QUEUE_COMPUTE);
    }
}

/* TrivialAugment and RandAugment too: on no device does a loader create the batches, and those of "guarded" equal the
 * host's. */
static void changed_pictures_are_drawn(void)
{
    static const sdlf_auto_augment policies[] = {{.trivial = true}, {.rand_augment = 3, .rand_magnitude = 20}, {0}};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    uint32_t hash[3];
    double loss;
    for (int p = 0; p < 3; p++) {
        automatic = policies[p];
        hash[p] = trained("reference", 4, &loss);
        for (int staged = 0; staged < 2; staged++) {
            device_data = staged;
            CHECK_EQUAL(trained("guarded", 4, &loss), hash[p]);
        }
        for (int i = 0; test_calculator_class_at(i) != NULL; i++) { /* resident or copied */
            uint32_t held;
            device_data = 0;
            held = trained(test_calculator_class_at(i)->name, 4, &loss);
            device_data = 1;
            CHECK_EQUAL(trained(test_calculator_class_at(i)->name, 4, &loss), held);
        }
        device_data = 0;
    }
    CHECK(hash[0] != hash[2] && hash[1] != hash[2] && hash[0] != hash[1]);
    watcher seen = {.calls = 0};
    sdlf_trainer_options options = options_on("guarded", 4, &seen);
    sdlf_model *model = synthetic_model();
    options.automatic = policies[0];
    if (CHECK_OK(sdlf_trainer_create(&seen.trainer, model, &data, NULL, &options)))
        CHECK_EQUAL(sdlf_trainer_data_place(seen.trainer, NULL), SDLF_DATA_RESIDENT);
    sdlf_trainer_free(seen.trainer);
    sdlf_model_free(model);
    synthetic_release(&data);
}

/* Data resident on the device and data copied to it give the same bits on every device. */
static void bringing_changes_nothing(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        double held = 0, brought = 0;
        uint32_t hash = trained(test_calculator_class_at(i)->name, 4, &held);
        device_data = 1;
        CHECK_EQUAL(trained(test_calculator_class_at(i)->name, 4, &brought), hash);
        CHECK_CLOSE(brought, held, 0);
        device_data = 0;
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

/* How often the host waits for the device in one epoch, except for the wait at its end. */
static int64_t interruptions(int64_t batch, int64_t data_bytes)
{
    watcher seen = {.calls = 0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *model = synthetic_model();
    sdlf_trainer_options options = options_on("guarded", batch, &seen);
    options.epochs = 1;
    options.device_data = data_bytes;
    CHECK_OK(sdlf_trainer_create(&seen.trainer, model, &data, NULL, &options));
    test_guarded_interruptions();
    CHECK_OK(sdlf_trainer_run(seen.trainer));
    int64_t found = test_guarded_interruptions();
    CHECK(seen.calls > 0);
    sdlf_trainer_free(seen.trainer);
    sdlf_model_free(model);
    synthetic_release(&data);
    return found;
}

/* The start of an epoch sends its number and learning rates, and waits for that. From then to the end nothing waits,
 * for any number of steps, with and without a shorter last one; 150 are more than the host runs ahead. Batches that are
 * copied wait for their slots. */
static void epochs_are_not_interrupted(void)
{
    const int64_t few = interruptions(SAMPLES / 2, 0), few_with_tail = interruptions(SAMPLES - 1, 0);
    CHECK_EQUAL(interruptions(1, 0), few);
    CHECK_EQUAL(interruptions(2, 0), few);
    CHECK_EQUAL(interruptions(4, 0), few_with_tail);
    test_guarded_late(SDLF_QUEUE_TRANSFER);
    CHECK(interruptions(1, 1) > few + SAMPLES / 2);
    test_guarded_late(SDLF_QUEUE_COMPUTE);
}

/* Stopped in the middle of an epoch (which has more steps than a device runs between two checks), and resumed. */
static void resuming_changes_nothing(void)
{
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        double loss;
        uint32_t hash = trained(test_calculator_class_at(i)->name, 1, &loss);
        watcher seen = {.stop_after = 1};
        sdlf_trainer_options options = options_on(test_calculator_class_at(i)->name, 1, &seen);
        sdlf_model *model = synthetic_model();
        CHECK_FAILS(train(model, &data, &options), SDLF_ERROR_INTERRUPTED, "training was stopped");
        CHECK(seen.stopped_at > 0 && seen.stopped_at < SAMPLES);
        CHECK(sdlf_model_hash(model) != hash);
        seen.stop_after = 0;
        options.resume = true;
        CHECK_OK(train(model, &data, &options));
        CHECK_EQUAL(sdlf_model_hash(model), hash);
        sdlf_model_free(model);
    }
    synthetic_release(&data);
}

/* Stopped when a whole epoch is queued: it is completed and reported, with its full time, and the next epoch has no
 * step. */
static void a_queued_epoch_is_finished(void)
{
    double loss;
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    uint32_t hash = trained("guarded", 4, &loss);
    watcher seen = {.stop_after = 1};
    sdlf_trainer_options options = options_on("guarded", 4, &seen);
    sdlf_model *model = synthetic_model();
    CHECK_FAILS(train(model, &data, &options), SDLF_ERROR_INTERRUPTED, "after step 0 of 38 in epoch 2 of 2");
    CHECK(seen.stopped_at > 0 && seen.stopped_at < 38 && seen.calls == 2);
    CHECK(seen.stop_seconds > 0 && seen.epoch_seconds > seen.stop_seconds);
    seen.stop_after = 0;
    options.resume = true;
    CHECK_OK(train(model, &data, &options));
    CHECK_EQUAL(sdlf_model_hash(model), hash);
    sdlf_model_free(model);
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

/* Steps after the one with a non-finite loss are already queued by then; freeing the trainer waits for
 * them. */
static void a_lost_loss_is_told(void)
{
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        for (int staged = 0; staged < 2; staged++) {
            watcher seen = {.calls = 0};
            sdlf_trainer_options options = options_on(test_calculator_class_at(i)->name, 1, &seen);
            options.optimizer = sdlf_sgd(.weight_decay = 1); /* weights grow 999-fold per step */
            options.schedule = (sdlf_schedule){.kind = SDLF_SCHEDULE_CONSTANT, .peak = 1000};
            options.device_data = staged;
            sdlf_model *model = synthetic_model();
            CHECK_FAILS(train(model, &data, &options), SDLF_ERROR_NUMERIC, "training: the loss became ");
            CHECK(strstr(sdlf_error_message(), " step") != NULL);
            CHECK(!sdlf_model_training_state(model)->present);
            sdlf_model_free(model);
        }
    }
    synthetic_release(&data);
}

int main(void)
{
    RUN(drawing_equals_loading);
    RUN(changed_pictures_are_drawn);
    RUN(bringing_changes_nothing);
    RUN(runs_agree);
    RUN(epochs_are_not_interrupted);
    RUN(resuming_changes_nothing);
    RUN(a_queued_epoch_is_finished);
    RUN(placements_agree);
    RUN(a_lost_loss_is_told);
    return test_summary();
}
