/* SPDX-License-Identifier: MIT */
/* Stopped training resumes as if it had not been stopped: with the same trainer, with a new one, through a file. */
#include "framework/trainer_history.h"

/* Stop after each of several numbers of steps, resume with a new trainer, and compare. */
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

/* Before anything is trained. */
static void a_place_without_a_folder_is_told(void)
{
    sdlf_dataset data = synthetic_dataset(20, 1);
    history seen = {0};
    sdlf_trainer_options options = base_options(&seen);
    options.checkpoint = "/nonexistent/folder/weights.safetensors";
    sdlf_model *model = synthetic_model();
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_IO, "/nonexistent/folder");
    CHECK_EQUAL(seen.steps, 0);
    sdlf_model_free(model);
    synthetic_release(&data);
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
    strcpy(strstr(state->settings, ",\"math\""), "}"); /* from before this option existed */
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

int main(void)
{
    RUN(resuming_changes_nothing);
    RUN(one_trainer_goes_on);
    RUN(checkpoints_go_through_files);
    RUN(a_place_without_a_folder_is_told);
    RUN(a_spoilt_state_is_refused);
    return test_summary();
}
