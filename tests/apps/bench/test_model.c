/* SPDX-License-Identifier: MIT */
/* sdlf bench model: the times of models from files. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/fixtures.h"
#include "apps/program.h"
#include "onnx/fixtures.h"

static void bench_times_every_layer(void)
{
    const program *p = SDLF(0, "bench", fixture("small_cnn/model.onnx"), "--repeats", "3", "--calculator", "reference");
    CHECK_SAYS(p, "1x4x6x6");
    CHECK_SAYS(p, "total");
    p = SDLF(0, "bench", "model", fixture("small_cnn/model.onnx"), "--repeats", "3", "--json");
    json_t *json = json_loads(p->out, 0, NULL);
    CHECK(json_real_value(json_object_get(json, "seconds")) > 0);
    CHECK((int64_t)json_array_size(json_object_get(json, "layers")) >= 4);
    json_decref(json);
    char choices[600], command[800];
    snprintf(choices, sizeof choices, "%s", test_path("choices.txt"));
    SDLF(0, "bench", "model", fixture("small_cnn/model.onnx"), "--repeats", "3", "--plan-file", choices);
    snprintf(command, sizeof command, "grep -q '^conv2d_forward .* = ' '%s'", choices); /* race results are kept */
    CHECK(system(command) == 0);
}

/* A file after options, with another extension, or trained here is timed as a model. */
static void bench_knows_models(void)
{
    CHECK_SAYS(SDLF(0, "bench", "--repeats", "3", "--dtype", "float64", fixture("small_cnn/model.onnx")), "1x4x6x6");
    char copy[600], weights[600], command[1400];
    snprintf(copy, sizeof copy, "%s", test_path("no-ending"));
    snprintf(weights, sizeof weights, "%s", test_path("small.safetensors"));
    snprintf(command, sizeof command, "cp '%s' '%s'", fixture("small_cnn/model.onnx"), copy);
    CHECK(system(command) == 0);
    CHECK_SAYS(SDLF(0, "bench", copy, "--repeats", "3"), "1x4x6x6");
    CHECK_SAYS(SDLF(0, "run", copy, "--input", fixture("small_cnn/input_0.pb"), "--top", "1"), "%");
    SDLF(0, "train", "--net", small_network(), "--data", "digits:200", "--epochs", "1", "--out", weights);
    CHECK_SAYS(SDLF(0, "bench", "--batch", "8", weights, "--repeats", "3"), "8x10");
    CHECK_SAYS(SDLF(2, "bench", "--net", fixture("small_cnn/model.onnx"), weights), "unknown option '--net'");
}

/* Wide shapes and long names of layers, in a file with a long name. */
static void tables_fit_a_terminal(void)
{
    enum { WIDTH = 80 };
    static const char net[] =
        "{\"name\": \"wide\", \"input\": {\"name\": \"image\", \"shape\": [1, 28, 28]}, \"layers\": ["
        "{\"type\": \"conv2d\", \"name\": \"the_first_convolution_of_the_network\", \"filters\": 10, \"kernel\": 3},"
        "{\"type\": \"fully_connected\", \"units\": 10}, {\"type\": \"softmax\"}]}\n";
    static program p;
    char path[600], weights[600];
    snprintf(path, sizeof path, "%s", test_path("wide.json"));
    snprintf(weights, sizeof weights, "%s", test_path("weights_in_a_file_with_a_long_name.safetensors"));
    test_write_file(path, net, sizeof net - 1);
    SDLF(0, "train", "--net", path, "--data", "digits:100", "--epochs", "1", "--out", weights);
    p = (program){.terminal = true, .columns = WIDTH};
    program_run(&p, (const char *const[]){"bench", "model", weights, "--batch", "1000", "--repeats", "3", NULL});
    CHECK_EQUAL(p.code, 0);
    CHECK_SAYS(&p, "1000x10x26x26");
    if (!CHECK(program_widest(&p) <= WIDTH)) printf("%s", p.out);
}

int main(void)
{
    RUN(tables_fit_a_terminal);
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(bench_times_every_layer);
    RUN(bench_knows_models);
    return test_summary();
}
