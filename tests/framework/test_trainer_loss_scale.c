/* SPDX-License-Identifier: MIT */
/* Training with loss scaling: what is reported, what a checkpoint stores, and that stopped training resumes as if it
 * had not been stopped, even in the middle of skipped steps. */
#include "framework/trainer_history.h"
#include "framework/trainer_internal.h"

typedef struct scale_history {
    history seen; /* first */
    double scale; /* after the last epoch */
    int64_t skipped;
} scale_history;

static void watch_scale(const sdlf_progress *progress, void *user)
{
    scale_history *told = user;
    watch(progress, &told->seen);
    if (progress->event != SDLF_PROGRESS_EPOCH) return;
    told->scale = progress->loss_scale;
    told->skipped = progress->skipped_steps;
}

static sdlf_trainer_options options_of(scale_history *told, const char *calculator)
{
    sdlf_trainer_options options = base_options(&told->seen);
    options.forward = calculator;
    options.augment = (sdlf_augmentation){.flip = false};
    options.callback = watch_scale;
    options.optimizer = sdlf_adam(.beta1 = 0.9);
    options.loss_scale = SDLF_LOSS_SCALE_DYNAMIC;
    return options;
}

/* A model whose training has started with a loss scale that is far too large. */
static sdlf_model *with_large_scale(const sdlf_dataset *data, sdlf_trainer_options options)
{
    sdlf_model *model = synthetic_model();
    history seen = {.stop_after = 1};
    options.user = &seen;
    options.callback = watch;
    CHECK_FAILS(train(model, data, NULL, &options), SDLF_ERROR_INTERRUPTED, "stopped");
    sdlf_training_state *state = sdlf_model_training_state(model);
    sdlf_loss_scale *scale = &state->loss_scale;
    CHECK(scale->scale == 65536 && scale->good == state->step && scale->skipped == 0);
    *scale = (sdlf_loss_scale){.scale = 0x1p125, .good = 1, .skipped = 1};
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) { /* whose gradients are large */
        sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        float *values = parameter->value.data;
        for (int64_t e = 0; e < sdlf_tensor_count(&parameter->value); e++) values[e] *= 8;
    }
    return model;
}

static void check_stops(const char *calculator, const int64_t *stops, int count)
{
    sdlf_dataset data = synthetic_dataset(100, 1); /* 7 steps an epoch, the last of 4 samples */
    scale_history told = {0};
    sdlf_trainer_options options = options_of(&told, calculator);
    sdlf_model *whole = with_large_scale(&data, options);
    options.resume = true;
    CHECK_OK(train(whole, &data, NULL, &options));
    CHECK(told.skipped > 1 && told.scale < 0x1p125 && told.scale > 0);
    const sdlf_loss_scale *end = &sdlf_model_training_state(whole)->loss_scale;
    CHECK(end->scale == told.scale && end->skipped == told.skipped);
    for (int i = 0; i < count; i++) {
        scale_history again = {.seen = {.stop_after = stops[i]}};
        options.resume = false;
        sdlf_model *model = with_large_scale(&data, options);
        options.checkpoint = test_path("scaled.safetensors");
        options.user = &again;
        options.resume = true;
        CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_INTERRUPTED, "stopped");
        sdlf_model_free(model);
        CHECK_OK(sdlf_model_open(&model, options.checkpoint));
        sdlf_trainer_options restored = {.forward = calculator, .callback = watch_scale, .user = &again};
        restored.resume = true;
        CHECK_OK(sdlf_trainer_restore_options(&restored, sdlf_model_training_state(model)));
        CHECK(restored.loss_scale == SDLF_LOSS_SCALE_DYNAMIC);
        again.seen.stop_after = 0;
        CHECK_OK(train(model, &data, NULL, &restored));
        CHECK_EQUAL(sdlf_model_hash(model), sdlf_model_hash(whole));
        CHECK(again.scale == told.scale && again.skipped == told.skipped);
        options.checkpoint = NULL;
        sdlf_model_free(model);
    }
    sdlf_model_free(whole);
    synthetic_release(&data);
}

/* A device stops after the steps that are queued. */
static void a_stopped_training_goes_on(void)
{
    const int64_t stops[] = {1, 2, 7, 8};
    check_stops("cpu", stops, 4);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) check_stops(test_calculator_class_at(i)->name, stops, 1);
}

/* A power of two changes nothing but the reported scale. */
static void a_fixed_scale_stays(void)
{
    sdlf_dataset data = synthetic_dataset(100, 1);
    scale_history told = {0};
    sdlf_trainer_options options = options_of(&told, "cpu");
    options.no_fusion = true;
    uint32_t hash[2];
    for (int scaled = 0; scaled < 2; scaled++) {
        options.loss_scale = scaled ? 512 : 1;
        sdlf_model *model = synthetic_model();
        CHECK_OK(train(model, &data, NULL, &options));
        hash[scaled] = sdlf_model_hash(model);
        CHECK(told.scale == (scaled ? 512 : 0) && told.skipped == 0);
        sdlf_model_free(model);
    }
    CHECK_EQUAL(hash[0], hash[1]);
    synthetic_release(&data);
}

static void defaults_follow_the_math(void)
{
    sdlf_trainer_options options = {.math = SDLF_MATH_FP16};
    CHECK_OK(sdlf_trainer_complete_options(&options));
    CHECK(options.loss_scale == SDLF_LOSS_SCALE_DYNAMIC);
    options = (sdlf_trainer_options){.math = SDLF_MATH_BF16};
    CHECK_OK(sdlf_trainer_complete_options(&options));
    CHECK(options.loss_scale == 1);
    options = (sdlf_trainer_options){.math = SDLF_MATH_FP16, .loss_scale = 1};
    CHECK_OK(sdlf_trainer_complete_options(&options));
    CHECK(options.loss_scale == 1);
    options.loss_scale = -0.5f;
    CHECK_FAILS(sdlf_trainer_complete_options(&options), SDLF_ERROR_ARGUMENT, "loss_scale");
}

static void another_scale_is_refused(void)
{
    sdlf_dataset data = synthetic_dataset(100, 1);
    scale_history told = {.seen = {.stop_after = 5}};
    sdlf_trainer_options options = options_of(&told, "cpu");
    sdlf_model *model = synthetic_model();
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_INTERRUPTED, "stopped");
    options.resume = true;
    options.loss_scale = 64;
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_ARGUMENT, "loss_scale is not what the checkpoint");
    options.loss_scale = SDLF_LOSS_SCALE_DYNAMIC;
    sdlf_model_training_state(model)->loss_scale.skipped = 6;
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_FORMAT, "6 skipped steps of 5");
    sdlf_model_free(model);
    synthetic_release(&data);
}

int main(void)
{
    RUN(a_stopped_training_goes_on);
    RUN(a_fixed_scale_stays);
    RUN(defaults_follow_the_math);
    RUN(another_scale_is_refused);
    return test_summary();
}
