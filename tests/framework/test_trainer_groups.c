/* SPDX-License-Identifier: MIT */
/* Learning rates and weight decays of groups of parameters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "framework/trainer_plain.h"

static void check_rates(const char *calculator)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *models[3];
    for (int which = 0; which < 3; which++) { /* untrained, one step, one with its own rates */
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

/* Four steps of a linear schedule: a group whose schedule ends halfway moves in two of them, by 1 and 1/2 of its peak
 * rate, and with momentum 0 like a training run with these rates; each group has its own decay. */
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

/* The first step of plain gradient descent with a decay d of only one parameter moves it by rate d w more. */
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
    RUN(rates_of_groups);
    RUN(rates_that_end_early);
    RUN(decays_of_groups);
    RUN(wrong_decays_are_refused);
    RUN(wrong_groups_are_refused);
    return test_summary();
}
