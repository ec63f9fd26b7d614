/* SPDX-License-Identifier: MIT */
/* Errors of a trainer: options out of range, data that do not match the network, changed options when
 * resuming. */
#include <math.h>

#include "framework/trainer_history.h"

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
    other.optimizer.options.sgd.decay_all = true;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "sgd decay_all is not what");
    other = options;
    other.schedule.peak = 0.2f;
    CHECK_FAILS(train(model, &data, NULL, &other), SDLF_ERROR_ARGUMENT, "a learning rate of 0.1");
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
    CHECK_OK(train(model, &data, NULL, &options)); /* all epochs are done: more may be requested */
    sdlf_model_free(model);
    synthetic_release(&data);
    synthetic_release(&smaller);
}

int main(void)
{
    RUN(bad_options_are_refused);
    RUN(data_that_does_not_fit_is_refused);
    RUN(other_options_are_refused_on_resuming);
    return test_summary();
}
