/* SPDX-License-Identifier: MIT */
/* sdlf quantize: its files, its output, and rejected arguments. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"

static char weights[600]; /* of small_network, trained briefly */
static char out[600];

static bool available(void)
{
    static program p;
    snprintf(weights, sizeof weights, "%s", test_path("small.safetensors"));
    snprintf(out, sizeof out, "%s", test_path("int8.onnx"));
    SDLF(0, "train", "--net", small_network(), "--data", "digits:400", "--epochs", "2", "--out", weights);
    p = (program){.code = 0};
    program_run(&p, (const char *const[]){"export", weights, "-o", test_path("probe.onnx"), NULL});
    return p.code == 0 || strstr(p.err, "protobuf-c") == NULL;
}

static void writes_integers(void)
{
    const program *p = SDLF(0, "quantize", weights, "-o", out, "--samples", "50");
    CHECK_SAYS(p, "activations from 48 samples by minmax");
    CHECK_SAYS(p, "right before");
    CHECK_SAYS(p, "with float32): opset 17");
    CHECK_SAYS(SDLF(0, "doctor", out), "opset 17");
    SDLF(0, "eval", "--weights", out, "--data", "digits:100");
    p = SDLF(0, "quantize", out, "--data", "digits:100", "-o", test_path("again.onnx"), "--json"); /* an ONNX file */
    json_t *json = json_loads(p->out, 0, NULL);
    CHECK(json_integer_value(json_object_get(json, "layers")) > 0);
    json_decref(json);
    p = SDLF(0, "quantize", "--weights", weights, "--data", "digits:100", "--calibration", "percentile", "--percentile",
             "99.9", "--per-tensor", "--signed", "--compare", "10", "--out", out, "--json");
    json = json_loads(p->out, 0, NULL);
    const json_t *comparison = json_object_get(json, "comparison");
    CHECK_TEXT(json_string_value(json_object_get(json, "file")), out);
    CHECK(json_integer_value(json_object_get(json, "activations")) > 0);
    CHECK_EQUAL(json_integer_value(json_object_get(comparison, "samples")), 8);
    CHECK(json_real_value(json_object_get(comparison, "error")) < 0.2);
    json_decref(json);
}

static void writes_weights_only(void)
{
    const program *p = SDLF(0, "quantize", weights, "--weights-only", "int8", "-o", out);
    CHECK_SAYS(p, "convolutions and products\n");
    CHECK(strstr(p->out, "right before") == NULL);
    CHECK_SAYS(SDLF(0, "quantize", weights, "--weights-only", "int8", "--data", "digits:60", "-o", out),
               "right before");
    CHECK_SAYS(SDLF(0, "quantize", weights, "--weights-only", "int4", "--block", "16", "-o", out), "opset 21");
    SDLF(0, "eval", "--weights", out, "--data", "digits:100");
}

/* Tokens, int64: rows of an array without labels. */
static void takes_tokens(void)
{
    enum { SAMPLES = 24, LENGTH = 8, VOCABULARY = 13, WIDTH = 16 };
    static int64_t token[SAMPLES * LENGTH];
    for (int i = 0; i < SAMPLES * LENGTH; i++) token[i] = i * 7 % VOCABULARY;
    sdlf_tensor array = sdlf_tensor_view(SDLF_INT64, sdlf_shape(SAMPLES, LENGTH), token);
    CHECK_OK(sdlf_tensor_write_file(&array, test_path("tokens.npy")));
    sdlf_model *net = sdlf_model_create("tokens");
    sdlf_node x = sdlf_input(net, "ids", SDLF_INT64, sdlf_shape(LENGTH));
    x = sdlf_embedding(net, x, &(sdlf_embedding_options){.vocabulary = VOCABULARY, .units = WIDTH});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 6});
    sdlf_output(net, "y", x);
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_to_onnx(net, test_path("tokens.onnx"), NULL, NULL));
    sdlf_model_free(net);
    char data[700];
    snprintf(data, sizeof data, "npy:%s", test_path("tokens.npy"));
    const program *p = SDLF(0, "quantize", test_path("tokens.onnx"), "--data", data, "-o", out);
    CHECK_SAYS(p, "1 of 1 convolutions and products, 2 activations from 24 samples");
    CHECK_SAYS(p, "root mean square error 0.");
}

static void says_what_is_wrong(void)
{
    CHECK_SAYS(SDLF(2, "quantize", weights), "--out FILE is missing");
    CHECK_SAYS(SDLF(2, "quantize", "-o", out), "weights are missing");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", test_path("x.c")), "ends in .onnx");
    CHECK_SAYS(SDLF(2, "quantize", weights, "--weights", weights, "-o", out), "weights twice");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", out, "--skip", "nothing"), "layer 'nothing'");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", out, "--calibration", "mean"), "minmax");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", out, "--percentile", "99"), "is for --calibration percentile");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", out, "--block", "32"), "is for --weights-only int4");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", out, "--weights-only", "int4", "--per-tensor"), "for each block");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", out, "--weights-only", "int8", "--samples", "3"),
               "does not quantise");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", out, "--weights-only", "int8", "--strict"), "reads none");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", out, "--weights-only", "int4", "--threads", "2"),
               "--threads is for data");
    CHECK_SAYS(SDLF(1, "quantize", test_path("absent.safetensors"), "-o", out), "absent.safetensors");
    CHECK_SAYS(SDLF(1, "quantize", weights, "-o", test_path("none/x.onnx")), "is not there");
    CHECK_SAYS(SDLF(2, "quantize", weights, "-o", out, "--data", "nonsense"), "nonsense");
    SDLF(0, "export", weights, "-o", test_path("float.onnx"));
    CHECK_SAYS(SDLF(2, "quantize", test_path("float.onnx"), "-o", out), "--data SET is missing");
}

static void no_onnx(void)
{
    test_skip("this build has no ONNX");
}

int main(void)
{
    if (available()) {
        RUN(writes_integers);
        RUN(writes_weights_only);
        RUN(takes_tokens);
        RUN(says_what_is_wrong);
    } else {
        RUN(no_onnx);
    }
    return test_summary();
}
