/* SPDX-License-Identifier: MIT */
/* sdlf export: its files, its output, and rejected arguments. */
#include "testing.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"

static char weights[600]; /* of small_network, trained briefly */

static bool contains(const char *path, const char *text)
{
    static char bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t count = file != NULL ? fread(bytes, 1, sizeof bytes - 1, file) : 0, length = strlen(text);
    if (file != NULL) fclose(file);
    for (size_t i = 0; i + length <= count; i++)
        if (memcmp(bytes + i, text, length) == 0) return true;
    return false;
}

static void make_weights(void)
{
    snprintf(weights, sizeof weights, "%s", test_path("small.safetensors"));
    SDLF(0, "train", "--net", small_network(), "--data", "digits:200", "--epochs", "1", "--out", weights);
}

static void writes_c(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s", test_path("net.c"));
    const program *p = SDLF(0, "export", "--c", weights, "-o", path, "--name", "digits");
    CHECK_SAYS(p, "digits_run");
    CHECK_SAYS(p, "samples x go in as (x - ");
    CHECK(contains(path, "void digits_run(const float *input, float *output)"));
    p = SDLF(0, "export", "--c", weights, "--out", path, "--json");
    json_t *json = json_loads(p->out, 0, NULL);
    CHECK_TEXT(json_string_value(json_object_get(json, "format")), "c");
    CHECK(json_integer_value(json_object_get(json, "bytes")) > 1000);
    CHECK(json_real_value(json_object_get(json_object_get(json, "normalization"), "scale")) > 0);
    json_decref(json);
    CHECK_SAYS(SDLF(1, "export", "--c", "--net", "simple_cnn", "-o", path), "2000000 is the limit");
    CHECK_SAYS(SDLF(1, "export", "--c", weights, "-o", path, "--max-parameters", "10"), "10 is the limit");
    CHECK_SAYS(SDLF(2, "export", "--c", weights, "-o", path, "--name", "9lives"), "cannot be the name of a function");
    CHECK(contains(path, "_run(const float *input, float *output)")); /* the old file is still there */
}

/* Neither ONNX nor C is written to a file with another extension. */
static void the_name_decides(void)
{
    static const char *const others[] = {"x.json", "x.svg", "x.pt", "x", "onnx"};
    char path[600];
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(path, sizeof path, "%s", test_path(others[i]));
        CHECK_SAYS(SDLF(2, "export", weights, "-o", path), "expected the name of a file that ends in .onnx or .c");
        CHECK_SAYS(SDLF(2, "export", "--c", weights, "-o", path), "that ends in .onnx or .c");
        CHECK(access(path, F_OK) != 0);
    }
    snprintf(path, sizeof path, "%s", test_path("named.c"));
    CHECK_SAYS(SDLF(0, "export", weights, "-o", path), "small_run");
    CHECK(contains(path, "small_run(const float *input, float *output)"));
    SDLF(0, "export", "--c", weights, "-o", "/dev/null");
}

static void says_what_is_wrong(void)
{
    CHECK_SAYS(SDLF(2, "export", weights), "--out FILE is missing");
    CHECK_SAYS(SDLF(2, "export", "-o", test_path("x.onnx")), "weights are missing");
    CHECK_SAYS(SDLF(2, "export", "--c", weights, "-o", test_path("x.onnx")), "names an ONNX file, but --c asks for C");
    CHECK_SAYS(SDLF(2, "export", weights, "-o", weights), "a safetensors file is the input");
    CHECK_SAYS(SDLF(2, "export", weights, "-o", "-", "--json"), "only one of the two can go to standard output");
    CHECK_SAYS(SDLF(2, "export", weights, "-o", "-", "--external-data"), "--external-data needs a regular file");
    CHECK_SAYS(SDLF(1, "export", weights, "-o", test_path("none/x.onnx")), "is not there");
    CHECK_SAYS(SDLF(2, "export", "--c", weights, "-o", test_path("x.c"), "--opset", "18"), "--opset is for ONNX");
    CHECK_SAYS(SDLF(2, "export", weights, "-o", test_path("x.onnx"), "--name", "x"), "--name is for C: -o FILE.c");
    CHECK_SAYS(SDLF(2, "export", weights, "-o", test_path("x.onnx"), "--opset", "9"), "--opset 9: expected");
    CHECK_SAYS(SDLF(2, "export", weights, "--weights", weights, "-o", test_path("x.onnx")), "weights twice");
    CHECK_SAYS(SDLF(2, "export", "a.onnx", "--net", "lenet5", "-o", test_path("x.onnx")), "two networks");
    CHECK_SAYS(SDLF(1, "export", test_path("absent.safetensors"), "-o", test_path("x.onnx")), "absent.safetensors");
    CHECK_SAYS(SDLF(2, "export", weights, "-x", "y"), "unknown option '-x'");
    CHECK_SAYS(SDLF(2, "export", weights, "-o"), "--out needs a value");
    CHECK_SAYS(SDLF(0, "export", "--help"), "-o, --out FILE");
    CHECK_SAYS(SDLF(2, "exprot"), "did you mean 'export'?");
}

/* A full disk, for every format: a message, and the old file. */
static void a_full_disk_is_survived(void)
{
    static program p;
    char path[600];
    snprintf(path, sizeof path, "%s", test_path("full.c"));
    test_write_file(path, "old", 3);
    p = (program){.file_size_limit = 2000};
    program_run(&p, (const char *const[]){"export", "--c", weights, "-o", path, NULL});
    CHECK_EQUAL(p.code, 1);
    CHECK_SAYS(&p, "cannot write");
    CHECK(contains(path, "old"));
}

/* ---- ONNX ---- */

static bool available(void)
{
    static program p;
    p = (program){.code = 0};
    program_run(&p, (const char *const[]){"export", weights, "-o", test_path("probe.onnx"), NULL});
    return p.code == 0 || strstr(p.err, "protobuf-c") == NULL;
}

static void writes_onnx(void)
{
    char path[600], outside[300];
    snprintf(path, sizeof path, "%s", test_path("net.onnx"));
    const program *p = SDLF(0, "export", weights, "-o", path);
    CHECK_SAYS(p, "opset 17");
    CHECK_SAYS(p, "float Nx10");
    p = SDLF(0, "export", "--weights", weights, "--out", path, "--opset", "21", "--json");
    json_t *json = json_loads(p->out, 0, NULL);
    CHECK_EQUAL(json_integer_value(json_object_get(json, "opset")), 21);
    CHECK_TEXT(json_string_value(json_object_get(json, "format")), "onnx");
    CHECK(json_integer_value(json_object_get(json, "parameters")) > 100);
    json_decref(json);
    CHECK_SAYS(SDLF(0, "doctor", path), "opset 21");
    p = SDLF(0, "export", weights, "-o", path, "--external-data");
    CHECK_SAYS(p, " kB in net.onnx.");
    p = SDLF(0, "export", weights, "-o", path, "--external-data", "--json");
    json = json_loads(p->out, 0, NULL);
    snprintf(outside, sizeof outside, "%s", json_string_value(json_object_get(json, "external_file")));
    json_decref(json);
    CHECK(access(test_path(outside), R_OK) == 0);
    CHECK_SAYS(SDLF(0, "doctor", path), "runs on: reference, cpu");
    CHECK_SAYS(SDLF(0, "export", "--net", "lenet5", "-o", path), "untrained");
    CHECK_SAYS(SDLF(1, "export", weights, "-o", "/dev/full"), "No space left on device");
}

/* Whenever Ctrl-C arrives, the file is complete or absent, and nothing is left beside it. */
static void ctrl_c_leaves_no_halves(void)
{
    char path[600], command[800];
    snprintf(path, sizeof path, "%s", test_path("stopped.onnx"));
    snprintf(command, sizeof command, "ls '%s'.sdlf-tmp-* > /dev/null 2>&1", path);
    for (int i = 0; i < 15; i++) {
        static program p;
        p = (program){.code = 0};
        unlink(path);
        program_start(&p, (const char *const[]){"export", "--net", "simple_cnn", "-o", path, NULL});
        nanosleep(&(struct timespec){0, 8000000L * i}, NULL);
        kill(p.process, SIGINT);
        program_finish(&p);
        CHECK(p.signal == SIGINT || p.code == 128 + SIGINT || p.code == 0);
        CHECK(system(command) != 0);
        if (access(path, F_OK) == 0) SDLF(0, "doctor", path);
    }
}

/* A user's workflow with a network from elsewhere: fine-tune it, save it, export it again; then evaluate the
 * result. */
static void fine_tunes(void)
{
    char start[600], tuned[600], path[600];
    snprintf(start, sizeof start, "%s", test_path("start.onnx"));
    snprintf(tuned, sizeof tuned, "%s", test_path("tuned.safetensors"));
    snprintf(path, sizeof path, "%s", test_path("tuned.onnx"));
    SDLF(0, "export", "--net", "lenet5", "-o", start);
    SDLF(0, "train", "--net", start, "--data", "digits:1000", "--epochs", "2", "--out", tuned);
    CHECK_SAYS(SDLF(0, "export", tuned, "-o", path), "61,706 parameters");
    SDLF(0, "export", tuned, "--net", start, "-o", test_path("same.onnx"));
    SDLF(0, "eval", "--weights", tuned, "--net", path, "--data", "digits:1000");
    const program *p = SDLF(0, "eval", "--weights", tuned, "--data", "digits:1000"); /* an ONNX file has both */
    char accuracy[64];
    snprintf(accuracy, sizeof accuracy, "%.40s", strstr(p->out, "\ntest "));
    CHECK_SAYS(SDLF(0, "eval", "--weights", path, "--data", "digits:1000"), accuracy);
    SDLF(0, "info", "--weights", path, "--batch", "1");
    SDLF(0, "train", "--net", path, "--data", "digits:200", "--epochs", "1", "--learning-rate", "0.000001", "--out",
         test_path("more.safetensors"));
    sdlf_model *a = NULL, *b = NULL, *c = NULL;
    CHECK_OK(sdlf_model_open(&a, tuned));
    CHECK_OK(sdlf_model_from_onnx(&b, path, NULL));
    CHECK_OK(sdlf_model_from_onnx(&c, test_path("same.onnx"), NULL));
    CHECK_EQUAL(sdlf_model_hash(a), sdlf_model_hash(b));
    CHECK_EQUAL(sdlf_model_hash(a), sdlf_model_hash(c));
    sdlf_model_free(a);
    sdlf_model_free(b);
    sdlf_model_free(c);
}

int main(void)
{
    RUN(make_weights);
    RUN(writes_c);
    RUN(the_name_decides);
    RUN(says_what_is_wrong);
    RUN(a_full_disk_is_survived);
    if (available()) {
        RUN(writes_onnx);
        RUN(ctrl_c_leaves_no_halves);
        RUN(fine_tunes);
    }
    return test_summary();
}
