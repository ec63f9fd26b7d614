/* SPDX-License-Identifier: MIT */
/* The trainer: it learns, is bitwise reproducible, stops at NaN, and its steps allocate nothing. */
#include <math.h>

#include "framework/trainer_history.h"

static void loss_falls(void)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(200, 1), test = synthetic_dataset(100, 2);
    sdlf_model *model = synthetic_model();
    sdlf_trainer_options options = base_options(&seen);
    options.epochs = 12;
    CHECK_OK(train(model, &data, &test, &options));
    CHECK_EQUAL(seen.steps, 12 * 13);
    CHECK_EQUAL(seen.epochs, 12);
    CHECK(seen.first_loss > 0.8 && seen.last_loss < 0.3);
    CHECK(seen.test_accuracy > 0.9);
    CHECK_EQUAL(seen.weights, sdlf_model_hash(model));
    CHECK_CLOSE(seen.last_rate, 0.1 / 1e4, 1e-9);
    CHECK(sdlf_model_normalization(model)->known && sdlf_model_normalization(model)->mean == 60);
    const sdlf_training_state *state = sdlf_model_training_state(model);
    CHECK(state->present && state->epoch == 12 && state->epoch_step == 0 && state->step == 12 * 13);
    sdlf_model_free(model);
    synthetic_release(&data);
    synthetic_release(&test);
}

static void runs_agree(void)
{
    sdlf_dataset data = synthetic_dataset(100, 1);
    sdlf_trainer_options options = base_options(NULL);
    uint32_t hash = trained_hash(&data, options);
    CHECK_EQUAL(trained_hash(&data, options), hash);
    for (options.threads = 1; options.threads <= 3; options.threads++) CHECK_EQUAL(trained_hash(&data, options), hash);
    options.threads = 0;
    options.seed = 6;
    CHECK(trained_hash(&data, options) != hash);
    synthetic_release(&data);
}

static void nan_stops(void)
{
    sdlf_dataset data = synthetic_dataset(100, 1);
    history seen = {0};
    sdlf_trainer_options options = base_options(&seen);
    options.schedule = sdlf_constant(.peak = 1000);
    options.optimizer = sdlf_sgd(.momentum = 0.99f);
    options.epochs = 500;
    sdlf_model *model = sdlf_model_create("unstable");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, 8, 8));
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.units = 32});
    x = sdlf_relu(model, x);
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.units = 32});
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.units = SYNTHETIC_CLASSES});
    sdlf_output(model, "class", x);
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_NUMERIC, "at step");
    CHECK(seen.steps < 500 * 7);
    CHECK(!sdlf_model_training_state(model)->present);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void a_small_data_set_is_one_batch(void)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(5, 1);
    sdlf_trainer_options options = base_options(&seen);
    sdlf_model *model = synthetic_model();
    options.batch = 64;
    CHECK_OK(train(model, &data, &data, &options));
    CHECK_EQUAL(seen.steps, 4);
    sdlf_model_free(model);
    synthetic_release(&data);
}

/* ---- resources ---- */

static sdlf_status attempt_create(void *argument)
{
    const sdlf_dataset *data = argument;
    history seen = {0};
    sdlf_trainer_options options = base_options(&seen);
    options.forward = "reference";
    options.checkpoint = "unused.safetensors";
    sdlf_model *model = synthetic_model();
    sdlf_trainer *trainer = NULL;
    sdlf_status status = sdlf_trainer_create(&trainer, model, data, data, &options);
    sdlf_trainer_free(trainer);
    sdlf_model_free(model);
    return status;
}

static void memory_may_run_out(void)
{
    sdlf_dataset data = synthetic_dataset(20, 1);
    test_every_allocation("sdlf_trainer_create", attempt_create, &data);
    synthetic_release(&data);
}

/* Allocations between the first and the last step of each epoch, and how many such pairs of steps there were. */
typedef struct allocation_count {
    int64_t begun, allocations, epochs;
} allocation_count;

static void count_allocations(const sdlf_progress *progress, void *user)
{
    allocation_count *count = user;
    if (progress->event != SDLF_PROGRESS_STEP) return;
    if (progress->step == 1) count->begun = test_allocations();
    if (progress->step != progress->steps) return;
    count->allocations += test_allocations() - count->begun;
    count->epochs++;
}

static void steps_allocate_nothing(void)
{
    allocation_count count = {.begun = 0};
    sdlf_dataset data = synthetic_dataset(100, 1), test = synthetic_dataset(70, 2);
    sdlf_trainer_options options = base_options(NULL);
    sdlf_model *model = synthetic_model();
    sdlf_trainer *trainer = NULL;
    options.callback = count_allocations;
    options.user = &count;
    CHECK_OK(sdlf_trainer_create(&trainer, model, &data, &test, &options));
    CHECK_OK(sdlf_trainer_run(trainer));
    CHECK_EQUAL(count.allocations, 0);
    CHECK_EQUAL(count.epochs, 4);
    CHECK(sdlf_trainer_memory(trainer) > 0 && sdlf_trainer_plan(trainer) != NULL);
    sdlf_trainer_free(trainer);
    sdlf_model_free(model);
    synthetic_release(&data);
    synthetic_release(&test);
}

int main(void)
{
    RUN(loss_falls);
    RUN(runs_agree);
    RUN(nan_stops);
    RUN(memory_may_run_out);
    RUN(steps_allocate_nothing);
    RUN(a_small_data_set_is_one_batch);
    return test_summary();
}
