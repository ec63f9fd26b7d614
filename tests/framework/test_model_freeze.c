/* SPDX-License-Identifier: MIT */
/* Frozen parameters: they keep their bits, and the other parameters are trained as before. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

enum { BATCH = 3, IMAGE = 2 * 8 * 8, PARAMETERS = 17 };

/* Every layer that has parameters, except graph_conv. */
static sdlf_model *make_network(void)
{
    sdlf_model *net = sdlf_model_create("all");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(2, 8, 8));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .padding = {1, 1}});
    x = sdlf_max_pool2d(net, sdlf_relu(net, x), &(sdlf_pool2d_options){.window = {2, 2}});
    x = sdlf_batch_norm2d(net, x, NULL);
    x = sdlf_group_norm(net, x, &(sdlf_group_norm_options){.groups = 2});
    x = sdlf_layer_norm(net, sdlf_tanh(net, x), NULL); /* which would cancel a shift */
    x = sdlf_conv_transpose2d(net, x, &(sdlf_conv_transpose2d_options){.filters = 2, .kernel = {2, 2}});
    sdlf_node slope =
        sdlf_value(net, &(sdlf_value_options){.name = "slope", .shape = sdlf_shape(2, 1, 1), .trainable = true});
    x = sdlf_binary(net, (const sdlf_node[]){x, slope}, 2, &(sdlf_binary_layer_options){.function = SDLF_LAYER_PRELU});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 6});
    x = sdlf_fully_connected(net, sdlf_relu(net, x), &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    CHECK_OK(sdlf_model_build(net, 3));
    CHECK_EQUAL(sdlf_model_parameter_count(net), PARAMETERS);
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) { /* no values of 0 or 1, so that all have an effect */
        const sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        for (int64_t e = 0; parameter->spec.trainable && e < sdlf_tensor_count(&parameter->value); e++)
            ((float *)parameter->value.data)[e] +=
                0.1f + (float)(sdlf_philox4x32(7, (uint64_t)e, (uint32_t)i, 0).word[0] >> 8) * 0x1p-26f;
    }
    return net;
}

static void step(sdlf_model *net, sdlf_calculator *calculator, float clip)
{
    sdlf_plan *plan = NULL;
    float image[BATCH * IMAGE];
    for (int i = 0; i < BATCH * IMAGE; i++)
        image[i] = (float)(sdlf_philox4x32(5, (uint64_t)i, 1, 0).word[0] >> 8) * 0x1p-23f - 1;
    sdlf_plan_options options = {.batch = BATCH,
                                 .mode = SDLF_TRAIN,
                                 .forward = calculator,
                                 .dtype = SDLF_FLOAT64,
                                 .clip_norm = clip,
                                 .optimizer = sdlf_sgd(.momentum = 0.9f)};
    if (!CHECK_OK(sdlf_plan_create(&plan, net, &options))) return;
    CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 2, 1}));
    double wide[BATCH * IMAGE];
    sdlf_convert(SDLF_FLOAT64, wide, SDLF_FLOAT32, image, BATCH * IMAGE);
    CHECK_OK(test_plan_write(plan, "image", wide));
    CHECK_OK(sdlf_plan_step(plan, 0.1f));
    CHECK_OK(sdlf_plan_store_parameters(plan));
    sdlf_plan_free(plan);
}

/* True if the parameter equals that of `other`, within a tolerance, since other operations may be fused. */
static bool same(sdlf_model *net, sdlf_model *other, int index, double tolerance)
{
    const float *a = sdlf_model_parameter(net, index)->value.data, *b = sdlf_model_parameter(other, index)->value.data;
    double worst = 0;
    for (int64_t i = 0; i < sdlf_tensor_count(&sdlf_model_parameter(net, index)->value); i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    return worst <= tolerance;
}

static void each_by_itself(const char *calculator_name)
{
    sdlf_calculator *calculator = test_open(calculator_name);
    sdlf_model *start = make_network(), *whole = make_network();
    step(whole, calculator, 0);
    for (int frozen = 0; frozen < PARAMETERS; frozen++) {
        sdlf_model *net = make_network();
        const char *name = sdlf_model_parameter(net, frozen)->name;
        if (sdlf_model_parameter(net, frozen)->spec.trainable) {
            CHECK(!same(whole, start, frozen, 1e-6)); /* else nothing is tested */
            CHECK_OK(sdlf_model_freeze(net, name, true));
            step(net, calculator, 0);
            for (int i = 0; i < PARAMETERS; i++)
                if (!CHECK(i == frozen ? same(net, start, i, 0) : same(net, whole, i, 1e-7)))
                    printf("    %s on %s: %s\n", name, calculator_name, sdlf_model_parameter(net, i)->name);
        }
        sdlf_model_free(net);
    }
    sdlf_model_free(whole);
    sdlf_model_free(start);
    sdlf_calculator_close(calculator);
}

static void each_by_itself_everywhere(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) each_by_itself(test_calculator_class_at(i)->name);
}

/* Freeze all but the last layer, to train a head; with clipping, whose norm covers only trained parameters. */
static void all_but_a_head(void)
{
    sdlf_calculator *calculator = test_open("cpu");
    sdlf_model *start = make_network(), *net = make_network();
    for (int i = 0; i < PARAMETERS - 2; i++)
        if (sdlf_model_parameter(net, i)->spec.trainable)
            CHECK_OK(sdlf_model_freeze(net, sdlf_model_parameter(net, i)->name, true));
    CHECK_EQUAL(sdlf_model_trainable_count(net), 6 * 3 + 3);
    step(net, calculator, 0.01f);
    for (int i = 0; i < PARAMETERS; i++) {
        const char *name = sdlf_model_parameter(net, i)->name;
        bool statistic = strstr(name, ".running_") != NULL;
        if (!CHECK(same(net, start, i, 0) == (i < PARAMETERS - 2 && !statistic))) printf("    %s\n", name);
    }
    sdlf_model_free(start);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

static bool is_trained(sdlf_model *net, const char *name)
{
    return sdlf_model_find_parameter(net, name)->spec.trainable;
}

/* Through files, and back again. */
static void files_keep_it(void)
{
    static const char *const names[] = {"conv2d.weight", "batch_norm2d.bias", "slope.value"};
    sdlf_model *net = make_network(), *again = NULL;
    for (int i = 0; i < 3; i++) CHECK_OK(sdlf_model_freeze(net, names[i], true));
    CHECK_OK(sdlf_model_freeze(net, "conv2d.weight", true)); /* freezing twice has no further effect */
    CHECK_OK(sdlf_model_save(net, test_path("frozen.safetensors")));
    CHECK_OK(sdlf_model_open(&again, test_path("frozen.safetensors")));
    for (int i = 0; i < 3; i++) CHECK(!is_trained(again, names[i]));
    CHECK(is_trained(again, "conv2d.bias"));
    for (int i = 0; i < 3; i++) CHECK_OK(sdlf_model_freeze(again, names[i], false));
    for (int i = 0; i < 3; i++) CHECK(is_trained(again, names[i]));
    sdlf_relu(again, (sdlf_node){1, 0}); /* and when it is built again */
    CHECK_OK(sdlf_model_freeze(again, "conv2d.bias", true));
    CHECK_OK(sdlf_model_build(again, 1));
    CHECK(!is_trained(again, "conv2d.bias") && is_trained(again, "conv2d.weight"));
    CHECK_OK(sdlf_model_build(again, 1));
    CHECK(!is_trained(again, "conv2d.bias") && is_trained(again, "conv2d.weight"));
    sdlf_model_free(again);
    sdlf_model_free(net);
}

static void check_file(const char *frozen, sdlf_status expected, const char *message)
{
    char text[300];
    sdlf_model *net = NULL;
    snprintf(
        text, sizeof text,
        "{\"input\": {\"name\": \"x\", \"shape\": [3]}, \"layers\": [{\"type\": \"fully_connected\", \"units\": 2, "
        "\"frozen\": %s}]}",
        frozen);
    sdlf_status status = sdlf_network_parse(&net, text, strlen(text), "net.json");
    if (status == SDLF_OK) status = sdlf_model_build(net, 1);
    if (expected == SDLF_OK)
        CHECK_OK(status);
    else
        CHECK_FAILS(status, expected, message);
    sdlf_model_free(net);
}

static void mistakes_are_told(void)
{
    sdlf_model *net = make_network();
    sdlf_calculator *calculator = test_open("reference");
    sdlf_plan *plan = NULL;
    CHECK_FAILS(sdlf_model_freeze(net, "conv2d.wait", true), SDLF_ERROR_ARGUMENT, "no parameter 'conv2d.wait'");
    CHECK_FAILS(sdlf_model_freeze(net, "batch_norm2d.running_mean", true), SDLF_ERROR_ARGUMENT,
                "not trained in any case");
    CHECK_FAILS(sdlf_model_freeze(net, "batch_norm2d.running_mean", false), SDLF_ERROR_ARGUMENT,
                "not trained in any case");
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    CHECK_FAILS(sdlf_model_freeze(net, "conv2d.weight", true), SDLF_ERROR_ARGUMENT, "in use by a plan");
    sdlf_plan_free(plan);
    check_file("[\"weight\", \"bias\"]", SDLF_OK, NULL);
    check_file("[]", SDLF_OK, NULL);
    check_file("[\"wait\"]", SDLF_ERROR_ARGUMENT, "has no parameter 'wait' to freeze");
    check_file("\"weight\"", SDLF_ERROR_FORMAT, "'frozen' must be a list of parameters");
    check_file("[3]", SDLF_ERROR_FORMAT, "'frozen' must be a list of parameters");
    sdlf_calculator_close(calculator);
    sdlf_model_free(net);
}

static sdlf_status freeze_and_write(void *argument)
{
    char *text = NULL;
    sdlf_model *net = sdlf_model_create("net"), *again = NULL;
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(3));
    sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 2});
    sdlf_status status = sdlf_model_build(net, 1);
    if (status == SDLF_OK) status = sdlf_model_freeze(net, "fully_connected.weight", true);
    if (status == SDLF_OK) status = sdlf_network_write(net, &text);
    if (status == SDLF_OK) status = sdlf_network_parse(&again, text, strlen(text), NULL);
    (void)argument;
    free(text);
    sdlf_model_free(again);
    sdlf_model_free(net);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    test_every_allocation("a frozen parameter", freeze_and_write, NULL);
}

int main(void)
{
    RUN(each_by_itself_everywhere);
    RUN(all_but_a_head);
    RUN(files_keep_it);
    RUN(mistakes_are_told);
    RUN(no_allocation_is_unchecked);
    return test_summary();
}
