/* SPDX-License-Identifier: MIT */
/* Inference plans that keep weights in derived forms do not run with stale ones. */
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { CLASSES = 3, IMAGE = 36 };

/* The normalisation is folded into the convolution, so that every calculator's plan has weights that differ from the
 * model's. */
static sdlf_model *normalized_net(void)
{
    sdlf_model *net = sdlf_model_create("normalized");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .padding = {1, 1}});
    x = sdlf_relu(net, sdlf_batch_norm2d(net, x, NULL));
    sdlf_output(net, "class",
                sdlf_softmax(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = CLASSES})));
    return net;
}

static void train(sdlf_plan *plan)
{
    float images[2 * IMAGE];
    const int32_t labels[2] = {1, 2};
    fill_random(images, 2 * IMAGE, 3);
    CHECK_OK(test_plan_write(plan, "image", images));
    CHECK_OK(test_plan_write(plan, "labels", labels));
    CHECK_OK(sdlf_plan_step(plan, 0.5f));
}

static void infer(sdlf_plan *plan, float *scores)
{
    float image[IMAGE];
    fill_random(image, IMAGE, 8);
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "class", scores));
}

/* True if the plan's result differs from that of a newly created plan. */
static bool differs_from_fresh(sdlf_plan *plan, sdlf_model *net, sdlf_calculator *calculator)
{
    float scores[CLASSES] = {0}, fresh[CLASSES] = {0};
    sdlf_plan *made = NULL;
    CHECK_OK(sdlf_plan_create(&made, net, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    if (made != NULL) infer(made, fresh);
    infer(plan, scores);
    sdlf_plan_free(made);
    return memcmp(scores, fresh, sizeof scores) != 0;
}

static void train_beside(sdlf_calculator *calculator, bool shared)
{
    sdlf_model *net = normalized_net();
    sdlf_plan *training = NULL, *inference = NULL;
    float scores[CLASSES];
    CHECK_OK(
        sdlf_plan_create(&training, net, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = calculator}));
    sdlf_plan_options options = {.batch = 1, .forward = calculator, .reuse = shared ? training : NULL};
    CHECK_OK(sdlf_plan_create(&inference, net, &options));
    CHECK(sdlf_plan_is_current(inference) && sdlf_plan_is_current(training));
    infer(inference, scores);
    train(training);
    CHECK(!sdlf_plan_is_current(inference) && sdlf_plan_is_current(training));
    CHECK_FAILS(sdlf_plan_forward(inference), SDLF_ERROR_ARGUMENT, "changed since this plan took them");
    CHECK_OK(sdlf_plan_store_parameters(training));
    CHECK_OK(sdlf_plan_load_parameters(inference));
    CHECK(sdlf_plan_is_current(inference));
    CHECK_OK(sdlf_plan_store_parameters(training)); /* the same as before */
    CHECK(sdlf_plan_is_current(inference));
    CHECK(!differs_from_fresh(inference, net, calculator));
    train(training); /* and again */
    CHECK_FAILS(sdlf_plan_forward(inference), SDLF_ERROR_ARGUMENT, "'normalized'");
    sdlf_plan_free(inference);
    sdlf_plan_free(training);
    sdlf_model_free(net);
}

static void training_makes_weights_old(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        train_beside(calculator, false);
        train_beside(calculator, true);
        sdlf_calculator_close(calculator);
    }
}

static void weights_files_make_weights_old(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = normalized_net();
    const char *path = test_path("other.safetensors");
    CHECK_OK(sdlf_model_build(net, 7));
    CHECK_OK(sdlf_model_save(net, path));
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    CHECK_OK(sdlf_model_load(net, path));
    CHECK_FAILS(sdlf_plan_forward(plan), SDLF_ERROR_ARGUMENT, "sdlf_plan_load_parameters");
    CHECK_OK(sdlf_plan_load_parameters(plan));
    CHECK(!differs_from_fresh(plan, net, reference));
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* A plan that reads the model's own values needs no refresh; nor does one without a training plan of the same model. */
static void values_in_place_are_never_old(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = small_cnn();
    sdlf_plan *training = NULL, *inference = NULL;
    float before[CLASSES] = {0}, after[CLASSES] = {0};
    CHECK_OK(
        sdlf_plan_create(&training, net, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = reference}));
    CHECK_OK(sdlf_plan_create(&inference, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    infer(inference, before);
    train(training);
    CHECK(sdlf_plan_is_current(inference));
    infer(inference, after);
    CHECK(memcmp(before, after, sizeof before) != 0);
    CHECK(!differs_from_fresh(inference, net, reference));
    sdlf_plan_free(inference);
    sdlf_plan_free(training);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* Gradient computations and forward passes that keep no statistics change no parameter. */
static void reading_makes_nothing_old(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = small_cnn();
    sdlf_plan *gradients = NULL, *wide = NULL;
    double scores[CLASSES];
    CHECK_OK(sdlf_plan_create(
        &gradients, net,
        &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .gradients_only = true, .forward = reference}));
    CHECK_OK(
        sdlf_plan_create(&wide, net, &(sdlf_plan_options){.batch = 1, .dtype = SDLF_FLOAT64, .forward = reference}));
    CHECK_OK(sdlf_plan_forward(gradients));
    CHECK_OK(sdlf_plan_backward(gradients));
    CHECK(sdlf_plan_is_current(wide));
    CHECK_OK(sdlf_plan_forward(wide));
    CHECK_OK(test_plan_read(wide, "class", scores));
    sdlf_plan_free(wide);
    sdlf_plan_free(gradients);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(training_makes_weights_old);
    RUN(weights_files_make_weights_old);
    RUN(values_in_place_are_never_old);
    RUN(reading_makes_nothing_old);
    return test_summary();
}
