/* ONNX files of any form, given to the commands that take networks. */
#include "testing.h"

#include <stdio.h>

#include <sdlf/sdlf.h>

#include "apps/fixtures.h"
#include "apps/program.h"
#include "framework/input_layer.h"
#include "onnx/fixtures.h"

static sdlf_node whole_input(sdlf_model *model, sdlf_shape shape)
{
    return sdlf_model_add(model, &sdlf_input_layer_class,
                          &(sdlf_input_options){.name = "x", .dtype = SDLF_FLOAT32, .shape = shape, .whole = true},
                          NULL, 0);
}

/* Networks that take no pictures, and give no scores, are refused by the commands that want both, and by no crash. */
static void networks_of_any_form(void)
{
    char nothing[600], scalar[600], four[600], index[600], one[600];
    snprintf(nothing, sizeof nothing, "%s", test_path("nothing.onnx"));
    snprintf(scalar, sizeof scalar, "%s", test_path("scalar.onnx"));
    snprintf(four, sizeof four, "%s", test_path("four.onnx"));
    snprintf(index, sizeof index, "%s", test_path("index.onnx"));
    snprintf(one, sizeof one, "%s", test_path("class.onnx"));
    sdlf_model *m = sdlf_model_create("nothing");
    sdlf_output(m, "y", sdlf_relu(m, sdlf_value(m, &(sdlf_value_options){.name = "v", .shape = sdlf_shape(1, 10)})));
    save_as_onnx(m, nothing);
    m = sdlf_model_create("scalar");
    sdlf_output(m, "y", sdlf_relu(m, whole_input(m, SDLF_SCALAR)));
    save_as_onnx(m, scalar);
    m = sdlf_model_create("four");
    sdlf_output(m, "y",
                sdlf_fully_connected(m, whole_input(m, sdlf_shape(4, 1, 28, 28)),
                                     &(sdlf_fully_connected_options){.units = 10}));
    save_as_onnx(m, four);
    m = sdlf_model_create("index");
    sdlf_node x = sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(1, 28, 28));
    x = sdlf_fully_connected(m, x, &(sdlf_fully_connected_options){.units = 10});
    sdlf_output(m, "y", sdlf_arg_reduce(m, x, &(sdlf_arg_reduce_layer_options){.axis = 1, .keep = true}));
    save_as_onnx(m, index);
    m = sdlf_model_create("class");
    x = sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(1, 28, 28));
    sdlf_output(m, "y", sdlf_fully_connected(m, x, &(sdlf_fully_connected_options){.units = 1}));
    save_as_onnx(m, one);
#define PREDICT(model) "predict", "--weights", model, SDLF_PICTURE
    CHECK_SAYS(SDLF(1, PREDICT(nothing)), "has 0 inputs");
    CHECK_SAYS(SDLF(1, PREDICT(scalar)), "gives float32 scalar, and classes were expected");
    CHECK_SAYS(SDLF(1, PREDICT(four)), "4x1x28x28, and one picture of float32 was expected");
    CHECK_SAYS(SDLF(1, PREDICT(index)), "gives int64 1x1, and classes were expected");
    CHECK_SAYS(SDLF(1, "eval", "--data", "digits:60", "--weights", nothing), "has no input");
    CHECK_SAYS(SDLF(1, "eval", "--data", "digits:60", "--weights", scalar), "takes samples of scalar");
    CHECK_SAYS(SDLF(1, "train", "--no-save", "--data", "digits:60", "--net", scalar), "network 'scalar'");
    SDLF(0, "parity", "--mode", "infer", "--batch", "2", "--net", nothing);
    SDLF(0, "parity", "--mode", "infer", "--batch", "2", "--net", scalar);
    CHECK_SAYS(SDLF(0, "parity", "--batch", "2", "--net", one), "on random numbers");
    CHECK_SAYS(SDLF(1, "parity", "--batch", "2", "--net", one, "--data", "digits:60"), "fewer classes");
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(networks_of_any_form);
    return test_summary();
}
