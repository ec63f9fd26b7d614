/* SPDX-License-Identifier: MIT */
/* Training plans learn on every calculator, and memory does not grow while they run. */
#include <sys/resource.h>

#include "framework/plan/networks.h"
#include "testing.h"

/* Train on four fixed samples; the loss must fall and the metrics must count. */
static void training_learns(sdlf_model *net, const char *calculator_name, bool no_fusion, sdlf_optimizer optimizer,
                            float clip)
{
    sdlf_calculator *calculator = test_open(calculator_name);
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net,
                              &(sdlf_plan_options){.batch = 4,
                                                   .mode = SDLF_TRAIN,
                                                   .forward = calculator,
                                                   .no_fusion = no_fusion,
                                                   .optimizer = optimizer,
                                                   .clip_norm = clip}));
    if (plan != NULL) {
        float image[4 * 36];
        int32_t labels[4] = {0, 1, 2, 1};
        fill_random(image, 144, 7);
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(test_plan_write(plan, "labels", labels));
        float first = 0, last = 0;
        int64_t before = 0;
        for (int step = 0; step < 60; step++) {
            CHECK_OK(sdlf_plan_step(plan, 0.02f));
            if (step == 0) {
                CHECK_OK(test_plan_read(plan, "loss", &first));
                before = test_allocations();
            }
        }
        CHECK_EQUAL(test_allocations(), before); /* steps allocate nothing */
        CHECK_OK(test_plan_read(plan, "loss", &last));
        CHECK(last < 0.6f * first);
        sdlf_metrics metrics;
        CHECK_OK(sdlf_plan_metrics(plan, &metrics));
        CHECK_CLOSE(metrics.samples, 240, 0);
        CHECK(metrics.correct > 120 && metrics.correct <= 240);
        CHECK_OK(sdlf_plan_clear_metrics(plan));
        CHECK_OK(sdlf_plan_metrics(plan, &metrics));
        CHECK_CLOSE(metrics.samples, 0, 0);
        CHECK_EQUAL(sdlf_plan_step_number(plan), 60);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

/* Its scores are (N,3,1,1). */
static sdlf_model *convolutional_head(void)
{
    sdlf_model *net = sdlf_model_create("convolutional_head");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 8, .kernel = {3, 3}, .stride = {2, 2}});
    x = sdlf_relu(net, x);
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 3, .kernel = {2, 2}});
    sdlf_output(net, "class", sdlf_global_avg_pool2d(net, x));
    return net;
}

static void training_learns_everywhere(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const char *name = test_calculator_class_at(i)->name;
        training_learns(small_cnn(), name, false, sdlf_sgd(.momentum = 0.9f), 0);
        training_learns(small_cnn(), name, true, sdlf_sgd(.momentum = 0.9f), 0);
        training_learns(small_cnn(), name, false, sdlf_sgd(.momentum = 0.9f), 1.0f);
        training_learns(small_cnn(), name, false, sdlf_adam(.beta1 = 0.9f), 0);
        training_learns(convolutional_head(), name, false, sdlf_adam(.beta1 = 0.9f), 0);
    }
}

static long peak_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void nothing_grows_over_a_thousand_steps(void)
{
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 4, .mode = SDLF_TRAIN, .forward = cpu}));
    float image[4 * 36];
    fill_random(image, 144, 9);
    if (plan != NULL) CHECK_OK(test_plan_write(plan, "image", image));
    if (plan != NULL) CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 1, 2, 1}));
    long before = 0;
    int64_t live = 0;
    for (int step = 0; plan != NULL && step < 1050; step++) {
        CHECK_OK(sdlf_plan_step(plan, 0.01f));
        if (step != 50) continue;
        before = peak_kilobytes();
        live = test_live_allocations();
    }
    CHECK_EQUAL(test_live_allocations(), live);
    CHECK(peak_kilobytes() - before < 1024);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

int main(void)
{
    RUN(training_learns_everywhere);
    RUN(nothing_grows_over_a_thousand_steps);
    return test_summary();
}
