/* SPDX-License-Identifier: MIT */
/* Plans that draw their own batches: training is bitwise the same as with batches written step by step. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { SAMPLES = 23, BATCH = 4, STEPS = 5, AREA = 36 };

static uint8_t samples[SAMPLES * AREA];
static int32_t labels[SAMPLES], order[SAMPLES];
static const float rates[STEPS] = {0.1f, 0.08f, 0.06f, 0.04f, 0.02f};

static void make_data(void)
{
    fill_samples(samples, labels, order, SAMPLES);
}

static sdlf_feed make_feed(void)
{
    return feed_of(samples, labels, SAMPLES);
}

static uint32_t train_by_writing(sdlf_calculator *calculator, sdlf_metrics *metrics)
{
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    CHECK_OK(
        sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator}));
    uint32_t hash = 0;
    for (int step = 0; plan != NULL && step < STEPS; step++) {
        float batch[BATCH * AREA];
        int32_t batch_labels[BATCH];
        for (int n = 0; n < BATCH; n++) {
            int32_t sample = order[step * BATCH + n];
            batch_labels[n] = labels[sample];
            for (int i = 0; i < AREA; i++) batch[n * AREA + i] = ((float)samples[sample * AREA + i] - 100) * 0.01f;
        }
        CHECK_OK(test_plan_write(plan, "image", batch));
        CHECK_OK(test_plan_write(plan, "labels", batch_labels));
        CHECK_OK(sdlf_plan_step(plan, rates[step]));
    }
    if (plan != NULL) {
        CHECK_OK(sdlf_plan_metrics(plan, metrics));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        hash = sdlf_model_hash(net);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return hash;
}

static uint32_t train_by_feeding(sdlf_calculator *calculator, int staged, sdlf_metrics *metrics)
{
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_feed feed = make_feed();
    feed.staged = staged;
    CHECK_OK(sdlf_plan_create(
        &plan, net, &(sdlf_plan_options){.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .feed = &feed}));
    uint32_t hash = 0;
    if (plan != NULL) {
        sdlf_epoch epoch = {.order = order, .order_count = SAMPLES, .rates = rates};
        CHECK_OK(sdlf_plan_begin_epoch(plan, &epoch));
        CHECK_OK(sdlf_plan_run(plan, 2));
        CHECK_FAILS(sdlf_plan_run(plan, INT64_MAX), SDLF_ERROR_ARGUMENT, "3 of the epoch are left");
        CHECK_OK(sdlf_plan_time(plan, 2)); /* in the middle: then continue from there */
        CHECK_FAILS(sdlf_plan_run(plan, 1), SDLF_ERROR_ARGUMENT, "0 of the epoch are left");
        epoch.first = 2;
        CHECK_OK(sdlf_plan_begin_epoch(plan, &epoch));
        CHECK_EQUAL(sdlf_plan_step_number(plan), 2);
        int64_t before = test_allocations();
        CHECK_OK(sdlf_plan_run(plan, 1));
        CHECK_EQUAL(test_allocations(), before);
        CHECK_OK(sdlf_plan_run(plan, 2));
        CHECK_EQUAL(sdlf_plan_step_number(plan), STEPS);
        CHECK_FAILS(sdlf_plan_run(plan, 1), SDLF_ERROR_ARGUMENT, "0 of the epoch are left");
        CHECK_FAILS(sdlf_plan_step(plan, 0.1f), SDLF_ERROR_ARGUMENT, "feed");
        CHECK_FAILS(sdlf_plan_forward(plan), SDLF_ERROR_ARGUMENT, "feed");
        CHECK_OK(sdlf_plan_metrics(plan, metrics));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        hash = sdlf_model_hash(net);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return hash;
}

/* With all data on the device, or a few batches at a time. */
static void feeding_equals_writing(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL));
        sdlf_metrics written = {0}, fed = {0};
        uint32_t expected = train_by_writing(calculator, &written);
        for (int staged = 0; staged < 2 * SDLF_MAX_STAGED; staged++) {
            test_guarded_late(staged % 2 == 0 ? SDLF_QUEUE_COMPUTE : SDLF_QUEUE_TRANSFER);
            CHECK_EQUAL(train_by_feeding(calculator, staged / 2, &fed), expected);
            CHECK_CLOSE(fed.loss_sum, written.loss_sum, 0);
            CHECK_CLOSE(fed.samples, STEPS * BATCH, 0);
        }
        test_guarded_late(SDLF_QUEUE_COMPUTE);
        sdlf_calculator_close(calculator);
    }
}

/* Without queues, the host waits for each batch. */
static void staging_works_without_queues(void)
{
    sdlf_calculator_class plain = *test_guarded_class();
    plain.queues = NULL;
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, "guarded", NULL));
    calculator->type = &plain;
    sdlf_metrics written = {0}, fed = {0};
    uint32_t expected = train_by_writing(calculator, &written);
    CHECK_EQUAL(train_by_feeding(calculator, 3, &fed), expected);
    CHECK_CLOSE(fed.loss_sum, written.loss_sum, 0);
    sdlf_calculator_close(calculator);
}

/* Two epochs of the data after the first SKIP samples; the plan shuffles, or gets the resulting order. */
static uint32_t train_shuffled(sdlf_calculator *calculator, int staged, bool told)
{
    enum { SKIP = 3, COUNT = SAMPLES - SKIP };
    const uint64_t seed = UINT64_C(5) << 40 | 9;
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_feed feed = make_feed();
    feed.augment = (sdlf_augmentation){.shift = 1, .rotate = 20, .seed = 4};
    feed.seed = seed;
    feed.skip = SKIP;
    feed.staged = staged;
    CHECK_OK(sdlf_plan_create(
        &plan, net, &(sdlf_plan_options){.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .feed = &feed}));
    for (int64_t epoch = 6; plan != NULL && epoch < 8; epoch++) {
        int32_t whole[SAMPLES];
        uint64_t keys[SAMPLES];
        sdlf_shuffle_order(whole, keys, SAMPLES, seed, (uint32_t)epoch);
        sdlf_epoch drawn = {
            .order = told ? whole + SKIP : NULL, .order_count = COUNT, .rates = rates, .epoch = epoch, .first = 1};
        CHECK_OK(sdlf_plan_begin_epoch(plan, &drawn));
        CHECK_OK(sdlf_plan_run(plan, COUNT / BATCH - 1));
        drawn.order_count = SAMPLES;
        CHECK_FAILS(sdlf_plan_begin_epoch(plan, &drawn), SDLF_ERROR_ARGUMENT, "23 of 20");
    }
    if (plan != NULL) CHECK_OK(sdlf_plan_store_parameters(plan));
    uint32_t hash = sdlf_model_hash(net);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return hash;
}

static void plans_shuffle_by_themselves(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL));
        uint32_t expected = train_shuffled(calculator, 0, true);
        CHECK_EQUAL(train_shuffled(calculator, 0, false), expected);
        CHECK_EQUAL(train_shuffled(calculator, 2, true), expected);
        CHECK_EQUAL(train_shuffled(calculator, 2, false), expected);
        sdlf_calculator_close(calculator);
    }
}

static void bad_feeds_are_refused(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_feed feed = make_feed();
    sdlf_plan_options options = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = reference, .feed = &feed};
    feed.samples = "picture";
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "no input 'picture'");
    feed = make_feed();
    feed.sample_data.shape.dim[2] = 5;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_SHAPE, "4x1x6x6");
    feed = make_feed();
    feed.label_data.shape.dim[0] = 7;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_SHAPE, "23 samples and 7 labels");
    feed = make_feed();
    options.batch = 24;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "less than a batch");
    options.batch = BATCH;
    feed.skip = SAMPLES - BATCH + 1;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "3 samples are less than a batch of 4");
    feed = make_feed();
    feed.staged = SDLF_MAX_STAGED + 1;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "9 batches cannot be staged");
    feed = make_feed();
    options.mode = SDLF_INFER;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "training plan");
    options.mode = SDLF_TRAIN;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    if (plan != NULL) {
        int32_t wrong[BATCH] = {0, 1, SAMPLES, 2};
        CHECK_FAILS(sdlf_plan_begin_epoch(plan, &(sdlf_epoch){.order = wrong, .order_count = BATCH, .rates = rates}),
                    SDLF_ERROR_ARGUMENT, "sample 23");
        CHECK_FAILS(sdlf_plan_begin_epoch(plan, &(sdlf_epoch){.order = order, .order_count = 24, .rates = rates}),
                    SDLF_ERROR_ARGUMENT, "24 of 23");
        CHECK_FAILS(sdlf_plan_run(plan, 1), SDLF_ERROR_ARGUMENT, "0 of the epoch");
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

int main(void)
{
    make_data();
    RUN(feeding_equals_writing);
    RUN(staging_works_without_queues);
    RUN(plans_shuffle_by_themselves);
    RUN(bad_feeds_are_refused);
    return test_summary();
}
