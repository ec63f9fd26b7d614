/* SPDX-License-Identifier: MIT */
/* Recorded steps (graph capture): the same bits as separate calls, with one or several steps per recording; the message
 * if recording fails; markers after queued steps. */
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { SAMPLES = 150, BATCH = 2, AREA = 36, STEPS = SAMPLES / BATCH };

static uint8_t samples[SAMPLES * AREA];
static int32_t labels[SAMPLES], order[SAMPLES];
static float rates[STEPS];

static void make_data(void)
{
    fill_samples(samples, labels, order, SAMPLES);
    for (int i = 0; i < STEPS; i++) rates[i] = 0.05f / (float)(1 + i % 7);
}

static sdlf_model *dropping_cnn(void)
{
    sdlf_model *net = sdlf_model_create("dropping");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .padding = {1, 1}});
    x = sdlf_batch_norm2d(net, x, NULL);
    x = sdlf_relu(net, x);
    x = sdlf_dropout(net, x, &(sdlf_dropout_options){.probability = 0.3f});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

static sdlf_feed make_feed(void)
{
    sdlf_feed feed = feed_of(samples, labels, SAMPLES);
    feed.augment = (sdlf_augmentation){.shift = 1, .seed = 3};
    return feed;
}

/* The weights after an epoch whose steps are run in uneven groups. */
static uint32_t feed(sdlf_calculator *calculator, sdlf_model *net, bool no_recording, sdlf_metrics *metrics)
{
    static const int portions[] = {1, 1, 17, 33, 5, 18};
    sdlf_plan *plan = NULL;
    sdlf_feed data = make_feed();
    sdlf_plan_options options = {.batch = BATCH,
                                 .mode = SDLF_TRAIN,
                                 .forward = calculator,
                                 .feed = &data,
                                 .no_recording = no_recording,
                                 .optimizer = sdlf_adamw(.weight_decay = 0.01f)};
    if (!CHECK_OK(sdlf_plan_create(&plan, net, &options))) return 0;
    sdlf_epoch epoch = {.order = order, .order_count = SAMPLES, .rates = rates, .epoch = 2};
    CHECK_OK(sdlf_plan_begin_epoch(plan, &epoch));
    for (size_t i = 0; i < sizeof portions / sizeof portions[0]; i++) CHECK_OK(sdlf_plan_run(plan, portions[i]));
    CHECK_FAILS(sdlf_plan_run(plan, 1), SDLF_ERROR_ARGUMENT, "0 of the epoch are left");
    CHECK_OK(sdlf_plan_metrics(plan, metrics));
    CHECK_OK(sdlf_plan_store_parameters(plan));
    sdlf_plan_free(plan);
    return sdlf_model_hash(net);
}

/* Its tanh is computed in place, so that running it twice changes the result. */
static sdlf_model *in_place_cnn(void)
{
    sdlf_model *net = sdlf_model_create("in_place");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .padding = {1, 1}});
    x = sdlf_tanh(net, x);
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* Inference steps are timed as recorded units: each gets a time, and outputs are unchanged. */
static void timing_leaves_outputs_alone(void)
{
    float image[2 * AREA], found[2][6];
    fill_random(image, 2 * AREA, 9);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        sdlf_plan *plan = NULL;
        sdlf_model *net = in_place_cnn();
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        const sdlf_plan_options options = {.batch = 2, .forward = calculator, .no_fusion = true};
        if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
            for (int run = 0; run < 2; run++) {
                CHECK_OK(test_plan_write(plan, "image", image));
                CHECK_OK(run == 0 ? sdlf_plan_forward(plan) : sdlf_plan_time(plan, 3));
                CHECK_OK(test_plan_read(plan, "class", found[run]));
            }
            CHECK(memcmp(found[0], found[1], sizeof found[0]) == 0);
            for (int s = 0; s < sdlf_plan_step_count(plan); s++) CHECK(sdlf_plan_step_info(plan, s).seconds > 0);
        }
        sdlf_plan_free(plan);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

static void recorded_equals_called(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        for (int which = 0; which < 2; which++) {
            uint32_t hash[3];
            sdlf_metrics metrics[3];
            for (int run = 0; run < 3; run++) { /* called, recorded, and recorded again */
                sdlf_model *net = which == 0 ? small_cnn() : dropping_cnn();
                hash[run] = feed(calculator, net, run == 0, &metrics[run]);
                sdlf_model_free(net);
            }
            for (int run = 1; run < 3; run++) {
                CHECK_EQUAL(hash[run], hash[0]);
                CHECK_CLOSE(metrics[run].loss_sum, metrics[0].loss_sum, 0);
                CHECK_CLOSE(metrics[run].correct, metrics[0].correct, 0);
            }
        }
        sdlf_calculator_close(calculator);
    }
}

static void inference_is_the_same_too(void)
{
    float image[2 * AREA], found[2][6];
    fill_random(image, 2 * AREA, 8);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        sdlf_model *net = dropping_cnn();
        for (int recorded = 0; recorded < 2; recorded++) {
            sdlf_plan *plan = NULL;
            sdlf_plan_options options = {.batch = 2, .forward = calculator, .no_recording = recorded == 0};
            if (!CHECK_OK(sdlf_plan_create(&plan, net, &options))) continue;
            for (int run = 0; run < 4; run++) {
                CHECK_OK(test_plan_write(plan, "image", image));
                CHECK_OK(sdlf_plan_forward(plan));
            }
            CHECK_OK(test_plan_read(plan, "class", found[recorded]));
            sdlf_plan_free(plan);
        }
        CHECK(memcmp(found[0], found[1], sizeof found[0]) == 0);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

/* A mark shows the results of steps queued before it, and nothing of those queued after. */
static void marks_look_between_steps(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        sdlf_model *net = small_cnn();
        sdlf_plan *plan = NULL;
        sdlf_feed data = make_feed();
        sdlf_metrics metrics;
        CHECK_OK(sdlf_plan_create(
            &plan, net,
            &(sdlf_plan_options){.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .feed = &data}));
        CHECK_OK(sdlf_plan_begin_epoch(plan, &(sdlf_epoch){.order = order, .order_count = SAMPLES, .rates = rates}));
        bool passed = false;
        CHECK_FAILS(sdlf_plan_wait_mark(plan, &metrics), SDLF_ERROR_ARGUMENT, "no mark");
        CHECK_FAILS(sdlf_plan_mark_passed(plan, &passed), SDLF_ERROR_ARGUMENT, "no mark");
        int64_t allocations = 0;
        for (int steps = 1; steps <= SDLF_PLAN_MARKS; steps++) {
            CHECK_OK(sdlf_plan_run(plan, steps));
            if (steps == 3) allocations = test_allocations(); /* libraries are set up, steps recorded */
            CHECK_OK(sdlf_plan_mark(plan));
        }
        CHECK_EQUAL(test_allocations(), allocations);
        CHECK_FAILS(sdlf_plan_mark(plan), SDLF_ERROR_ARGUMENT, "8 marks are pending");
        double last = 0;
        for (int steps = 1, all = 1; steps <= SDLF_PLAN_MARKS; all += ++steps) {
            for (passed = steps % 2 == 0; !passed;) /* after enough queries no wait is needed */
                if (!CHECK_OK(sdlf_plan_mark_passed(plan, &passed))) break;
            CHECK_OK(sdlf_plan_wait_mark(plan, &metrics));
            CHECK_CLOSE(metrics.samples, BATCH * all, 0);
            CHECK(metrics.loss_sum > last);
            last = metrics.loss_sum;
        }
        sdlf_metrics whole;
        CHECK_OK(sdlf_plan_metrics(plan, &whole));
        CHECK_CLOSE(whole.loss_sum, last, 0);
        CHECK_OK(sdlf_plan_mark(plan)); /* nobody waits for this one */
        sdlf_plan_free(plan);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

/* Creating a plan with a feed runs a step, without visible effects, even on state shared with another plan. */
static void warming_up_leaves_no_trace(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        uint32_t hash[2];
        for (int shared = 0; shared < 2; shared++) {
            sdlf_model *net = dropping_cnn();
            sdlf_plan *plan = NULL, *other = NULL;
            sdlf_feed data = make_feed();
            sdlf_metrics metrics;
            sdlf_plan_options options = {.batch = BATCH,
                                         .mode = SDLF_TRAIN,
                                         .forward = calculator,
                                         .feed = &data,
                                         .optimizer = sdlf_sgd(.momentum = 0.9f)};
            sdlf_epoch epoch = {.order_count = SAMPLES, .rates = rates};
            CHECK_OK(sdlf_plan_create(&plan, net, &options));
            CHECK_EQUAL(sdlf_plan_step_number(plan), 0);
            CHECK_FAILS(sdlf_plan_run(plan, 1), SDLF_ERROR_ARGUMENT, "0 of the epoch are left");
            CHECK_OK(sdlf_plan_metrics(plan, &metrics));
            CHECK_CLOSE(metrics.samples, 0, 0);
            CHECK_OK(sdlf_plan_begin_epoch(plan, &epoch));
            CHECK_OK(sdlf_plan_run(plan, 20));
            options.reuse = plan;
            options.batch = 1;
            if (shared) CHECK_OK(sdlf_plan_create(&other, net, &options));
            CHECK_OK(sdlf_plan_run(plan, 20));
            CHECK_OK(sdlf_plan_store_parameters(plan));
            hash[shared] = sdlf_model_hash(net);
            sdlf_plan_free(other);
            sdlf_plan_free(plan);
            sdlf_model_free(net);
        }
        CHECK_EQUAL(hash[1], hash[0]);
        sdlf_calculator_close(calculator);
    }
}

/* ---- failures ---- */

static bool recording;

static sdlf_status begin_breaking(sdlf_calculator *calculator)
{
    recording = true;
    return test_guarded_class()->record_begin(calculator);
}

static sdlf_status end_breaking(sdlf_calculator *calculator, void **result)
{
    recording = false;
    CHECK_OK(test_guarded_class()->record_end(calculator, result));
    return sdlf_fail(SDLF_ERROR_DEVICE, "the recording is of no use");
}

static sdlf_status break_while_recording(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (recording) return sdlf_fail(SDLF_ERROR_DEVICE, "a kernel broke");
    return test_guarded_class()->kernel[operation->kind].run(calculator, operation);
}

static void a_failed_recording_tells_the_cause(void)
{
    sdlf_calculator_class breaking = *test_guarded_class();
    breaking.record_begin = begin_breaking;
    breaking.record_end = end_breaking;
    breaking.kernel[SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD].run = break_while_recording;
    sdlf_calculator *calculator = NULL;
    if (!CHECK_OK(sdlf_calculator_open(&calculator, "guarded", NULL))) return;
    calculator->type = &breaking;
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_feed data = make_feed();
    sdlf_plan_options options = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .feed = &data};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_DEVICE, "a kernel broke");
    options.feed = NULL; /* then it is recorded when it has run once */
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_OK(sdlf_plan_step(plan, 0.1f));
    CHECK_FAILS(sdlf_plan_step(plan, 0.1f), SDLF_ERROR_DEVICE, "a kernel broke");
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

int main(void)
{
    make_data();
    RUN(recorded_equals_called);
    RUN(timing_leaves_outputs_alone);
    RUN(inference_is_the_same_too);
    RUN(marks_look_between_steps);
    RUN(a_failed_recording_tells_the_cause);
    RUN(warming_up_leaves_no_trace);
    return test_summary();
}
