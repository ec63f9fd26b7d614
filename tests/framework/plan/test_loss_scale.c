/* SPDX-License-Identifier: MIT */
/* Loss scaling in plans: a scale that is a power of two changes no bit; a step whose gradients overflow is skipped, the
 * scale halves, and training continues as if the step had not happened. */
#include <stdlib.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "framework/plan/plan_internal.h"
#include "testing.h"

enum { N = 4, STEPS = 5 };

static const sdlf_loss_scale_rule dynamic = {.interval = 2000};

static void write_batch(sdlf_plan *plan, float size)
{
    float image[N * 36];
    fill_random(image, N * 36, 21);
    for (int i = 0; i < N * 36; i++) image[i] *= size;
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 1, 2, 1}));
}

static sdlf_loss_scale scale_of(sdlf_plan *plan)
{
    sdlf_loss_scale scale;
    CHECK_OK(sdlf_plan_loss_scale(plan, &scale));
    return scale;
}

/* Train until that many steps were not skipped. Returns how many were skipped. */
static int64_t take_steps(sdlf_plan *plan, int steps, bool accumulates)
{
    for (int i = 0; i < 200 && sdlf_plan_step_number(plan) - scale_of(plan).skipped < steps; i++) {
        if (accumulates) CHECK_OK(sdlf_plan_accumulate(plan));
        CHECK_OK(sdlf_plan_step(plan, 0.01f));
    }
    return scale_of(plan).skipped;
}

/* All parameters and states of a network trained with these options. */
static sdlf_model *trained(sdlf_plan_options options, float size, int64_t *skipped)
{
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    options.batch = N;
    options.mode = SDLF_TRAIN;
    options.no_fusion = true; /* without fused updates, so that the arithmetic is the same */
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    if (plan == NULL) return net;
    write_batch(plan, size);
    *skipped = take_steps(plan, STEPS, options.accumulate);
    CHECK_OK(sdlf_plan_store_parameters(plan));
    sdlf_plan_free(plan);
    return net;
}

static bool same_values(sdlf_model *a, sdlf_model *b)
{
    bool same = true;
    for (int i = 0; i < sdlf_model_parameter_count(a); i++) {
        const sdlf_parameter *p = sdlf_model_parameter(a, i), *q = sdlf_model_parameter(b, i);
        size_t bytes = (size_t)sdlf_tensor_bytes(&p->value);
        same = same && memcmp(p->value.data, q->value.data, bytes) == 0;
        for (int s = 0; s < 3; s++)
            if (sdlf_tensor_present(&p->state[s]))
                same = same && memcmp(p->state[s].data, q->state[s].data, bytes) == 0;
    }
    return same;
}

/* With a scale, and without. */
static void check_same(sdlf_plan_options options, float scale, float size, bool skips)
{
    int64_t skipped[2] = {0};
    options.loss_scale = 0;
    sdlf_model *without = trained(options, size, &skipped[0]);
    options.loss_scale = scale;
    options.loss_scale_rule = dynamic;
    sdlf_model *with = trained(options, size, &skipped[1]);
    CHECK(same_values(with, without));
    CHECK_EQUAL(skipped[0], 0);
    CHECK((skipped[1] > 0) == skips);
    sdlf_model_free(with);
    sdlf_model_free(without);
}

/* Every kind of update: plain and with clipping, accumulation. */
static void check_updates(sdlf_plan_options options, float scale, float size, bool skips)
{
    const sdlf_optimizer optimizers[] = {sdlf_sgd(.momentum = 0.9, .nesterov = true, .weight_decay = 0.01),
                                         sdlf_adamw(.weight_decay = 0.01), sdlf_rmsprop(.momentum = 0.5),
                                         sdlf_muon(.momentum = 0.9), sdlf_lars(.weight_decay = 0.01)};
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
        options.optimizer = optimizers[i];
        options.clip_norm = 0;
        options.accumulate = false;
        check_same(options, scale, size, skips);
        options.clip_norm = 0.125f;
        check_same(options, scale, size, skips);
        options.accumulate = true;
        check_same(options, scale, size, skips);
    }
}

/* On every calculator, and with the backward pass on another one, in other memory. */
static void check_calculators(float scale, float size, bool skips)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL));
        check_updates((sdlf_plan_options){.forward = calculator}, scale, size, skips);
        check_same((sdlf_plan_options){.forward = reference, .backward = calculator}, scale, size, skips);
        check_same((sdlf_plan_options){.forward = calculator, .backward = reference}, scale, size, skips);
        sdlf_calculator_close(calculator);
    }
    sdlf_calculator_close(reference);
}

static void a_scale_changes_no_bit(void)
{
    check_calculators(1024, 1, false);
}

/* Adam's step count also excludes skipped steps. */
static void skipped_steps_change_no_bit(void)
{
    check_calculators(0x1p120f, 4096, true);
}

/* One step at a time. */
static void an_overflow_halves_the_scale(void)
{
    sdlf_calculator *cpu = NULL;
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    sdlf_model *net = small_cnn(), *before = small_cnn();
    sdlf_plan *plan = NULL;
    const sdlf_plan_options options = {.batch = N,
                                       .mode = SDLF_TRAIN,
                                       .forward = cpu,
                                       .optimizer = sdlf_adam(.beta1 = 0.9),
                                       .loss_scale = 0x1p120f,
                                       .loss_scale_rule = {.growth = 4, .backoff = 0.5f, .interval = 2}};
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    if (plan != NULL) {
        write_batch(plan, 4096);
        CHECK_OK(sdlf_plan_step(plan, 0.01f));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        CHECK_OK(sdlf_model_build(before, 1));
        CHECK_OK(sdlf_model_require_states(before, 2));
        CHECK(same_values(net, before)); /* states are zeros */
        sdlf_loss_scale scale = scale_of(plan);
        CHECK(scale.scale == 0x1p119 && scale.good == 0 && scale.skipped == 1);
        CHECK_OK(sdlf_plan_set_loss_scale(plan, &(sdlf_loss_scale){.scale = 8, .skipped = 1}));
        CHECK_OK(sdlf_plan_step(plan, 0.01f));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        CHECK(!same_values(net, before));
        scale = scale_of(plan);
        CHECK(scale.scale == 8 && scale.good == 1 && scale.skipped == 1);
        CHECK_OK(sdlf_plan_step(plan, 0.01f));
        scale = scale_of(plan);
        CHECK(scale.scale == 32 && scale.good == 0 && scale.skipped == 1);
        CHECK_OK(sdlf_plan_time(plan, 2)); /* which runs steps */
        scale = scale_of(plan);
        CHECK(scale.scale == 32 && scale.good == 0 && scale.skipped == 1);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_model_free(before);
    sdlf_calculator_close(cpu);
}

/* Alternating plans continue with each other's scale. */
static void plans_share_the_scale(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL));
        sdlf_model *net = small_cnn();
        sdlf_plan *first = NULL, *second = NULL;
        sdlf_plan_options options = {.batch = N, .mode = SDLF_TRAIN, .forward = calculator, .loss_scale = 0x1p120f};
        options.loss_scale_rule = dynamic;
        CHECK_OK(sdlf_plan_create(&first, net, &options));
        if (first != NULL) {
            write_batch(first, 4096);
            CHECK_OK(sdlf_plan_step(first, 0.01f));
            options.reuse = first;
            options.loss_scale = 16;
            CHECK_OK(sdlf_plan_create(&second, net, &options));
        }
        if (second != NULL) {
            CHECK(scale_of(second).scale == 0x1p119 && scale_of(second).skipped == 1);
            write_batch(second, 4096);
            CHECK_OK(sdlf_plan_step(second, 0.01f));
            CHECK(scale_of(first).scale == 0x1p118 && scale_of(first).skipped == 2);
        }
        sdlf_plan_free(second);
        sdlf_plan_free(first);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

/* Forward and backward of the loss remain one operation; updates wait for the check. */
static void only_updates_come_apart(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    const sdlf_plan_options options = {.batch = N, .mode = SDLF_TRAIN, .forward = reference, .loss_scale = 2};
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    int losses = 0, checks = 0, updates = 0;
    for (int i = 0; plan != NULL && i < sdlf_plan_step_count(plan); i++) {
        const char *name = sdlf_plan_step_info(plan, i).operation;
        losses += strstr(name, "cross_entropy") != NULL;
        checks += strcmp(name, "check_finite") == 0;
        if (strcmp(name, "sgd_update") != 0) continue;
        updates++;
        CHECK_EQUAL(checks, sdlf_model_parameter_count(net));
    }
    CHECK_EQUAL(losses, 1);
    CHECK_EQUAL(updates, sdlf_model_parameter_count(net));
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static void wrong_scales_are_refused(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = N, .mode = SDLF_TRAIN, .forward = reference, .loss_scale = -2};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "loss_scale must be a number from 0");
    options.loss_scale = 2;
    options.gradients_only = true;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "gradients_only");
    options.gradients_only = false;
    options.loss_scale_rule.backoff = 2;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "backoff");
    options.loss_scale_rule.backoff = 0;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_FAILS(sdlf_plan_set_loss_scale(plan, &(sdlf_loss_scale){.scale = 0}), SDLF_ERROR_ARGUMENT, "above 0");
    CHECK_FAILS(sdlf_plan_set_loss_scale(plan, &(sdlf_loss_scale){.scale = 1, .good = -1}), SDLF_ERROR_ARGUMENT, "-1");
    sdlf_plan_free(plan);
    options.loss_scale = 0;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_EQUAL(scale_of(plan).scale, 0);
    CHECK_FAILS(sdlf_plan_set_loss_scale(plan, &(sdlf_loss_scale){.scale = 1}), SDLF_ERROR_ARGUMENT,
                "without a loss scale");
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(a_scale_changes_no_bit);
    RUN(skipped_steps_change_no_bit);
    RUN(an_overflow_halves_the_scale);
    RUN(plans_share_the_scale);
    RUN(only_updates_come_apart);
    RUN(wrong_scales_are_refused);
    return test_summary();
}
