/* sdlf doctor and sdlf run: what they say of ONNX models, and what they compute. */
#include "testing.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/pictures/resample.h"
#include "apps/program.h"
#include "framework/input_layer.h"

static const char *fixture(const char *name)
{
    static char path[6][600];
    static int next;
    char *text = path[next++ % 6];
    snprintf(text, sizeof path[0], "%s/%s", SDLF_FIXTURES, name);
    return text;
}

static bool available(void)
{
    sdlf_onnx_report *report;
    sdlf_status status = sdlf_onnx_inspect(&report, fixture("moves/model.onnx"), NULL);
    sdlf_onnx_report_free(report);
    return status == SDLF_OK;
}

static void doctor_says_what_is_there(void)
{
    const program *p = SDLF(0, "doctor", fixture("residual/model.onnx"));
    CHECK_SAYS(p, "opset 13, 12 nodes");
    CHECK_SAYS(p, "input   x  float 1x3x15x15");
    CHECK_SAYS(p, "output  mean  float 1x8x1x1");
    CHECK_SAYS(p, "BatchNormalization  1x8x8x8");
    CHECK_SAYS(p, "runs on: reference, cpu");
    p = SDLF(0, "doctor", "--json", fixture("residual/model.onnx"));
    json_t *json = json_loads(p->out, 0, NULL);
    CHECK(json != NULL && json_is_true(json_object_get(json, "convertible")));
    CHECK_EQUAL((int64_t)json_array_size(json_object_get(json, "nodes")), 12);
    json_t *first = json_array_get(json_object_get(json, "calculators"), 0);
    CHECK(json_integer_value(json_object_get(first, "flops")) > 10000);
    json_decref(json);
}

/* The name of an operator is exchanged for one that does not exist; then the file is cut off. */
static void doctor_says_what_is_wrong(void)
{
    static char bytes[16384];
    FILE *file = fopen(fixture("residual/model.onnx"), "rb");
    size_t size = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file != NULL) fclose(file);
    for (size_t i = 0; i + 4 < size; i++)
        if (memcmp(bytes + i, "Relu", 4) == 0) memcpy(bytes + i, "Ralu", 4);
    const char *path = test_path("broken.onnx");
    test_write_file(path, bytes, size);
    const program *p = SDLF(1, "doctor", path);
    CHECK_SAYS(p, "cannot be run:");
    CHECK_SAYS(p, "(Ralu): SDLF has no operator Ralu");
    CHECK_SAYS(p, "nodes behind these could not be looked at");
    test_write_file(path, bytes, size / 2);
    p = SDLF(1, "doctor", path);
    CHECK_SAYS(p, "broken.onnx: byte ");
    SDLF(1, "doctor", test_path("absent.onnx"));
    static const char weights[] = "\2\0\0\0\0\0\0\0{}";
    test_write_file(path, weights, sizeof weights - 1);
    CHECK_SAYS(SDLF(1, "doctor", path), "expected an ONNX file, found safetensors; 'sdlf info --weights FILE'");
    SDLF(2, "doctor");
}

static void run_gives_what_was_computed_elsewhere(void)
{
    const char *out = test_path("y.npy");
    char output[700];
    snprintf(output, sizeof output, "class=%s", out);
    const program *p = SDLF(0, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"),
                            "--output", output, "--calculator", "reference", "--top", "3");
    CHECK_SAYS(p, "%");
    sdlf_tensor found, expected;
    CHECK_OK(sdlf_tensor_read_file(&found, out));
    CHECK_OK(sdlf_tensor_read_file(&expected, fixture("small_cnn/output_0.pb")));
    CHECK(sdlf_shape_equal(found.shape, expected.shape));
    for (int64_t i = 0; i < sdlf_tensor_count(&found); i++)
        CHECK_CLOSE((double)((float *)found.data)[i], (double)((float *)expected.data)[i], 1e-6);
    sdlf_tensor_release(&found, NULL);
    sdlf_tensor_release(&expected, NULL);
    p = SDLF(0, "run", "--json", "--dtype", "float64", fixture("moves/model.onnx"), "--input",
             fixture("moves/input_0.pb"), "--input", fixture("moves/input_1.pb"));
    json_t *json = json_loads(p->out, 0, NULL);
    CHECK_EQUAL((int64_t)json_array_size(json_object_get(json_array_get(json, 0), "values")), 96);
    json_decref(json);
}

/* Scores that are no numbers: every class once, none with a probability. */
static void run_lists_classes_once(void)
{
    float x[144];
    for (int i = 0; i < 144; i++) x[i] = NAN;
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 1, 12, 12), x);
    CHECK_OK(sdlf_tensor_write_file(&tensor, test_path("nan.npy")));
    const program *p = SDLF(0, "run", "--json", "--top", "3", fixture("small_cnn/model.onnx"), "--input",
                            test_path("nan.npy"), "--calculator", "reference");
    json_t *json = json_loads(p->out, 0, NULL);
    json_t *top = json_array_get(json_object_get(json_array_get(json, 0), "top"), 0);
    CHECK_EQUAL((int64_t)json_array_size(top), 3);
    for (int i = 0; i < 3; i++) {
        json_t *row = json_array_get(top, (size_t)i);
        CHECK_EQUAL((int64_t)json_integer_value(json_object_get(row, "class")), i);
        CHECK(json_is_null(json_object_get(row, "probability")));
    }
    json_decref(json);
}

/* A grey ramp as PGM is a picture of one channel, 12x12 after it is cut. */
static void run_takes_pictures(void)
{
#if defined SDLF_HAVE_TURBOJPEG
    char pgm[2000];
    int head = snprintf(pgm, sizeof pgm, "P5 24 36 255\n");
    for (int i = 0; i < 24 * 36; i++) pgm[head + i] = (char)(unsigned char)(i % 24 * 10);
    const char *path = test_path("ramp.pgm");
    test_write_file(path, pgm, (size_t)head + 24 * 36);
    const char *labels = test_path("labels.txt");
    test_write_file(labels, "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n", 50);
    const program *p = SDLF(0, "run", fixture("small_cnn/model.onnx"), "--input", path, "--input", path, "--top", "10",
                            "--labels", labels, "--normalize", "unit");
    CHECK_SAYS(p, "seven");
    CHECK_SAYS(p, "ramp.pgm");
    CHECK(strstr(p->err, "warning") == NULL);
    test_write_file(labels, "zero\none\ntwo\n", 13);
    p = SDLF(0, "run", fixture("small_cnn/model.onnx"), "--input", path, "--labels", labels);
    CHECK_SAYS(p, "labels.txt: names: 3, classes: 10; they may be another model's");
    CHECK_SAYS(p, "%"); /* classes are asked for by naming them */
#else
    test_skip("this build reads no PGM pictures");
#endif
}

static void run_says_what_is_wrong(void)
{
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx")), "input 'image', 1x1x12x12, is missing");
    CHECK_SAYS(SDLF(1, "run", fixture("small_cnn/model.onnx"), "--input", fixture("external/input_0.pb")),
               "input 'image' is 1x1x12x12, and the file has 1x8");
    CHECK_SAYS(SDLF(1, "run", fixture("small_cnn/model.onnx"), "--input", "nobody=x.npy"), "x.npy");
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--mean", "1,2"), "--mean 1,2");
    const program *early = SDLF(1, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"),
                                "--output", test_path("none/y.npy"));
    CHECK_SAYS(early, "is not there");
    CHECK_TEXT(early->out, ""); /* said before anything is computed */
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--dim", "height"), "--dim height");
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--dim", "height=3"),
               "leaves a dimension 'height' open");
    CHECK_SAYS(SDLF(2, "doctor", fixture("small_cnn/model.onnx"), "--dim", "height=3"), "dimension 'height' open");
    SDLF(0, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"), "--dim", "N=1");
    CHECK_SAYS(SDLF(1, "run", fixture("small_cnn/model.onnx"), "--labels", test_path("")), "Is a directory");
    CHECK_SAYS(SDLF(2, "run", test_path("net.json")), "expected weights");
    char one[600], two[600];
    snprintf(one, sizeof one, "%s", test_path("one.npy"));
    snprintf(two, sizeof two, "%s", test_path("two.npy"));
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"), "--output",
                    one, "--output", two),
               "two.npy: the model has 1 output");
}

/* 13 MB of activations a sample. */
static void run_asks_for_no_more_than_there_is(void)
{
    static const char text[] =
        "{\"name\": \"wide\", \"input\": {\"name\": \"x\", \"shape\": [1, 28, 28]}, \"layers\": ["
        "{\"type\": \"conv2d\", \"filters\": 4096, \"kernel\": 1}, {\"type\": \"global_avg_pool2d\"}]}";
    char net[600], path[600];
    snprintf(net, sizeof net, "%s", test_path("wide.json"));
    snprintf(path, sizeof path, "%s", test_path("wide.onnx"));
    test_write_file(net, text, sizeof text - 1);
    SDLF(0, "export", "--net", net, "-o", path);
    CHECK_SAYS(SDLF(1, "run", path, "--batch", "1000000", "--input", fixture("small_cnn/input_0.pb")),
               "a smaller --batch needs less");
}

static void save_model(sdlf_model *model, const char *path)
{
    CHECK_OK(sdlf_model_build(model, 1));
    CHECK_OK(sdlf_model_to_onnx(model, path, NULL, NULL));
    sdlf_model_free(model);
}

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
    save_model(m, nothing);
    m = sdlf_model_create("scalar");
    sdlf_output(m, "y", sdlf_relu(m, whole_input(m, SDLF_SCALAR)));
    save_model(m, scalar);
    m = sdlf_model_create("four");
    sdlf_output(m, "y",
                sdlf_fully_connected(m, whole_input(m, sdlf_shape(4, 1, 28, 28)),
                                     &(sdlf_fully_connected_options){.units = 10}));
    save_model(m, four);
    m = sdlf_model_create("index");
    sdlf_node x = sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(1, 28, 28));
    x = sdlf_fully_connected(m, x, &(sdlf_fully_connected_options){.units = 10});
    sdlf_output(m, "y", sdlf_arg_reduce(m, x, &(sdlf_arg_reduce_layer_options){.axis = 1, .keep = true}));
    save_model(m, index);
    m = sdlf_model_create("class");
    x = sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(1, 28, 28));
    sdlf_output(m, "y", sdlf_fully_connected(m, x, &(sdlf_fully_connected_options){.units = 1}));
    save_model(m, one);
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

/* What stands in a file does not steer the terminal. */
static void names_do_not_steer_the_terminal(void)
{
    const char *path = test_path("escape.onnx"), *labels = test_path("escape.txt");
    sdlf_model *m = sdlf_model_create("escape");
    sdlf_output(m, "y\033[2J", sdlf_relu(m, sdlf_input(m, "x\033[31m", SDLF_FLOAT32, sdlf_shape(1, 12, 12))));
    save_model(m, path);
    test_write_file(labels, "\033[2Jzero\n", 9);
    const program *p = SDLF(2, "run", path);
    CHECK(strchr(p->err, '\033') == NULL);
    p = SDLF(0, "run", path, "--input", fixture("small_cnn/input_0.pb"));
    CHECK(strchr(p->out, '\033') == NULL);
    p = SDLF(0, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"), "--top", "10",
             "--labels", labels);
    CHECK_SAYS(p, "?[2Jzero");
    CHECK(strchr(p->out, '\033') == NULL);
}

/* An output of shape 2x0 beside one of two numbers. */
static void outputs_without_elements(void)
{
    sdlf_model *m = sdlf_model_create("hollow");
    sdlf_output(m, "y", sdlf_relu(m, sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(2))));
    sdlf_output(m, "nothing", sdlf_value(m, &(sdlf_value_options){.shape = sdlf_shape(0, 3)}));
    const char *path = test_path("hollow.onnx"), *input = test_path("x.npy");
    float x[] = {1, -2};
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 2), x);
    CHECK_OK(sdlf_tensor_write_file(&tensor, input));
    save_model(m, path);
    CHECK_SAYS(SDLF(0, "run", path, "--input", input), "nothing  float32 0x3  no elements");
    CHECK_SAYS(SDLF(0, "run", path, "--input", input, "--top", "2"), "100.0%");
    CHECK_SAYS(SDLF(0, "run", path, "--input", input, "--json", "--top", "2"), "\"mean\": null");
}

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
    snprintf(command, sizeof command, "grep -q '^conv2d_forward .* = ' '%s'", choices); /* what was raced is kept */
    CHECK(system(command) == 0);
}

/* Behind options, under another name, or trained here: it is a model that is timed. */
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

/* A constant picture stays constant, a ramp a ramp, whatever the sizes. */
static void resampling_keeps_what_is_even(void)
{
    uint8_t pixels[20 * 30];
    image picture = {.width = 30, .height = 20, .channels = 1, .pixels = pixels};
    float out[3 * 64 * 64];
    memset(pixels, 77, sizeof pixels);
    const int sizes[] = {1, 5, 20, 64};
    for (int i = 0; i < 4; i++) {
        resample(out, sizes[i], sizes[i], 3, &picture, 0, 0, 20, 30);
        for (int k = 0; k < 3 * sizes[i] * sizes[i]; k++) CHECK_CLOSE((double)out[k], 77.0, 1e-4);
    }
    for (int i = 0; i < 20 * 30; i++) pixels[i] = (uint8_t)(i % 30 * 8);
    resample(out, 4, 10, 1, &picture, 0, 0, 20, 30);
    for (int x = 1; x < 9; x++) CHECK_CLOSE((double)out[x], 8.0 * (3 * x + 1), 1e-3);
    resample(out, 20, 10, 1, &picture, 0, 10, 20, 10); /* a part at its own size: the pixels themselves */
    for (int x = 0; x < 10; x++) CHECK_CLOSE((double)out[x], 8.0 * (10 + x), 1e-4);
}

int main(void)
{
    RUN(resampling_keeps_what_is_even);
    if (available()) {
        RUN(doctor_says_what_is_there);
        RUN(doctor_says_what_is_wrong);
        RUN(run_gives_what_was_computed_elsewhere);
        RUN(run_lists_classes_once);
        RUN(run_takes_pictures);
        RUN(run_says_what_is_wrong);
        RUN(run_asks_for_no_more_than_there_is);
        RUN(networks_of_any_form);
        RUN(names_do_not_steer_the_terminal);
        RUN(outputs_without_elements);
        RUN(bench_times_every_layer);
        RUN(bench_knows_models);
    }
    return test_summary();
}
