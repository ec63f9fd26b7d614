/* SPDX-License-Identifier: MIT */
/* Optimizers: their options, and the operation that each describes. */
#include <math.h>

#include <sdlf/sdlf.h>

#include "testing.h"

static void classes_are_found(void)
{
    CHECK_TEXT(sdlf_optimizer_class_at(0)->name, "sgd");
    CHECK(sdlf_optimizer_class_at(-1) == NULL && sdlf_optimizer_class_at(6) == NULL);
    for (int index = 0; sdlf_optimizer_class_at(index) != NULL; index++) {
        const sdlf_optimizer_class *type = sdlf_optimizer_class_at(index);
        CHECK(sdlf_optimizer_class_find(type->name) == type);
        CHECK(type->learning_rate > 0 && type->summary != NULL);
    }
    CHECK(sdlf_optimizer_class_find("lion") == NULL && sdlf_optimizer_class_find(NULL) == NULL);
}

static void a_zeroed_one_is_sgd(void)
{
    sdlf_optimizer optimizer = {.type = NULL};
    CHECK_OK(sdlf_optimizer_complete(&optimizer));
    CHECK_TEXT(optimizer.type->name, "sgd");
    CHECK_EQUAL(optimizer.type->state_count(&optimizer), 0);
}

static void defaults_are_filled_in(void)
{
    sdlf_optimizer adam = sdlf_adam(.beta1 = 0), rmsprop = sdlf_rmsprop(.momentum = 0);
    CHECK_OK(sdlf_optimizer_complete(&adam));
    CHECK(adam.options.adam.beta1 == 0.9 && adam.options.adam.beta2 == 0.999 && adam.options.adam.epsilon == 1e-8);
    CHECK_OK(sdlf_optimizer_complete(&rmsprop));
    CHECK(rmsprop.options.rmsprop.rho == 0.99 && rmsprop.options.rmsprop.epsilon == 1e-8);
}

/* A lower rate for small batches, only for gradient descent; never a higher one. */
static void rates_follow_the_batch(void)
{
    sdlf_optimizer zeroed = {.type = NULL}, sgd = sdlf_sgd(.momentum = 0.9f), adam = sdlf_adam(.beta1 = 0.9f);
    CHECK_CLOSE(sdlf_optimizer_rate(&sgd, 64), 0.05, 1e-8);
    CHECK_CLOSE(sdlf_optimizer_rate(&sgd, 1024), 0.05, 1e-8);
    CHECK_CLOSE(sdlf_optimizer_rate(&sgd, 16), 0.0125, 1e-8);
    CHECK_CLOSE(sdlf_optimizer_rate(&sgd, 1), 0.05 / 64, 1e-8);
    CHECK_CLOSE(sdlf_optimizer_rate(&zeroed, 32), 0.025, 1e-8);
    CHECK_CLOSE(sdlf_optimizer_rate(&adam, 1), 1e-3, 1e-9);
    CHECK_CLOSE(sdlf_optimizer_rate(&adam, 64), 1e-3, 1e-9);
}

static void states_depend_on_options(void)
{
    sdlf_optimizer optimizers[] = {sdlf_sgd(.momentum = 0.9f), sdlf_adam(.beta1 = 0.9f), sdlf_adamw(.beta1 = 0.9f),
                                   sdlf_rmsprop(.rho = 0.9f), sdlf_rmsprop(.momentum = 0.9f)};
    const int expected[] = {1, 2, 2, 1, 2};
    for (int index = 0; index < 5; index++)
        CHECK_EQUAL(optimizers[index].type->state_count(&optimizers[index]), expected[index]);
}

static sdlf_operation describe(sdlf_optimizer optimizer, bool decay)
{
    sdlf_operation operation = {.kind = SDLF_FILL};
    CHECK_OK(sdlf_optimizer_complete(&optimizer));
    optimizer.type->update(&optimizer, decay, &operation);
    return operation;
}

static void updates_are_described(void)
{
    sdlf_operation sgd = describe(sdlf_sgd(.momentum = 0.9f, .nesterov = true, .weight_decay = 0.1f), true);
    CHECK(sgd.kind == SDLF_SGD_UPDATE && sgd.sgd.momentum == 0.9f && sgd.sgd.nesterov && sgd.sgd.decay == 0.1f);
    sdlf_operation adam = describe(sdlf_adam(.beta2 = 0.99, .weight_decay = 0.1), true);
    CHECK(adam.kind == SDLF_ADAM_UPDATE && adam.adam.beta1 == 0.9 && adam.adam.beta2 == 0.99);
    CHECK(!adam.adam.decoupled && adam.adam.decay == 0.1);
    sdlf_operation adamw = describe(sdlf_adamw(.weight_decay = 0.1f), true);
    CHECK(adamw.adam.decoupled && adamw.adam.decay == 0.1f);
    sdlf_operation rmsprop = describe(sdlf_rmsprop(.momentum = 0.5f, .weight_decay = 0.1f), true);
    CHECK(rmsprop.kind == SDLF_RMSPROP_UPDATE && rmsprop.rmsprop.rho == 0.99 && rmsprop.rmsprop.momentum == 0.5f);
    CHECK(rmsprop.rmsprop.decay == 0.1f);
}

static void what_does_not_decay_is_spared(void)
{
    CHECK(describe(sdlf_sgd(.weight_decay = 0.5, .decay_all = true), false).sgd.decay == 0.5f);
    CHECK(describe(sdlf_adam(.weight_decay = 0.5, .decay_all = true), false).adam.decay == 0.5);
    CHECK(describe(sdlf_adamw(.weight_decay = 0.5, .decay_all = true), false).adam.decay == 0.5);
    CHECK(describe(sdlf_rmsprop(.weight_decay = 0.5, .decay_all = true), false).rmsprop.decay == 0.5);
    CHECK(describe(sdlf_sgd(.weight_decay = 0.1f), false).sgd.decay == 0);
    CHECK(describe(sdlf_adam(.weight_decay = 0.1f), false).adam.decay == 0);
    CHECK(describe(sdlf_adamw(.weight_decay = 0.1f), false).adam.decay == 0);
    CHECK(describe(sdlf_rmsprop(.weight_decay = 0.1f), false).rmsprop.decay == 0);
}

static void check_fails(sdlf_optimizer optimizer, const char *text)
{
    CHECK_FAILS(sdlf_optimizer_complete(&optimizer), SDLF_ERROR_ARGUMENT, text);
}

static void bad_options_are_named(void)
{
    check_fails(sdlf_sgd(.momentum = 1), "optimizer sgd: momentum: expected 0 to 0.999999, found 1");
    check_fails(sdlf_sgd(.momentum = NAN), "momentum");
    check_fails(sdlf_sgd(.weight_decay = -1), "weight_decay");
    check_fails(sdlf_adam(.beta1 = 1.5f), "optimizer adam: beta1");
    check_fails(sdlf_adamw(.epsilon = -1), "optimizer adamw: epsilon");
    check_fails(sdlf_rmsprop(.rho = 2), "optimizer rmsprop: rho");
}

/* ---- updates as a plan applies them, against a computation by hand ---- */

/* Two logits of one number: z = w x + b, label 0. Weights decay, biases do not. */
typedef struct by_hand {
    double value[4], first[4], second[4]; /* w0, w1, b0, b1; the optimizer's states */
    int64_t step;
} by_hand;

static const double x = 1.5, rate = 0.25;

static void gradients_by_hand(const by_hand *now, double clip_norm, double *gradient)
{
    double z[2] = {now->value[0] * x + now->value[2], now->value[1] * x + now->value[3]};
    double p = 1 / (1 + exp(z[1] - z[0]));
    double squares = 0, scale = 1;
    gradient[2] = p - 1;
    gradient[3] = 1 - p;
    for (int index = 0; index < 2; index++) gradient[index] = gradient[2 + index] * x;
    for (int index = 0; index < 4; index++) squares += gradient[index] * gradient[index];
    if (clip_norm > 0 && sqrt(squares) > clip_norm) scale = clip_norm / (sqrt(squares) + 1e-6);
    for (int index = 0; index < 4; index++) gradient[index] *= scale;
}

static void sgd_by_hand(by_hand *now, double clip_norm)
{
    double gradient[4];
    gradients_by_hand(now, clip_norm, gradient);
    for (int index = 0; index < 4; index++) {
        double g = gradient[index] + (index < 2 ? 0.5 * now->value[index] : 0);
        now->first[index] = 0.75 * now->first[index] + g;
        now->value[index] -= rate * (g + 0.75 * now->first[index]); /* Nesterov's */
    }
}

static void adamw_by_hand(by_hand *now, double clip_norm)
{
    double gradient[4];
    gradients_by_hand(now, clip_norm, gradient);
    now->step++;
    for (int index = 0; index < 4; index++) {
        double g = gradient[index];
        now->first[index] = 0.5 * now->first[index] + 0.5 * g;
        now->second[index] = 0.75 * now->second[index] + 0.25 * g * g;
        double m = now->first[index] / (1 - pow(0.5, (double)now->step));
        double v = now->second[index] / (1 - pow(0.75, (double)now->step));
        if (index < 2) now->value[index] -= rate * 0.5 * now->value[index];
        now->value[index] -= rate * m / (sqrt(v) + 0.125);
    }
}

static void check_plan(const char *calculator_name, sdlf_optimizer optimizer, void (*update)(by_hand *, double),
                       float clip_norm)
{
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    sdlf_model *model = sdlf_model_create("by hand");
    sdlf_node node = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(1));
    node = sdlf_fully_connected(model, node, &(sdlf_fully_connected_options){.name = "f", .units = 2});
    sdlf_output(model, "z", node);
    sdlf_plan_options options = {
        .batch = 1, .mode = SDLF_TRAIN, .forward = calculator, .optimizer = optimizer, .clip_norm = clip_norm};
    CHECK_OK(sdlf_plan_create(&plan, model, &options));
    float *weight = sdlf_model_find_parameter(model, "f.weight")->value.data;
    float *bias = sdlf_model_find_parameter(model, "f.bias")->value.data;
    by_hand now = {.value = {0.5, -0.25, 0.125, 1}};
    for (int index = 0; index < 2; index++) {
        weight[index] = (float)now.value[index];
        bias[index] = (float)now.value[2 + index];
    }
    CHECK_OK(sdlf_plan_load_parameters(plan));
    CHECK_OK(test_plan_write(plan, "x", (const float[]){(float)x}));
    CHECK_OK(test_plan_write(plan, "labels", (const int32_t[]){0}));
    for (int step = 0; step < 4; step++) {
        CHECK_OK(sdlf_plan_step(plan, (float)rate));
        update(&now, (double)clip_norm);
        CHECK_OK(sdlf_plan_store_parameters(plan));
        for (int index = 0; index < 2; index++) {
            CHECK_CLOSE(weight[index], now.value[index], 2e-6);
            CHECK_CLOSE(bias[index], now.value[2 + index], 2e-6);
        }
    }
    CHECK_EQUAL(sdlf_plan_step_number(plan), 4);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void plans_apply_updates(void)
{
    sdlf_optimizer sgd = sdlf_sgd(.momentum = 0.75f, .nesterov = true, .weight_decay = 0.5f);
    sdlf_optimizer adamw = sdlf_adamw(.beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0.125f, .weight_decay = 0.5f);
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        const char *name = test_calculator_class_at(index)->name;
        check_plan(name, sgd, sgd_by_hand, 0);
        check_plan(name, sgd, sgd_by_hand, 0.25f);
        check_plan(name, adamw, adamw_by_hand, 0);
        check_plan(name, adamw, adamw_by_hand, 0.25f);
    }
}

int main(void)
{
    RUN(classes_are_found);
    RUN(a_zeroed_one_is_sgd);
    RUN(defaults_are_filled_in);
    RUN(rates_follow_the_batch);
    RUN(states_depend_on_options);
    RUN(updates_are_described);
    RUN(what_does_not_decay_is_spared);
    RUN(bad_options_are_named);
    RUN(plans_apply_updates);
    return test_summary();
}
