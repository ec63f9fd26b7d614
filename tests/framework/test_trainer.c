/* The trainer: it learns, it repeats itself bit for bit, it stops and goes on, it says what is wrong. */
#include <math.h>
#include <stdlib.h>

#include "framework/synthetic.h"

/* What the callback saw. */
typedef struct history {
    sdlf_trainer *trainer;
    int64_t steps, epochs, stop_after; /* steps; 0: never */
    double first_loss, last_loss, test_accuracy;
    uint32_t weights;
    float last_rate;
} history;

static void watch(const sdlf_progress *progress, void *user)
{
    history *seen = user;
    seen->last_loss = progress->loss;
    seen->last_rate = progress->learning_rate;
    if (progress->event == SDLF_PROGRESS_STEP) {
        if (seen->steps++ == 0) seen->first_loss = progress->loss;
        CHECK(isnan(progress->test_loss) && progress->step >= 1 && progress->step <= progress->steps);
        if (seen->steps == seen->stop_after) sdlf_trainer_stop(seen->trainer);
    } else {
        seen->epochs++;
        seen->weights = progress->weights;
        seen->test_accuracy = progress->test_accuracy;
        CHECK(progress->step == progress->steps && progress->seconds >= 0 && progress->test_seconds >= 0);
    }
}

static sdlf_trainer_options base_options(history *seen)
{
    return (sdlf_trainer_options){
        .batch = 16,
        .epochs = 4,
        .seed = 5,
        .optimizer = sdlf_sgd(.momentum = 0.9f, .weight_decay = 1e-4f),
        .schedule = sdlf_one_cycle(.peak = 0.1f),
        .augment = {.shift = 1, .rotate = 5},
        .forward = synthetic_calculator(),
        .callback = watch,
        .user = seen,
    };
}

/* Create, run and free a trainer. */
static sdlf_status train(sdlf_model *model, const sdlf_dataset *data, const sdlf_dataset *test,
                         const sdlf_trainer_options *options)
{
    sdlf_trainer *trainer = NULL;
    sdlf_status status = sdlf_trainer_create(&trainer, model, data, test, options);
    if (status == SDLF_OK) {
        ((history *)options->user)->trainer = trainer;
        status = sdlf_trainer_run(trainer);
    }
    sdlf_trainer_free(trainer);
    return status;
}

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

/* The hash of the weights after a whole training. */
static uint32_t trained_hash(const sdlf_dataset *data, sdlf_trainer_options options)
{
    history seen = {0};
    options.user = &seen;
    sdlf_model *model = synthetic_model();
    CHECK_OK(train(model, data, NULL, &options));
    uint32_t hash = sdlf_model_hash(model);
    CHECK_EQUAL(seen.weights, hash);
    sdlf_model_free(model);
    return hash;
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

/* Stop after each of several numbers of steps, go on with a new trainer, and compare. */
static void check_resuming(sdlf_optimizer optimizer, const int64_t *stops, int count)
{
    sdlf_dataset data = synthetic_dataset(100, 1); /* 7 steps an epoch, the last of 4 samples */
    sdlf_trainer_options options = base_options(NULL);
    options.optimizer = optimizer;
    options.clip_norm = 2;
    uint32_t hash = trained_hash(&data, options);
    for (int index = 0; index < count; index++) {
        history seen = {.stop_after = stops[index]};
        sdlf_model *model = synthetic_model();
        options.user = &seen;
        options.resume = false;
        CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_INTERRUPTED, "training was stopped after step");
        CHECK_EQUAL(sdlf_model_training_state(model)->step, stops[index]);
        CHECK(sdlf_model_hash(model) != hash);
        seen.stop_after = 0;
        options.resume = true;
        CHECK_OK(train(model, &data, NULL, &options));
        CHECK_EQUAL(seen.steps, 28);
        CHECK_EQUAL(sdlf_model_hash(model), hash);
        sdlf_model_free(model);
    }
    synthetic_release(&data);
}

static void resuming_changes_nothing(void)
{
    check_resuming(sdlf_sgd(.momentum = 0.9f, .nesterov = true), (const int64_t[]){1, 6, 7, 8, 20}, 5);
    check_resuming(sdlf_adamw(.weight_decay = 0.01f), (const int64_t[]){3, 14}, 2);
    check_resuming(sdlf_rmsprop(.momentum = 0.5f), (const int64_t[]){9}, 1);
}

static void one_trainer_goes_on(void)
{
    sdlf_dataset data = synthetic_dataset(100, 1);
    history seen = {.stop_after = 10};
    sdlf_trainer_options options = base_options(&seen);
    uint32_t hash = trained_hash(&data, options);
    sdlf_model *model = synthetic_model();
    sdlf_trainer *trainer = NULL;
    CHECK_OK(sdlf_trainer_create(&trainer, model, &data, NULL, &options));
    seen.trainer = trainer;
    CHECK_FAILS(sdlf_trainer_run(trainer), SDLF_ERROR_INTERRUPTED, "after step 3 of 7 in epoch 2 of 4");
    CHECK_OK(sdlf_trainer_run(trainer));
    CHECK_EQUAL(sdlf_model_hash(model), hash);
    CHECK_OK(sdlf_trainer_run(trainer)); /* nothing is left to do */
    CHECK_EQUAL(sdlf_model_hash(model), hash);
    sdlf_trainer_free(trainer);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void checkpoints_go_through_files(void)
{
    sdlf_dataset data = synthetic_dataset(100, 1);
    history seen = {.stop_after = 10};
    sdlf_trainer_options options = base_options(&seen);
    options.optimizer = sdlf_adam(.weight_decay = 0.01f);
    uint32_t hash = trained_hash(&data, options);
    options.checkpoint = test_path("checkpoint.safetensors");
    sdlf_model *model = synthetic_model();
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_INTERRUPTED, "checkpoint.safetensors");
    sdlf_model_free(model);

    CHECK_OK(sdlf_model_open(&model, options.checkpoint));
    sdlf_trainer_options restored = {.forward = options.forward, .callback = watch, .user = &seen, .resume = true};
    CHECK_OK(sdlf_trainer_restore_options(&restored, sdlf_model_training_state(model)));
    CHECK(restored.math == SDLF_MATH_FP32 && restored.batch == 16 && restored.epochs == 4 && restored.seed == 5 &&
          restored.augment.rotate == 5);
    CHECK_TEXT(restored.optimizer.type->name, "adam");
    CHECK(restored.schedule.peak == 0.1f && restored.optimizer.options.adam.weight_decay == 0.01f);
    CHECK_TEXT(sdlf_model_training_state(model)->data, "synthetic");
    seen.stop_after = 0;
    CHECK_OK(train(model, &data, NULL, &restored));
    CHECK_EQUAL(sdlf_model_hash(model), hash);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void a_failed_save_is_told(void)
{
    sdlf_dataset data = synthetic_dataset(20, 1);
    history seen = {0};
    sdlf_trainer_options options = base_options(&seen);
    options.checkpoint = "/nonexistent/folder/weights.safetensors";
    sdlf_model *model = synthetic_model();
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_IO, "/nonexistent/folder");
    CHECK_EQUAL(seen.epochs, 1);
    sdlf_model_free(model);
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

/* ---- what is refused ---- */

static void check_refused(sdlf_trainer_options options, sdlf_status status, const char *text)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(20, 1);
    sdlf_model *model = synthetic_model();
    options.user = &seen;
    CHECK_FAILS(train(model, &data, NULL, &options), status, text);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void bad_options_are_refused(void)
{
    sdlf_trainer_options options = base_options(NULL);
    options.batch = -4;
    check_refused(options, SDLF_ERROR_ARGUMENT, "trainer: batch: expected 1 to 1048576, found -4");
    options = base_options(NULL);
    options.batch = 1 << 30;
    check_refused(options, SDLF_ERROR_ARGUMENT, "batch");
    options = base_options(NULL);
    options.epochs = -1;
    check_refused(options, SDLF_ERROR_ARGUMENT, "epochs: expected 1 to");
    options = base_options(NULL);
    options.schedule.peak = NAN;
    check_refused(options, SDLF_ERROR_ARGUMENT, "peak");
    options = base_options(NULL);
    options.clip_norm = -1;
    check_refused(options, SDLF_ERROR_ARGUMENT, "trainer: clip_norm: expected 0");
    options = base_options(NULL);
    options.label_smoothing = 1;
    check_refused(options, SDLF_ERROR_ARGUMENT, "label_smoothing");
    options = base_options(NULL);
    options.augment.scale = 2;
    check_refused(options, SDLF_ERROR_ARGUMENT, "augment: scale");
    options = base_options(NULL);
    options.math = SDLF_MATH_COUNT;
    check_refused(options, SDLF_ERROR_ARGUMENT, "no math mode 4");
    options = base_options(NULL);
    options.forward = "abacus";
    check_refused(options, SDLF_ERROR_ARGUMENT, "abacus");
    options = base_options(NULL);
    options.placement = &(sdlf_trainer_placement){.layer = "no_such_layer", .forward = options.forward};
    options.placement_count = 1;
    check_refused(options, SDLF_ERROR_ARGUMENT, "no_such_layer");
    options = base_options(NULL);
    options.resume = true;
    check_refused(options, SDLF_ERROR_ARGUMENT, "holds no training state");
}

static void data_that_does_not_fit_is_refused(void)
{
    history seen = {0};
    sdlf_trainer_options options = base_options(&seen);
    sdlf_dataset data = synthetic_dataset(20, 1);
    sdlf_model *model = synthetic_model();
    data.class_count = 4;
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_SHAPE, "synthetic has 4 classes");
    data.class_count = SYNTHETIC_CLASSES;
    data.samples.shape = sdlf_shape(20, 1, 4, 16);
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_SHAPE,
                "takes samples of 1x8x8, but those of synthetic");
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void other_options_are_refused_on_resuming(void)
{
    history seen = {.stop_after = 5};
    sdlf_dataset data = synthetic_dataset(100, 1);
    sdlf_trainer_options options = base_options(&seen), other;
    sdlf_model *model = synthetic_model();
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_INTERRUPTED, "stopped");
    seen.stop_after = 0;
    options.resume = true;
    other = options;
    other.batch = 8;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "trained with a batch of 16, but 8");
    other = options;
    other.seed = 8;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "trained with seed 5, but 8");
    other = options;
    other.epochs = 5;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "4 epochs, which its one_cycle schedule");
    other = options;
    other.optimizer = sdlf_adam(.beta1 = 0.9f);
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "trained with sgd, but adam");
    other = options;
    other.optimizer.options.sgd.momentum = 0.8f;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "sgd momentum is not what");
    other = options;
    other.schedule.peak = 0.2f;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "schedule peak");
    other = options;
    other.schedule.kind = SDLF_SCHEDULE_COSINE;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "schedule one_cycle, but cosine");
    other = options;
    other.clip_norm = 1;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "clip_norm");
    other = options;
    other.augment.shift = 2;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "augment shift");
    other = options;
    other.math = SDLF_MATH_TF32;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "trained with math fp32, but tf32");
    sdlf_dataset smaller = synthetic_dataset(50, 1);
    CHECK_FAILS(train(model, &smaller, NULL, &options), SDLF_ERROR_ARGUMENT, "does not fit 4 steps an epoch");
    CHECK_OK(train(model, &data, NULL, &options)); /* none of this lost anything */
    options.epochs = 5;
    CHECK_OK(train(model, &data, NULL, &options)); /* all epochs are done: more may be asked for */
    sdlf_model_free(model);
    synthetic_release(&data);
    synthetic_release(&smaller);
}

static void a_spoilt_state_is_refused(void)
{
    history seen = {.stop_after = 5};
    sdlf_dataset data = synthetic_dataset(100, 1);
    sdlf_trainer_options options = base_options(&seen);
    sdlf_model *model = synthetic_model();
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_INTERRUPTED, "stopped");
    options.resume = true;
    sdlf_training_state *state = sdlf_model_training_state(model), good = *state;
    state->epoch = -1;
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_FORMAT, "-1 of 4 epochs");
    *state = good;
    state->settings[20] = '\0';
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_FORMAT, "settings");
    strcpy(state->settings, "{}");
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_FORMAT, "'optimizer.type' is missing");
    *state = good;
    strcpy(strstr(state->settings, "fp32"), "fp3\"}");
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_FORMAT, "'math' is missing or of another type");
    strcpy(strstr(state->settings, ",\"math\""), "}"); /* from before there was a choice */
    sdlf_trainer_options restored = {.math = SDLF_MATH_BF16};
    CHECK_OK(sdlf_trainer_restore_options(&restored, state));
    CHECK(restored.math == SDLF_MATH_FP32);
    *state = good;
    state->batch = 0;
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_FORMAT, "not all above 0");
    *state = good;
    CHECK_OK(sdlf_model_require_states(model, 0));
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_FORMAT, "lacks state 0 of sgd");
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

/* Counts the allocations between the first and the last step of each epoch. */
static void count_allocations(const sdlf_progress *progress, void *user)
{
    int64_t *count = user;
    if (progress->event != SDLF_PROGRESS_STEP) return;
    if (progress->step == 1) *count -= test_allocations();
    if (progress->step == progress->steps) *count += test_allocations();
}

static void steps_allocate_nothing(void)
{
    int64_t count = 0;
    sdlf_dataset data = synthetic_dataset(100, 1), test = synthetic_dataset(70, 2);
    sdlf_trainer_options options = base_options(NULL);
    sdlf_model *model = synthetic_model();
    sdlf_trainer *trainer = NULL;
    options.callback = count_allocations;
    options.user = &count;
    CHECK_OK(sdlf_trainer_create(&trainer, model, &data, &test, &options));
    CHECK_OK(sdlf_trainer_run(trainer));
    CHECK_EQUAL(count, 0);
    CHECK(sdlf_trainer_memory(trainer) > 0 && sdlf_trainer_plan(trainer) != NULL);
    sdlf_trainer_free(trainer);
    sdlf_model_free(model);
    synthetic_release(&data);
    synthetic_release(&test);
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

int main(void)
{
    RUN(loss_falls);
    RUN(runs_agree);
    RUN(resuming_changes_nothing);
    RUN(one_trainer_goes_on);
    RUN(checkpoints_go_through_files);
    RUN(a_failed_save_is_told);
    RUN(nan_stops);
    RUN(bad_options_are_refused);
    RUN(data_that_does_not_fit_is_refused);
    RUN(other_options_are_refused_on_resuming);
    RUN(a_spoilt_state_is_refused);
    RUN(memory_may_run_out);
    RUN(steps_allocate_nothing);
    RUN(a_small_data_set_is_one_batch);
    return test_summary();
}
