/* SPDX-License-Identifier: MIT */
/* Values without elements: outputs that cost nothing, on every calculator; no layer accepts one. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

/* y = relu(x) of two elements per sample, and an output of shape 0x3. */
static sdlf_model *network(void)
{
    sdlf_model *net = sdlf_model_create("hollow");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(2));
    sdlf_output(net, "y", sdlf_relu(net, x));
    sdlf_output(net, "nothing", sdlf_value(net, &(sdlf_value_options){.shape = sdlf_shape(0, 3), .dtype = 2}));
    return net;
}

static void run_on(const sdlf_calculator_class *type)
{
    sdlf_model *net = network();
    sdlf_calculator *calculator = test_open(type->name);
    sdlf_plan *plan = NULL;
    sdlf_binding binding = {.calculator = NULL};
    const float x[] = {-1, 2, 3, -4};
    float y[4];
    char nothing = 'n';
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 2, .forward = calculator}));
    CHECK_OK(test_plan_write(plan, "x", x));
    for (int run = 0; run < 3; run++) CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
    CHECK(y[0] == 0 && y[1] == 2 && y[2] == 3 && y[3] == 0);
    CHECK_OK(sdlf_plan_output(plan, "nothing", &binding));
    CHECK_TEXT(sdlf_shape_print(binding.tensor.shape).text, "0x3");
    CHECK_EQUAL(binding.tensor.dtype, SDLF_INT64);
    CHECK(binding.calculator == calculator);
    CHECK_OK(test_plan_read(plan, "nothing", &nothing));
    CHECK_EQUAL(nothing, 'n');
    CHECK_EQUAL(sdlf_model_parameter_count(net), 0);
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(net);
}

static void every_calculator(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) run_on(test_calculator_class_at(i));
}

/* A network of nothing else has no steps. */
static void alone(void)
{
    sdlf_model *net = sdlf_model_create("nothing");
    sdlf_calculator *calculator = test_open("cpu");
    sdlf_plan *plan = NULL;
    sdlf_output(net, "nothing", sdlf_value(net, &(sdlf_value_options){.shape = sdlf_shape(0)}));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    CHECK_EQUAL(sdlf_plan_step_count(plan), 0);
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "nothing", &(char){0}));
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(net);
}

static void no_layer_takes_it(void)
{
    sdlf_model *net = sdlf_model_create("hollow");
    sdlf_node empty = sdlf_value(net, &(sdlf_value_options){.shape = sdlf_shape(2, 0)});
    sdlf_output(net, "sum", sdlf_reduce(net, empty, &(sdlf_reduce_options){.function = SDLF_REDUCE_LAYER_SUM}));
    CHECK_FAILS(sdlf_model_build(net, 1), SDLF_ERROR_SHAPE, "input 0 has no elements: its shape is 2x0; from value");
    sdlf_model_free(net);
}

static void in_a_network_file(void)
{
    sdlf_model *net = network(), *again = NULL;
    char *text = NULL;
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_network_write(net, &text));
    CHECK_OK(sdlf_network_parse(&again, text, strlen(text), "hollow.json"));
    CHECK_OK(sdlf_model_build(again, 1));
    CHECK_TEXT(sdlf_shape_print(sdlf_model_node_shape(again, sdlf_model_output(again, 1))).text, "0x3");
    free(text);
    sdlf_model_free(again);
    sdlf_model_free(net);
}

static void as_onnx(void)
{
    sdlf_model *net = network(), *again = NULL;
    const char *path = test_path("hollow.onnx");
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_FAILS(sdlf_model_to_c(net, test_path("hollow.c"), NULL, NULL), SDLF_ERROR_UNSUPPORTED, "shape 0x3 is empty");
    sdlf_status status = sdlf_model_to_onnx(net, path, NULL, NULL);
    if (status == SDLF_ERROR_UNSUPPORTED) {
        test_skip(sdlf_error_message());
    } else if (CHECK_OK(status) && CHECK_OK(sdlf_model_from_onnx(&again, path, NULL))) {
        CHECK_TEXT(sdlf_model_output_name(again, 1), "nothing");
        CHECK_TEXT(sdlf_shape_print(sdlf_model_node_shape(again, sdlf_model_output(again, 1))).text, "0x3");
    }
    sdlf_model_free(again);
    sdlf_model_free(net);
}

int main(void)
{
    RUN(every_calculator);
    RUN(alone);
    RUN(no_layer_takes_it);
    RUN(in_a_network_file);
    RUN(as_onnx);
    return test_summary();
}
