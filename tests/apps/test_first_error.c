/* SPDX-License-Identifier: MIT */
/* Which of several mistakes is reported: inputs before outputs, and typed arguments before defaults. Options without
 * any effect are mistakes, too. */
#include "testing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/fixtures.h"
#include "apps/program.h"

#define CALCULATOR "--calculator", "reference"
#define SMALL      "--net", small_network(), "--data", "digits:100", "--epochs", "1", CALCULATOR
#define MODEL      fixture("small_cnn/model.onnx")
#define INPUT      fixture("small_cnn/input_0.pb")
#define NOWHERE    "/nowhere/file"

/* Check a failure that prints `text` before anything else, including the header. */
#define CHECK_FIRST(code, text, ...) check_first(__LINE__, (code), (text), (const char *const[]){__VA_ARGS__, NULL})
static void check_first(int line, int code, const char *text, const char *const *words)
{
    const program *p = sdlf_run(__FILE__, line, code, words);
    if (!test_check(strstr(p->err, text) != NULL, __FILE__, line, text)) printf("  said: %s\n", p->err);
    test_check(p->out[0] == '\0', __FILE__, line, "nothing is printed before");
}

static void data_before_outputs(void)
{
    const char *weights = test_path("small.safetensors");
    SDLF(0, "train", SMALL, "--out", weights);
    CHECK_FIRST(2, "data set 'UNKNOWN' is unknown", "train", "--data", "UNKNOWN", "--out", NOWHERE);
    CHECK_FIRST(2, "data set 'UNKNOWN' is unknown", "train", "--data", "UNKNOWN", "--no-save", "--log", NOWHERE);
    CHECK_FIRST(2, "data set 'UNKNOWN' is unknown", "train", "--test-data", "UNKNOWN", "--out", NOWHERE);
    CHECK_FIRST(2, "data set 'UNKNOWN' is unknown", "train", "--resume", weights, "--epochs", "2", "--data", "UNKNOWN");
    CHECK_FIRST(1, "there is no folder '/nowhere'", "train", "--data", "mnist:/nowhere", "--out", NOWHERE);
    CHECK_FIRST(2, "digits:0", "train", "--data", "digits:0", "--out", NOWHERE);
    CHECK_FIRST(2, "data set 'UNKNOWN' is unknown", "eval", "--weights", weights, "--data", "UNKNOWN");
    CHECK_FIRST(2, "data set 'UNKNOWN' is unknown", "bench", "--net", "mlp", "--data", "UNKNOWN");
    CHECK_FIRST(2, "data set 'UNKNOWN' is unknown", "bench", "placement", "--data", "UNKNOWN", "--svg", NOWHERE,
                "--device-calculator", "reference");
    CHECK_FIRST(2, "data set 'UNKNOWN' is unknown", "bench", "epoch", "--data", "UNKNOWN", "--device-calculator",
                "reference");
    CHECK_FIRST(2, "no network 'UNKNOWN'", "bench", "epoch", "--net", "UNKNOWN", "--device-calculator", "absent");
    CHECK_FIRST(2, "no network 'UNKNOWN'", "bench", "placement", "--net", "UNKNOWN", "--device-calculator", "absent");
    CHECK_FIRST(2, "data set 'UNKNOWN' is unknown", "bench", "epoch", "--data", "UNKNOWN", "--device-calculator",
                "absent");
    CHECK_FIRST(2, "graph 'UNKNOWN' is unknown", "gcn", "infer", "--graph", "UNKNOWN");
    CHECK_FIRST(1, "/nowhere", "gcn", "infer", "--graph", "snap:/nowhere");
    CHECK_FIRST(1, "/nowhere", "gcn", "train", "--graph", "planetoid:/nowhere", "--out", "/none/file");
}

/* A second `sdlf train` with the default file is rejected at once, and the file is unchanged. */
static void a_file_that_is_there_comes_next(void)
{
    static program p;
    p = (program){.folder = test_path("")};
    const char *file = test_path("mlp.safetensors");
    test_write_file(file, "mine", 4);
    program_run(&p, (const char *const[]){"train", "--net", "mlp", "--data", "UNKNOWN", NULL});
    CHECK_EQUAL(p.code, 2);
    CHECK(strstr(p.err, "data set 'UNKNOWN' is unknown") != NULL);
    program_run(&p, (const char *const[]){"train", "--net", "mlp", NULL});
    CHECK_EQUAL(p.code, 2);
    CHECK(strstr(p.err, "mlp.safetensors exists") != NULL);
    CHECK_TEXT(p.out, "");
}

static void models_before_outputs(void)
{
    CHECK_FIRST(1, "/none.json", "bench", "conv", "--from", "/none.json", "--svg", NOWHERE);
    if (!reads_onnx()) return;
    CHECK_FIRST(1, "cannot open '/none.onnx'", "export", "/none.onnx", "-o", NOWHERE ".onnx");
    CHECK_FIRST(1, "cannot open '/none.onnx'", "run", "/none.onnx", "--output", NOWHERE, "--labels", NOWHERE);
    CHECK_FIRST(1, "cannot open '/none.npy'", "run", MODEL, "--input", "/none.npy", "--output", NOWHERE);
    CHECK_FIRST(1, "sdlf bench model: error: cannot open '/none.onnx'", "bench", "/none.onnx");
}

/* A plan file that cannot be written is reported before its races are run. */
static void plan_files_before_races(void)
{
    CHECK_FIRST(1, "the folder /nowhere is not there", "train", SMALL, "--no-save", "--plan-file", NOWHERE);
    CHECK_FIRST(1, "the folder /nowhere is not there", "info", "--net", "mlp", "--plan-file", NOWHERE);
}

static void weights_under_other_names(void)
{
    CHECK_FIRST(2, "net.onnx' does not look like weights", "train", SMALL, "--out", test_path("net.onnx"));
    CHECK_FIRST(2, "net.json' does not look like weights", "train", SMALL, "--out", test_path("net.json"));
    CHECK_FIRST(2, "net.c' does not look like weights", "train", SMALL, "--out", test_path("net.c"));
    CHECK(access(test_path("net.onnx"), F_OK) != 0);
    SDLF(0, "train", SMALL, "--out", test_path("weights.sd")); /* any other name is accepted */
}

static void options_that_could_do_nothing(void)
{
    CHECK_FIRST(2, "--confusion and --quiet contradict each other", "train", SMALL, "--no-save", "--confusion",
                "--quiet");
    CHECK_FIRST(2, "--confusion and --no-test contradict each other", "train", SMALL, "--no-save", "--confusion",
                "--no-test");
    CHECK_FIRST(2, "--log-steps needs --log", "train", SMALL, "--no-save", "--log-steps", "4");
    CHECK_FIRST(2, "--device-data 4: the reference calculator has no device", "train", SMALL, "--no-save",
                "--device-data", "4");
    CHECK_FIRST(2, "--device 3: the reference calculator has no devices", "parity", "--device", "3", "--b",
                "reference");
    CHECK_FIRST(2, "--optimizer and --mode infer contradict each other", "info", "--net", "mlp", "--mode", "infer",
                "--optimizer", "adam");
    CHECK_FIRST(2, "--momentum and --mode infer contradict each other", "bench", "--net", "mlp", "--mode", "infer",
                "--momentum", "0.5");
    CHECK_FIRST(2, "--steps and --mode infer contradict each other", "bench", "--net", "mlp", "--mode", "infer",
                "--steps", "4");
    CHECK_FIRST(2, "--own-activations is for the backward pass, but --mode infer has none", "parity", "--net", "mlp",
                "--mode", "infer", "--own-activations");
    CHECK_FIRST(2, "--own-activations is for the backward pass, but float64", "parity", "--net", "mlp", "--dtype",
                "float64", "--own-activations");
    CHECK_FIRST(2, "--draw and --json contradict each other", "predict", "--weights", "/none", "--draw", "--json", "x");
    static const char *const of_pictures[][2] = {{"--fit", "crop"},     {"--crop", "0.5"},  {"--preprocess", "unit"},
                                                 {"--mean", "0.5"},     {"--std", "0.5"},   {"--layout", "nchw"},
                                                 {"--channels", "bgr"}, {"--invert", "yes"}};
    for (size_t i = 0; i < sizeof of_pictures / sizeof of_pictures[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s is for pictures, but ", of_pictures[i][0]);
        CHECK_FIRST(2, text, "run", MODEL, "--input", INPUT, of_pictures[i][0], of_pictures[i][1]);
    }
}

static void labels_that_are_no_text(void)
{
    if (!reads_onnx()) {
        test_skip("this build reads no ONNX files");
        return;
    }
    CHECK_FIRST(1, "line 1 has a NUL byte", "run", MODEL, "--input", INPUT, "--labels", INPUT);
    CHECK_FIRST(1, "/dev/zero: expected at most 16777216 bytes, found more", "run", MODEL, "--input", INPUT, "--labels",
                "/dev/zero");
    test_write_file(test_path("labels"), "one\ntwo\0three\n", 14);
    CHECK_FIRST(1, "labels: line 2 has a NUL byte", "run", MODEL, "--input", INPUT, "--labels", test_path("labels"));
}

/* Training cannot resume from weights written to a device. */
static void a_device_offers_nothing_to_resume(void)
{
    const program *p = SDLF(0, "train", SMALL, "--out", "/dev/null");
    CHECK_SAYS(p, "saved  /dev/null\n");
    CHECK(strstr(p->out, "--resume") == NULL);
}

int main(void)
{
    RUN(data_before_outputs);
    RUN(a_file_that_is_there_comes_next);
    RUN(models_before_outputs);
    RUN(plan_files_before_races);
    RUN(weights_under_other_names);
    RUN(options_that_could_do_nothing);
    RUN(labels_that_are_no_text);
    RUN(a_device_offers_nothing_to_resume);
    return test_summary();
}
