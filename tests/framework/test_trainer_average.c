/* SPDX-License-Identifier: MIT */
/* Averages of weights, Lookahead, and steps of several batches. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "framework/trainer_plain.h"

enum { STEPS = 3 };

/* The average computed from the weights after each step; an epoch is one step. */
static void check_average(const char *calculator)
{
    const double ema = 0.75;
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    double average[HIDDEN * 64];
    float last[HIDDEN * 64];
    for (int epochs = 0; epochs <= STEPS; epochs++) {
        sdlf_model *model = plain_model();
        sdlf_trainer_options options = options_of(&seen, calculator);
        options.epochs = epochs;
        CHECK_OK(epochs == 0 ? sdlf_model_build(model, 1) : train(model, &data, NULL, &options));
        const float *w = weights_of(model, "h.weight");
        for (int i = 0; i < HIDDEN * 64; i++)
            average[i] = epochs == 0 ? (double)w[i] : ema * average[i] + (1 - ema) * (double)w[i];
        memcpy(last, w, sizeof last);
        sdlf_model_free(model);
    }
    sdlf_model *model = plain_model();
    sdlf_trainer_options options = options_of(&seen, calculator);
    options.epochs = STEPS;
    options.ema = (float)ema;
    CHECK_OK(train(model, &data, &data, &options));
    CHECK_EQUAL(seen.weights, sdlf_model_hash(model));
    const float *found = weights_of(model, "h.weight");
    const float *raw = sdlf_model_find_parameter(model, "h.weight")->state[1].data; /* after the momentum */
    int others = 0;
    for (int i = 0; i < HIDDEN * 64; i++) {
        CHECK_CLOSE(found[i], average[i], 1e-6);
        CHECK(raw[i] == last[i]);
        others += found[i] != raw[i];
    }
    CHECK(others > HIDDEN * 32);
    /* the test results passed to the callback are those of the final weights */
    sdlf_evaluation after;
    sdlf_calculator *opened = test_open(calculator);
    if (CHECK_OK(sdlf_evaluate(&after, model, &data, opened, 0)))
        CHECK_CLOSE(sdlf_evaluation_accuracy(&after), seen.test_accuracy, 1e-9);
    sdlf_evaluation_release(&after);
    sdlf_calculator_close(opened);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void averages_of_weights(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) check_average(type->name);
}

/* Lookahead computed from training runs without it, which restart from its slow weights: after every second of 5
 * steps. */
static void check_lookahead(const char *calculator)
{
    enum { COUNT = HIDDEN * 64 };
    const double share = 0.75;
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *model = plain_model(), *found = plain_model();
    sdlf_trainer_options options = options_of(&seen, calculator);
    options.optimizer = sdlf_sgd(.momentum = 0);
    CHECK_OK(sdlf_model_build(model, 1));
    CHECK_EQUAL(sdlf_model_parameter_count(model), 4);
    for (int round = 0; round < 3; round++) {
        float before[4][COUNT];
        for (int p = 0; p < 4; p++) {
            const sdlf_tensor *value = &sdlf_model_parameter(model, p)->value;
            memcpy(before[p], value->data, (size_t)sdlf_tensor_bytes(value));
        }
        options.epochs = round < 2 ? 2 : 1; /* an epoch is a step; the last round is incomplete */
        CHECK_OK(train(model, &data, NULL, &options));
        for (int p = 0; p < 4 && round < 2; p++) {
            const sdlf_tensor *value = &sdlf_model_parameter(model, p)->value;
            float *w = value->data;
            for (int64_t i = 0; i < sdlf_tensor_count(value); i++)
                w[i] = (float)((double)before[p][i] + share * ((double)w[i] - (double)before[p][i]));
        }
    }
    options.epochs = 5;
    options.lookahead = 2;
    options.lookahead_share = (float)share;
    CHECK_OK(train(found, &data, NULL, &options));
    int differ = 0;
    for (int p = 0; p < 4; p++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(found, p);
        const float *w = parameter->value.data, *slow = parameter->state[0].data;
        const float *expected = sdlf_model_parameter(model, p)->value.data;
        for (int64_t i = 0; i < sdlf_tensor_count(&parameter->value); i++) {
            CHECK_CLOSE(w[i], expected[i], 2e-6);
            differ += w[i] != slow[i];
        }
    }
    CHECK(differ > COUNT / 2); /* a step after the slow weights */
    sdlf_model_free(found);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void lookahead(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) check_lookahead(type->name);
}

/* A fraction of 1 changes nothing, up to rounding of weight = slow + (weight - slow). Too many states are rejected. */
static void lookahead_of_the_whole_way(void)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *models[2];
    sdlf_trainer_options options = options_of(&seen, synthetic_calculator());
    options.optimizer = sdlf_adam(.beta1 = 0.9);
    options.epochs = 4;
    options.lookahead_share = 1;
    for (int which = 0; which < 2; which++) {
        models[which] = plain_model();
        options.lookahead = which;
        CHECK_OK(train(models[which], &data, NULL, &options));
    }
    for (int i = 0; i < HIDDEN * 64; i++)
        CHECK_CLOSE(weights_of(models[1], "h.weight")[i], weights_of(models[0], "h.weight")[i], 1e-4);
    options.ema = 0.9f;
    CHECK_FAILS(train(models[0], &data, NULL, &options), SDLF_ERROR_ARGUMENT, "more than 3 copies");
    sdlf_model_free(models[1]);
    sdlf_model_free(models[0]);
    synthetic_release(&data);
}

/* Stop after each of several steps; resume with the same trainer's model, and from a file. */
static void check_resuming(sdlf_trainer_options options, int stops)
{
    sdlf_dataset data = synthetic_dataset(100, 1);
    uint32_t hash = trained_hash(&data, options);
    for (int stop = 1; stop <= stops; stop += 2) {
        history seen = {.stop_after = stop};
        sdlf_model *model = synthetic_model(), *file = NULL;
        options.user = &seen;
        options.resume = false;
        options.checkpoint = test_path("average.safetensors");
        CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_INTERRUPTED, "stopped");
        seen.stop_after = 0;
        CHECK_OK(sdlf_model_open(&file, options.checkpoint));
        CHECK_EQUAL(sdlf_model_hash(file), sdlf_model_hash(model));
        sdlf_trainer_options restored = {.forward = options.forward, .callback = watch, .user = &seen, .resume = true};
        CHECK_OK(sdlf_trainer_restore_options(&restored, sdlf_model_training_state(file)));
        CHECK(restored.lookahead == options.lookahead);
        CHECK(restored.ema == options.ema && restored.accumulate == (options.accumulate > 0 ? options.accumulate : 1));
        CHECK_TEXT(restored.rate_scales, options.rate_scales);
        CHECK_OK(train(file, &data, NULL, &restored));
        CHECK_EQUAL(sdlf_model_hash(file), hash);
        sdlf_model_free(file);
        sdlf_model_free(model);
    }
    synthetic_release(&data);
}

static void stopping_changes_nothing(void)
{
    sdlf_trainer_options options = base_options(NULL);
    options.ema = 0.9f;
    check_resuming(options, 9);
    options.accumulate = 3; /* 6 full batches and a short one: 3 steps an epoch */
    options.clip_norm = 1;
    options.optimizer = sdlf_adam(.beta1 = 0.9);
    snprintf(options.rate_scales, sizeof options.rate_scales, "conv2d.*=0.5,head=2");
    check_resuming(options, 7);
    options.ema = 0;
    options.lookahead = 5;
    check_resuming(options, 7);
    options = base_options(NULL);
    options.mixing = (sdlf_mixing){.mixup = 0.5f, .cutmix = 1};
    options.automatic.trivial = true;
    snprintf(options.class_weights, sizeof options.class_weights, "1,2,0.5");
    check_resuming(options, 5);
    options.automatic = (sdlf_auto_augment){.rand_augment = 2, .rand_magnitude = 20};
    check_resuming(options, 5);
}

static void the_best_epoch_keeps_its_average(void)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(60, 1), test = synthetic_dataset(40, 2);
    sdlf_trainer_options options = base_options(&seen);
    options.ema = 0.8f;
    options.keep = SDLF_KEEP_BEST_LOSS;
    sdlf_model *model = synthetic_model();
    sdlf_trainer *trainer = NULL;
    double loss = 0;
    CHECK_OK(sdlf_trainer_create(&trainer, model, &data, &test, &options));
    seen.trainer = trainer;
    CHECK_OK(sdlf_trainer_run(trainer));
    CHECK(sdlf_trainer_best_epoch(trainer, &loss, NULL) > 0);
    sdlf_trainer_free(trainer);
    sdlf_calculator *calculator = test_open(options.forward);
    sdlf_evaluation after;
    if (CHECK_OK(sdlf_evaluate(&after, model, &test, calculator, 0))) CHECK_CLOSE(after.loss, loss, 1e-5);
    sdlf_evaluation_release(&after);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
    synthetic_release(&test);
    synthetic_release(&data);
}

/* ---- several batches a step ---- */

/* Two batches of 12 equal one of 24, except for rounding, whatever the order of their samples. */
static void check_accumulating(const char *calculator, sdlf_optimizer optimizer, float clip)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *models[2];
    for (int which = 0; which < 2; which++) {
        sdlf_trainer_options options = options_of(&seen, calculator);
        seen.steps = 0;
        options.optimizer = optimizer;
        options.clip_norm = clip;
        options.epochs = 4;
        options.batch = which == 0 ? SAMPLES : SAMPLES / 4;
        options.accumulate = which == 0 ? 1 : 4;
        models[which] = plain_model();
        CHECK_OK(train(models[which], &data, NULL, &options));
        CHECK_EQUAL(seen.steps, 4);
    }
    const float *one = weights_of(models[0], "h.weight"), *many = weights_of(models[1], "h.weight");
    for (int i = 0; i < HIDDEN * 64; i++) CHECK_CLOSE(many[i], one[i], 2e-5);
    sdlf_model_free(models[1]);
    sdlf_model_free(models[0]);
    synthetic_release(&data);
}

static void several_batches_are_one_step(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) {
        check_accumulating(type->name, sdlf_sgd(.momentum = 0.9), 0);
        check_accumulating(type->name, sdlf_sgd(.momentum = 0), 0.5f);
    }
    check_accumulating(synthetic_calculator(), sdlf_rmsprop(.rho = 0.9, .epsilon = 0.1), 0);
}

static void plans_that_do_not_accumulate(void)
{
    sdlf_model *model = plain_model();
    sdlf_calculator *calculator = test_open("reference");
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = 2, .mode = SDLF_TRAIN, .forward = calculator};
    CHECK_OK(sdlf_plan_create(&plan, model, &options));
    CHECK_FAILS(sdlf_plan_accumulate(plan), SDLF_ERROR_ARGUMENT, "made to accumulate");
    sdlf_plan_free(plan);
    options.accumulate = options.gradients_only = true;
    CHECK_FAILS(sdlf_plan_create(&plan, model, &options), SDLF_ERROR_ARGUMENT, "accumulate is for training");
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

int main(void)
{
    RUN(averages_of_weights);
    RUN(lookahead);
    RUN(lookahead_of_the_whole_way);
    RUN(stopping_changes_nothing);
    RUN(the_best_epoch_keeps_its_average);
    RUN(several_batches_are_one_step);
    RUN(plans_that_do_not_accumulate);
    return test_summary();
}
