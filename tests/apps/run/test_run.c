/* SPDX-License-Identifier: MIT */
/* sdlf run: its results, its output, and rejected arguments. */
#include "testing.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "apps/fixtures.h"
#include "apps/program.h"
#include "onnx/fixtures.h"

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

/* Labels of a model that holds its own loss, say: they may be given, with no effect, or not. */
static void inputs_that_nothing_reads_may_be_left_out(void)
{
    const char *model = test_path("unread.safetensors"), *x = test_path("unread.npy");
    char input[700], mask[700];
    sdlf_model *net = sdlf_model_create("unread");
    sdlf_node read = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(2));
    sdlf_input(net, "mask", SDLF_FLOAT32, sdlf_shape(2));
    sdlf_output(net, "y", sdlf_relu(net, read));
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_save(net, model));
    sdlf_model_free(net);
    float values[2] = {1, -2};
    const sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 2), values);
    CHECK_OK(sdlf_tensor_write_file(&tensor, x));
    snprintf(input, sizeof input, "x=%s", x);
    snprintf(mask, sizeof mask, "mask=%s", x);
    CHECK_SAYS(SDLF(0, "run", model, "--input", input), "y  float32 1x2");
    CHECK_SAYS(SDLF(0, "run", model, "--input", input, "--input", mask), "y  float32 1x2");
    CHECK_SAYS(SDLF(2, "run", model, "--input", mask), "input 'x', 1x2, is missing");
}

/* A decoder, step by step: the results of onnxruntime in the same steps. */
static void steps_go_on_from_one_another(void)
{
    const char *out = test_path("logits.npy"), *model = fixture("decoder/model.onnx");
    char input[700], output[700];
    snprintf(input, sizeof input, "input_ids=%s", fixture("decoder/tokens.npy"));
    snprintf(output, sizeof output, "logits=%s", out);
    const program *p = SDLF(0, "run", model, "--input", input, "--state", "past_key_values.*=present.*", "--steps",
                            "12", "--output", output);
    CHECK_SAYS(p, "logits  float32 12x1x1x11");
    CHECK(strstr(p->out, "present") == NULL);
    sdlf_tensor found, expected;
    CHECK_OK(sdlf_tensor_read_file(&found, out));
    CHECK_OK(sdlf_tensor_read_file(&expected, fixture("decoder/logits.npy")));
    CHECK(sdlf_shape_equal(found.shape, expected.shape));
    for (int64_t i = 0; i < sdlf_tensor_count(&found); i++)
        CHECK_CLOSE((double)((float *)found.data)[i], (double)((float *)expected.data)[i], 1e-4);
    sdlf_tensor_release(&found, NULL);
    sdlf_tensor_release(&expected, NULL);
    CHECK_SAYS(SDLF(2, "run", model, "--input", input, "--steps", "12"), "--steps needs --state");
    CHECK_SAYS(SDLF(2, "run", model, "--input", input, "--state", "past"), "expected INPUT=OUTPUT");
    CHECK_SAYS(SDLF(2, "run", model, "--input", input, "--state", "p.*=present.*"), "inputs of the model that fit");
    CHECK_SAYS(SDLF(2, "run", model, "--state", "past_key_values.*=present.*"), "input 'input_ids' has no file");
    CHECK_SAYS(SDLF(1, "run", model, "--input", input, "--state", "past_key_values.*=present.*", "--steps", "5"),
               "of 5 steps is split on axis 1");
    CHECK_SAYS(SDLF(1, "run", model, "--input", input, "--state", "past_key_values.*=present.*", "--steps", "12",
                    "--capacity", "4"),
               "4 positions of 4");
}

/* A mask that grows with the states: a step reads the first part of its file. */
static void masks_grow_with_the_steps(void)
{
    const char *out = test_path("masked.npy"), *model = fixture("masked_decoder/model.onnx");
    const char *states = "past_key_values.*=present.*";
    char input[700], mask[700], output[700];
    snprintf(input, sizeof input, "input_ids=%s", fixture("masked_decoder/tokens.npy"));
    snprintf(mask, sizeof mask, "attention_mask=%s", fixture("masked_decoder/mask.npy"));
    snprintf(output, sizeof output, "logits=%s", out);
    SDLF(0, "run", model, "--input", input, "--input", mask, "--growing", "attention_mask", "--state", states,
         "--steps", "12", "--output", output);
    sdlf_tensor found, expected;
    CHECK_OK(sdlf_tensor_read_file(&found, out));
    CHECK_OK(sdlf_tensor_read_file(&expected, fixture("masked_decoder/logits.npy")));
    if (CHECK_EQUAL(sdlf_tensor_count(&found), sdlf_tensor_count(&expected)))
        for (int64_t i = 0; i < sdlf_tensor_count(&found); i++)
            CHECK_CLOSE((double)((float *)found.data)[i], (double)((float *)expected.data)[i], 1e-4);
    sdlf_tensor_release(&found, NULL);
    sdlf_tensor_release(&expected, NULL);
    CHECK_SAYS(SDLF(2, "run", model, "--input", input, "--growing", "attention_mask"), "--growing needs --state");
    CHECK_SAYS(SDLF(2, "run", model, "--input", input, "--state", states, "--growing", "mask"), "has no such input");
}

/* Scores that are NaN: every class is listed once, without a probability, and the command fails at the end. */
static void run_lists_classes_once(void)
{
    float x[144];
    for (int i = 0; i < 144; i++) x[i] = NAN;
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 1, 12, 12), x);
    CHECK_OK(sdlf_tensor_write_file(&tensor, test_path("nan.npy")));
    const program *p = SDLF(1, "run", "--json", "--top", "3", fixture("small_cnn/model.onnx"), "--input",
                            test_path("nan.npy"), "--calculator", "reference");
    CHECK_SAYS(p, "the network's outputs are not finite: 10 of 10 are NaN or infinite");
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

/* A grey ramp as PGM is an image of one channel, 12x12 after cropping. */
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
                            "--labels", labels, "--preprocess", "unit");
    CHECK_SAYS(p, "seven");
    CHECK_SAYS(p, "ramp.pgm");
    CHECK(strstr(p->err, "warning") == NULL);
    test_write_file(labels, "zero\none\ntwo\n", 13);
    p = SDLF(0, "run", fixture("small_cnn/model.onnx"), "--input", path, "--labels", labels, "--mean", "0", "--std",
             "1");
    CHECK_SAYS(p, "labels.txt: 3 names for 10 classes; they may belong to another model");
    CHECK_SAYS(p, "%"); /* classes are asked for by naming them */
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--input", path),
               "model.onnx: the file does not say how its pictures are preprocessed: expected --preprocess");
#else
    test_skip("this build reads no PGM pictures");
#endif
}

/* Lines of the list have no trailing blanks. */
static void lists_have_no_blanks_at_their_ends(void)
{
    const program *p =
        SDLF(0, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"), "--top", "2");
    CHECK(strstr(p->out, " \n") == NULL && strstr(p->out, "%") != NULL);
}

static void outputs_are_arrays_in_files_of_their_own(void)
{
    const char *model = fixture("moves/model.onnx"), *x = fixture("moves/input_0.pb"), *w = fixture("moves/input_1.pb");
    char same[600], tensor[600];
    snprintf(same, sizeof same, "%s", test_path("same.npy"));
    snprintf(tensor, sizeof tensor, "%s", test_path("y.pb"));
    CHECK_SAYS(SDLF(2, "run", model, "--input", x, "--input", w, "--output", same, "--output", same),
               "same.npy: two outputs cannot be one file");
    CHECK_SAYS(SDLF(2, "run", model, "--input", x, "--input", w, "--output", tensor),
               "y.pb: outputs are written as NumPy arrays");
    CHECK(access(same, F_OK) != 0 && access(tensor, F_OK) != 0);
}

static void samples_without_a_batch_are_told(void)
{
    float x[144] = {0};
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 12, 12), x);
    CHECK_OK(sdlf_tensor_write_file(&tensor, test_path("sample.npy")));
    CHECK_SAYS(SDLF(1, "run", fixture("small_cnn/model.onnx"), "--input", test_path("sample.npy")),
               "one sample without its first dimension, 1x12x12: expected 1x1x12x12");
}

/* Open dimensions get the sizes of the arrays; without an array, --dim specifies them. */
static void open_sizes_are_the_arrays(void)
{
    char model[600], x[600], m[608], other[608];
    snprintf(model, sizeof model, "%s", fixture("open/model.onnx"));
    snprintf(x, sizeof x, "%s", fixture("open/input_0.pb"));
    snprintf(m, sizeof m, "m=%s", fixture("open/input_1.pb"));
    CHECK_SAYS(SDLF(0, "run", model, "--input", x, "--input", m), "y  float32 2x2x7x5");
    CHECK_SAYS(SDLF(1, "run", model, "--input", x, "--input", m, "--dim", "W=4"),
               "input 'x' is 2x1x7x4, but the file has");
    CHECK_SAYS(SDLF(2, "run", model, "--input", m), "input 'x': dimension 3, 'W', is open");
    CHECK_SAYS(SDLF(2, "run", model, "--input", m, "--dim", "W=5"), "input 'x', 2x1x7x5, is missing");
    float values[32] = {0};
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 2, 8, 1), values);
    CHECK_OK(sdlf_tensor_write_file(&tensor, test_path("m.npy")));
    snprintf(other, sizeof other, "m=%s", test_path("m.npy"));
    CHECK_SAYS(SDLF(1, "run", model, "--input", x, "--input", other), "cannot be broadcast together");
}

/* The valid part of an output whose length depends on the input. */
static void outputs_have_their_length(void)
{
    const program *p = SDLF(0, "run", fixture("selected/model.onnx"), "--input", fixture("selected/input_0.pb"));
    CHECK(strstr(p->out, "unique  float32 5  from -2 to 2") != NULL && strstr(p->out, ".length") == NULL);
}

/* Images are normalised as in training; arrays are not, which is reported. */
static void arrays_go_in_as_they_are(void)
{
    char weights[512];
    float values[28 * 28] = {0};
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 1, 28, 28), values);
    snprintf(weights, sizeof weights, "%s", test_path("trained.safetensors"));
    CHECK_OK(sdlf_tensor_write_file(&tensor, test_path("zero.npy")));
    SDLF(0, "train", "--net", "lenet5", "--data", "digits:100", "--epochs", "1", "--no-test", "--out", weights);
    const program *p = SDLF(0, "run", weights, "--input", test_path("zero.npy"));
    CHECK(strstr(p->err, "zero.npy is used unchanged: ") != NULL && strstr(p->err, "normalised, as (x - ") != NULL);
    p = SDLF(0, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"));
    CHECK(strstr(p->err, "is used unchanged") == NULL);
}

static void run_says_what_is_wrong(void)
{
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx")), "input 'image', 1x1x12x12, is missing");
    CHECK_SAYS(SDLF(1, "run", fixture("small_cnn/model.onnx"), "--input", fixture("external/input_0.pb")),
               "input 'image' is 1x1x12x12, but the file has 1x8");
    CHECK_SAYS(SDLF(1, "run", fixture("small_cnn/model.onnx"), "--input", "nobody=x.npy"), "x.npy");
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--mean", "1,2"), "--mean 1,2");
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--mean", "0,nan,0"),
               "--mean 0,nan,0: expected one number");
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--std", "inf"), "--std inf: expected one number");
    const program *early = SDLF(1, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"),
                                "--output", test_path("none/y.npy"));
    CHECK_SAYS(early, "is not there");
    CHECK_TEXT(early->out, ""); /* reported before computing */
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--dim", "height"), "--dim height");
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--dim", "height=3"),
               "leaves a dimension 'height' open");
    CHECK_SAYS(SDLF(2, "doctor", fixture("small_cnn/model.onnx"), "--dim", "height=3"), "dimension 'height' open");
    SDLF(0, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"), "--dim", "N=1");
    CHECK_SAYS(SDLF(1, "run", fixture("small_cnn/model.onnx"), "--labels", test_path("")), "it is a folder");
    CHECK_SAYS(SDLF(2, "run", test_path("net.json")), "expected weights");
    char one[600], two[600];
    snprintf(one, sizeof one, "%s", test_path("one.npy"));
    snprintf(two, sizeof two, "%s", test_path("two.npy"));
    CHECK_SAYS(SDLF(2, "run", fixture("small_cnn/model.onnx"), "--input", fixture("small_cnn/input_0.pb"), "--output",
                    one, "--output", two),
               "two.npy: the model has 1 output");
}

/* 13 MB of activations per sample. */
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

/* Text from a file cannot control the terminal. */
static void names_do_not_steer_the_terminal(void)
{
    const char *path = test_path("escape.onnx"), *labels = test_path("escape.txt");
    sdlf_model *m = sdlf_model_create("escape");
    sdlf_output(m, "y\033[2J", sdlf_relu(m, sdlf_input(m, "x\033[31m", SDLF_FLOAT32, sdlf_shape(1, 12, 12))));
    save_as_onnx(m, path);
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

/* An output of shape 2x0 beside one of two values. */
static void outputs_without_elements(void)
{
    sdlf_model *m = sdlf_model_create("hollow");
    sdlf_output(m, "y", sdlf_relu(m, sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(2))));
    sdlf_output(m, "nothing", sdlf_value(m, &(sdlf_value_options){.shape = sdlf_shape(0, 3)}));
    const char *path = test_path("hollow.onnx"), *input = test_path("x.npy");
    float x[] = {1, -2};
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 2), x);
    CHECK_OK(sdlf_tensor_write_file(&tensor, input));
    save_as_onnx(m, path);
    CHECK_SAYS(SDLF(0, "run", path, "--input", input), "nothing  float32 0x3  no elements");
    CHECK_SAYS(SDLF(0, "run", path, "--input", input, "--top", "2"), "100.0%");
    CHECK_SAYS(SDLF(0, "run", path, "--input", input, "--json", "--top", "2"), "\"mean\": null");
}

/* The name of an output file may contain "=", and that of an input file a newline; outputs need not be numbers. */
static void odd_names_and_numbers(void)
{
    static program p;
    sdlf_model *m = sdlf_model_create("odd");
    sdlf_output(m, "y", sdlf_tanh(m, sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(2))));
    char path[512], input[512];
    snprintf(path, sizeof path, "%s", test_path("odd.onnx"));
    snprintf(input, sizeof input, "%s", test_path("two\nlines.npy"));
    float x[] = {NAN, NAN};
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 2), x);
    CHECK_OK(sdlf_tensor_write_file(&tensor, input));
    save_as_onnx(m, path);
    p = (program){.folder = test_path("")};
    program_run(&p, (const char *const[]){"run", path, "--input", input, "--output", "./a=b.npy", NULL});
    CHECK_EQUAL(p.code, 0);
    CHECK(access(test_path("a=b.npy"), R_OK) == 0);
    CHECK_SAYS(&p, "y  float32 1x2  no element is a number");
    CHECK_SAYS(SDLF(1, "run", path, "--input", input, "--top", "1"), "two?lines.npy\n");
    x[0] = 0;
    CHECK_OK(sdlf_tensor_write_file(&tensor, input));
    CHECK_SAYS(SDLF(0, "run", path, "--input", input), "from 0 to 0, mean nan; 1 of 2 not finite");
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(run_gives_what_was_computed_elsewhere);
    RUN(inputs_that_nothing_reads_may_be_left_out);
    RUN(steps_go_on_from_one_another);
    RUN(masks_grow_with_the_steps);
    RUN(run_lists_classes_once);
    RUN(run_takes_pictures);
    RUN(lists_have_no_blanks_at_their_ends);
    RUN(outputs_are_arrays_in_files_of_their_own);
    RUN(samples_without_a_batch_are_told);
    RUN(open_sizes_are_the_arrays);
    RUN(outputs_have_their_length);
    RUN(arrays_go_in_as_they_are);
    RUN(run_says_what_is_wrong);
    RUN(run_asks_for_no_more_than_there_is);
    RUN(names_do_not_steer_the_terminal);
    RUN(outputs_without_elements);
    RUN(odd_names_and_numbers);
    return test_summary();
}
