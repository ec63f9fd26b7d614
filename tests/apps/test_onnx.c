/* SPDX-License-Identifier: MIT */
/* ONNX files of any kind, given to the commands that accept networks. */
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

/* Networks without image inputs or class scores are rejected, without a crash, by the commands that need both. */
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
    CHECK_SAYS(SDLF(1, PREDICT(scalar)), "outputs float32 scalar, expected classes");
    CHECK_SAYS(SDLF(1, PREDICT(four)), "4x1x28x28, expected one picture of float32");
    CHECK_SAYS(SDLF(1, PREDICT(index)), "outputs int64 1x1, expected classes");
    CHECK_SAYS(SDLF(1, "eval", "--data", "digits:60", "--weights", nothing), "has no input");
    CHECK_SAYS(SDLF(1, "eval", "--data", "digits:60", "--weights", scalar), "takes samples of scalar");
    CHECK_SAYS(SDLF(1, "train", "--no-save", "--data", "digits:60", "--net", scalar), "network 'scalar'");
    SDLF(0, "parity", "--mode", "infer", "--batch", "2", "--net", nothing);
    SDLF(0, "parity", "--mode", "infer", "--batch", "2", "--net", scalar);
    CHECK_SAYS(SDLF(0, "parity", "--batch", "2", "--net", one), "on random numbers");
    CHECK_SAYS(SDLF(1, "parity", "--batch", "2", "--net", one, "--data", "digits:60"), "fewer classes");
}

/* Files of other types are rejected as not being models, whatever their names; the messages do not mention parts of
 * a model. */
static void files_that_are_no_models(void)
{
    static const char text[] = "root:x:0:0:root:/root:/bin/bash\n", picture[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    char plain[600], named[600], png[600], out[600];
    snprintf(plain, sizeof plain, "%s", test_path("passwd"));
    snprintf(named, sizeof named, "%s", test_path("passwd.onnx"));
    snprintf(png, sizeof png, "%s", test_path("picture.onnx"));
    snprintf(out, sizeof out, "%s", test_path("out.onnx"));
    test_write_file(plain, text, sizeof text - 1);
    test_write_file(named, text, sizeof text - 1);
    test_write_file(png, picture, sizeof picture - 1);
    const char *const doctor[] = {"doctor", NULL}, *const run[] = {"run", NULL},
                      *const bench[] = {"bench", "model", NULL}, *const net[] = {"info", "--net", NULL},
                      *const weights[] = {"info", "--weights", NULL}, *const export[] = {"export", "-o", out, NULL},
                      *const eval[] = {"eval", "--weights", NULL};
    const char *const *const commands[] = {doctor, run, bench, net, weights, export, eval};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const char *words[6] = {NULL};
        int count = 0;
        while (commands[i][count]) words[count] = commands[i][count], count++;
        words[count] = named;
        CHECK_SAYS(sdlf_run(__FILE__, __LINE__, 1, words),
                   "not an ONNX model: byte 0: expected 0x08, with which a model's version begins, found 0x72 ('r')");
        words[count] = png;
        CHECK_SAYS(sdlf_run(__FILE__, __LINE__, 1, words), "not an ONNX model");
        words[count] = plain;
        CHECK_SAYS(sdlf_run(__FILE__, __LINE__, 1, words),
                   commands[i] == doctor ? "not an ONNX model"
                   : commands[i] == net
                       ? "expected a network, in a JSON or an ONNX file, found 'root:x:0:0:r' at byte 0"
                       : "expected weights, in a safetensors or an ONNX file, found 'root:x:0:0:r'");
    }
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(networks_of_any_form);
    RUN(files_that_are_no_models);
    return test_summary();
}
