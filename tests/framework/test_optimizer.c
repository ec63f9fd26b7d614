/* Optimisers: their options, and the operation that each describes. */
#include <math.h>

#include <sdlf/optimizer.h>

#include "testing.h"

static void classes_are_found(void)
{
    CHECK_TEXT(sdlf_optimizer_class_at(0)->name, "sgd");
    CHECK(sdlf_optimizer_class_at(-1) == NULL && sdlf_optimizer_class_at(4) == NULL);
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
    CHECK(adam.options.adam.beta1 == 0.9f && adam.options.adam.beta2 == 0.999f && adam.options.adam.epsilon == 1e-8f);
    CHECK_OK(sdlf_optimizer_complete(&rmsprop));
    CHECK(rmsprop.options.rmsprop.rho == 0.99f && rmsprop.options.rmsprop.epsilon == 1e-8f);
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
    sdlf_operation adam = describe(sdlf_adam(.beta2 = 0.99f, .weight_decay = 0.1f), true);
    CHECK(adam.kind == SDLF_ADAM_UPDATE && adam.adam.beta1 == 0.9f && adam.adam.beta2 == 0.99f);
    CHECK(!adam.adam.decoupled && adam.adam.decay == 0.1f);
    sdlf_operation adamw = describe(sdlf_adamw(.weight_decay = 0.1f), true);
    CHECK(adamw.adam.decoupled && adamw.adam.decay == 0.1f);
    sdlf_operation rmsprop = describe(sdlf_rmsprop(.momentum = 0.5f, .weight_decay = 0.1f), true);
    CHECK(rmsprop.kind == SDLF_RMSPROP_UPDATE && rmsprop.rmsprop.rho == 0.99f && rmsprop.rmsprop.momentum == 0.5f);
    CHECK(rmsprop.rmsprop.decay == 0.1f);
}

static void what_does_not_decay_is_spared(void)
{
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

int main(void)
{
    RUN(classes_are_found);
    RUN(a_zeroed_one_is_sgd);
    RUN(defaults_are_filled_in);
    RUN(states_depend_on_options);
    RUN(updates_are_described);
    RUN(what_does_not_decay_is_spared);
    RUN(bad_options_are_named);
    return test_summary();
}
