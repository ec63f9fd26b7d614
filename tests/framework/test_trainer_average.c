/* SPDX-License-Identifier: MIT */
/* Averages of weights, Lookahead, steps of several batches, and learning rates of groups of parameters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "framework/trainer_history.h"

enum { SAMPLES = 24, STEPS = 3, HIDDEN = 5 };

/* No layer that looks at the whole batch, nor one that draws. */
static sdlf_model *plain_model(void)
{
    sdlf_model *model = sdlf_model_create("plain");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, SYNTHETIC_SIDE, SYNTHETIC_SIDE));
    x = sdlf_relu(model, sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "h", .units = HIDDEN}));
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "f", .units = SYNTHETIC_CLASSES});
    sdlf_output(model, "class", sdlf_softmax(model, x));
    return model;
}

static sdlf_trainer_options options_of(history *seen, const char *calculator)
{
    return (sdlf_trainer_options){.batch = SAMPLES,
                                  .epochs = 1,
                                  .optimizer = sdlf_sgd(.momentum = 0.9),
                                  .schedule = sdlf_constant(.peak = 0.1f),
                                  .forward = calculator,
                                  .callback = watch,
                                  .user = seen};
}

static const float *weights_of(sdlf_model *model, const char *name)
{
    return sdlf_model_find_parameter(model, name)->value.data;
}

/* The average worked out from the weights after each step, which are a step an epoch. */
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
    const float *raw = sdlf_model_find_parameter(model, "h.weight")->state[1].data; /* behind the momentum */
    int others = 0;
    for (int i = 0; i < HIDDEN * 64; i++) {
        CHECK_CLOSE(found[i], average[i], 1e-6);
        CHECK(raw[i] == last[i]);
        others += found[i] != raw[i];
    }
    CHECK(others > HIDDEN * 32);
    /* what the callback was told of the test is what the weights left say */
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

/* Lookahead worked out from trainings without it, which begin anew where its slow weights are: every second of 5
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
        options.epochs = round < 2 ? 2 : 1; /* an epoch is a step; the last one is of no full round */
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
    CHECK(differ > COUNT / 2); /* a step behind the slow weights */
    sdlf_model_free(found);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void lookahead(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) check_lookahead(type->name);
}

/* A whole way changes nothing, to rounding of weight = slow + (weight - slow). Too many states are refused. */
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

/* Stop after each of several steps; go on with the same trainer's model, and through a file. */
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

/* Two batches of 12 are one of 24, but for rounding, whatever the order in them. */
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

/* ---- rates of groups ---- */

static void check_rates(const char *calculator)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *models[3];
    for (int which = 0; which < 3; which++) { /* untrained, one step, one with rates of its own */
        sdlf_trainer_options options = options_of(&seen, calculator);
        if (which == 2) snprintf(options.rate_scales, sizeof options.rate_scales, "h.bias=0.25,h.*=0.5,head=3");
        models[which] = plain_model();
        CHECK_OK(which == 0 ? sdlf_model_build(models[0], 1) : train(models[which], &data, NULL, &options));
    }
    static const struct {
        const char *name;
        int count;
        float factor;
    } groups[] = {{"h.weight", HIDDEN * 64, 0.5f}, {"h.bias", HIDDEN, 0.25f}, {"f.weight", 3 * HIDDEN, 3}};
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        const float *before = weights_of(models[0], groups[g].name), *usual = weights_of(models[1], groups[g].name),
                    *own = weights_of(models[2], groups[g].name);
        for (int i = 0; i < groups[g].count; i++)
            CHECK_CLOSE(own[i] - before[i], groups[g].factor * (usual[i] - before[i]), 1e-6);
    }
    for (int which = 0; which < 3; which++) sdlf_model_free(models[which]);
    synthetic_release(&data);
}

static void rates_of_groups(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) check_rates(type->name);
}

/* Four steps of a linear schedule: a group whose line ends at half of them moves in two, by rates of 1 and 1/2 of its
 * peak, and with momentum 0 as a training would whose rates are so; the decay of a group is its own. */
static void check_ends(const char *calculator)
{
    enum { ALL = 4 };
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *model = plain_model();
    float bias[ALL + 1][HIDDEN];
    for (int epochs = 1; epochs <= ALL; epochs++) { /* a step each; all stop early of the same schedule */
        sdlf_trainer_options options = options_of(&seen, calculator);
        options.optimizer = sdlf_sgd(.momentum = 0);
        options.schedule = sdlf_linear(.peak = 0.1f);
        options.epochs = ALL;
        snprintf(options.rate_scales, sizeof options.rate_scales, "h.bias=2@0.5,h.weight=1e-20,head=1e-20");
        snprintf(options.weight_decays, sizeof options.weight_decays, "h.bias=0.5");
        seen = (history){.stop_after = epochs == ALL ? 0 : epochs};
        sdlf_model_free(model);
        model = plain_model();
        sdlf_status status = train(model, &data, NULL, &options);
        CHECK(status == (epochs == ALL ? SDLF_OK : SDLF_ERROR_INTERRUPTED));
        memcpy(bias[epochs], weights_of(model, "h.bias"), sizeof bias[0]);
    }
    memset(bias[0], 0, sizeof bias[0]);
    double moved = 0;
    for (int i = 0; i < HIDDEN; i++) {
        moved += fabs((double)bias[1][i]);
        CHECK(bias[2][i] == bias[3][i] && bias[2][i] == bias[4][i]);
    }
    CHECK(moved > 0);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void rates_that_end_early(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) check_ends(type->name);
}

/* The first step of plain descent with a decay d of one parameter alone moves that by rate d w more. */
static void check_decays(const char *calculator)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *models[3];
    for (int which = 0; which < 3; which++) { /* untrained, without, with */
        sdlf_trainer_options options = options_of(&seen, calculator);
        options.optimizer = sdlf_sgd(.momentum = 0, .weight_decay = 0.25);
        snprintf(options.weight_decays, sizeof options.weight_decays, which == 2 ? "h.weight=0.5" : "h.weight=0");
        models[which] = plain_model();
        CHECK_OK(which == 0 ? sdlf_model_build(models[0], 1) : train(models[which], &data, NULL, &options));
    }
    const float *before = weights_of(models[0], "h.weight"), *without = weights_of(models[1], "h.weight"),
                *with = weights_of(models[2], "h.weight");
    for (int i = 0; i < HIDDEN * 64; i++) CHECK_CLOSE(with[i] - without[i], -0.1 * 0.5 * (double)before[i], 1e-6);
    const float *a = weights_of(models[1], "f.weight"), *b = weights_of(models[2], "f.weight");
    CHECK(memcmp(a, b, 3 * HIDDEN * sizeof *a) == 0);
    for (int which = 0; which < 3; which++) sdlf_model_free(models[which]);
    synthetic_release(&data);
}

static void decays_of_groups(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) check_decays(type->name);
}

static void wrong_decays_are_refused(void)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    static const char *const wrong[] = {"h.weight", "h.weight=-1", "h.weight=11", "h.weight=0.1@0.5", "g=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sdlf_trainer_options options = options_of(&seen, synthetic_calculator());
        snprintf(options.weight_decays, sizeof options.weight_decays, "%s", wrong[i]);
        sdlf_model *model = plain_model();
        CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_ARGUMENT,
                    wrong[i][0] == 'g' ? "weight_decays: network 'plain' has no parameter 'g'"
                                       : "weight_decays: 'h.weight");
        sdlf_model_free(model);
    }
    synthetic_release(&data);
}

static void wrong_groups_are_refused(void)
{
    static const struct {
        const char *list, *words;
    } wrong[] = {
        {"h.weight", "'h.weight': expected PARAMETERS=FACTOR"},
        {"h.weight=0", "with a factor above 0"},
        {"h.weight=x", "expected PARAMETERS=FACTOR"},
        {"g.*=2", "has no parameter 'g.*'"},
        {"head=inf", "with a factor above 0"},
        {"=2", "has no parameter ''"},
        {"h.bias=2@0.5", "only a linear schedule that ends at 0"},
        {"h.bias=2@0", "above 0 and up to 1"},
        {"h.bias=2@1.5", "above 0 and up to 1"},
        {"h.bias=2@", "above 0 and up to 1"},
    };
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sdlf_trainer_options options = options_of(&seen, synthetic_calculator());
        snprintf(options.rate_scales, sizeof options.rate_scales, "%s", wrong[i].list);
        sdlf_model *model = plain_model();
        CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_ARGUMENT, wrong[i].words);
        sdlf_model_free(model);
    }
    synthetic_release(&data);
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
    RUN(rates_of_groups);
    RUN(rates_that_end_early);
    RUN(decays_of_groups);
    RUN(wrong_decays_are_refused);
    RUN(wrong_groups_are_refused);
    return test_summary();
}
