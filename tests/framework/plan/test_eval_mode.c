/* SPDX-License-Identifier: MIT */
/* Gradients in eval mode: outputs are those of inference, statistics are unchanged, and gradients are those of the
 * inference function. */
#include <math.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

enum { BATCH = 3, AREA = 36, CLASSES = 3 };

static sdlf_model *make_net(void)
{
    sdlf_model *net = sdlf_model_create("normed");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .padding = {1, 1}});
    x = sdlf_batch_norm2d(net, x, NULL);
    x = sdlf_tanh(net, x);
    x = sdlf_dropout(net, x, &(sdlf_dropout_options){.probability = 0.5f});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = CLASSES});
    sdlf_output(net, "class", x);
    CHECK_OK(sdlf_model_build(net, 3));
    float *mean = sdlf_model_find_parameter(net, "batch_norm2d.running_mean")->value.data;
    float *variance = sdlf_model_find_parameter(net, "batch_norm2d.running_var")->value.data;
    for (int i = 0; i < 4; i++) mean[i] = 0.1f * (float)(i - 2), variance[i] = 0.5f + 0.4f * (float)i;
    return net;
}

static float image[BATCH * AREA];
static const int32_t labels[BATCH] = {2, 0, 1};

static double loss_of(sdlf_plan *plan)
{
    sdlf_metrics metrics;
    CHECK_OK(sdlf_plan_clear_metrics(plan));
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(test_plan_write(plan, "labels", labels));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(sdlf_plan_metrics(plan, &metrics));
    return metrics.loss_sum / BATCH;
}

/* The numerical derivative of the loss with respect to some elements of a parameter. */
static void check_gradient(sdlf_plan *plan, sdlf_model *net, const char *name)
{
    static const int elements[] = {0, 1, 2};
    float gradient[4 * AREA * CLASSES];
    sdlf_binding binding;
    loss_of(plan);
    CHECK_OK(sdlf_plan_backward(plan));
    CHECK_OK(sdlf_plan_synchronize(plan));
    if (!CHECK_OK(sdlf_plan_gradient(plan, name, &binding)) || !test_download(&binding, gradient)) return;
    float *value = sdlf_model_find_parameter(net, name)->value.data;
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        const float step = 1e-2f, before = value[elements[i]];
        value[elements[i]] = before + step;
        CHECK_OK(sdlf_plan_load_parameters(plan));
        double above = loss_of(plan);
        value[elements[i]] = before - step;
        CHECK_OK(sdlf_plan_load_parameters(plan));
        double below = loss_of(plan);
        value[elements[i]] = before;
        CHECK_OK(sdlf_plan_load_parameters(plan));
        CHECK_CLOSE((double)gradient[elements[i]], (above - below) / (2 * (double)step), 2e-3);
    }
}

static void gradients_are_those_of_inference(void)
{
    static const char *const names[] = {"conv2d.weight", "conv2d.bias", "batch_norm2d.weight", "batch_norm2d.bias",
                                        "fully_connected.bias"};
    const sdlf_calculator_class *type;
    for (int i = 0; i < BATCH * AREA; i++) image[i] = sinf((float)i);
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) {
        sdlf_calculator *calculator = test_open(type->name);
        sdlf_model *net = make_net();
        sdlf_plan *plan = NULL, *inference = NULL;
        float found[BATCH * CLASSES], expected[BATCH * CLASSES];
        uint32_t hash = sdlf_model_hash(net);
        CHECK_OK(sdlf_plan_create(&inference, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator}));
        CHECK_OK(sdlf_plan_create(&plan, net,
                                  &(sdlf_plan_options){.batch = BATCH,
                                                       .mode = SDLF_TRAIN,
                                                       .forward = calculator,
                                                       .gradients_only = true,
                                                       .keep_activations = true,
                                                       .eval_mode = true}));
        loss_of(plan);
        CHECK_OK(test_plan_read(plan, "class", found));
        CHECK_OK(test_plan_write(inference, "image", image));
        CHECK_OK(sdlf_plan_forward(inference));
        CHECK_OK(test_plan_read(inference, "class", expected));
        for (int k = 0; k < BATCH * CLASSES; k++) CHECK_CLOSE((double)found[k], (double)expected[k], 1e-4);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) check_gradient(plan, net, names[k]);
        CHECK_OK(sdlf_plan_store_parameters(plan));
        CHECK_EQUAL(sdlf_model_hash(net), hash); /* running statistics, too */
        sdlf_plan_free(plan);
        sdlf_plan_free(inference);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

static void is_of_gradients_alone(void)
{
    sdlf_calculator *calculator = test_open("reference");
    sdlf_model *net = make_net();
    sdlf_plan *plan = NULL;
    CHECK_FAILS(
        sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator, .eval_mode = true}),
        SDLF_ERROR_ARGUMENT, "eval_mode is for training plans with gradients_only");
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

/* The peak of live memory fits the arena, and less is live at the end. */
static void steps_tell_what_is_live(void)
{
    sdlf_calculator *calculator = test_open("reference");
    sdlf_model *net = make_net();
    sdlf_plan *plan = NULL;
    CHECK_OK(
        sdlf_plan_outline(&plan, net, &(sdlf_plan_options){.batch = 64, .mode = SDLF_TRAIN, .forward = calculator}));
    int64_t most = 0, arena = sdlf_plan_memory(plan).arena, output = 64 * 4 * AREA * (int64_t)sizeof(float);
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        CHECK(step.live > 0 && step.live <= arena);
        most = step.live > most ? step.live : most;
    }
    CHECK(most >= 2 * output); /* the convolution's output and its gradient are both live in the backward pass */
    CHECK(sdlf_plan_step_info(plan, sdlf_plan_step_count(plan) - 1).live < most);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

int main(void)
{
    RUN(gradients_are_those_of_inference);
    RUN(is_of_gradients_alone);
    RUN(steps_tell_what_is_live);
    return test_summary();
}
