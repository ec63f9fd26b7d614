/* SPDX-License-Identifier: MIT */
/* sdlf predict: the same answers as from the library, for every type of input file. */
#include "testing.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "onnx/fixtures.h"

#define CALCULATOR "--calculator", "reference"

enum { COUNT = 10, PIXELS = 28 * 28 };

#if defined SDLF_HAVE_TURBOJPEG
enum { HAVE_TURBOJPEG = true };
#else
enum { HAVE_TURBOJPEG = false };
#endif

/* Created once: weights, and the first images of a data set, in one file each and as one IDX file. The separate files
 * are PGM if this build reads it, otherwise IDX. */
static char weights[512], idx[512], single[COUNT][512], negative[512];
static float expected[COUNT][10]; /* probabilities, by the library */

static void write_picture(const char *path, const uint8_t *pixels, int flip)
{
    static const uint8_t idx_header[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28};
    static const char pgm_header[] = "P5 28 28 255\n";
    uint8_t file[32 + PIXELS];
    size_t head = HAVE_TURBOJPEG ? sizeof pgm_header - 1 : sizeof idx_header;
    memcpy(file, HAVE_TURBOJPEG ? (const void *)pgm_header : idx_header, head);
    for (int i = 0; i < PIXELS; i++) file[head + (size_t)i] = (uint8_t)(flip ? 255 - pixels[i] : pixels[i]);
    test_write_file(path, file, head + PIXELS);
}

static void write_files(const sdlf_dataset *set)
{
    const uint8_t *pixels = set->samples.data;
    static uint8_t file[16 + COUNT * PIXELS] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, 28, 0, 0, 0, 28};
    memcpy(file + 16, pixels, COUNT * PIXELS);
    snprintf(idx, sizeof idx, "%s", test_path("pictures-idx3-ubyte"));
    test_write_file(idx, file, sizeof file);
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.picture", i);
        snprintf(single[i], sizeof single[i], "%s", test_path(name));
        write_picture(single[i], pixels + i * PIXELS, 0);
    }
    snprintf(negative, sizeof negative, "%s", test_path("negative.picture"));
    write_picture(negative, pixels, 1);
}

static void compute_expected(const sdlf_dataset *set)
{
    sdlf_model *model = NULL;
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    static float input[COUNT * PIXELS];
    CHECK_OK(sdlf_model_open(&model, weights));
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = COUNT, .forward = calculator}));
    const sdlf_normalization *normal = sdlf_model_normalization(model);
    for (int i = 0; i < COUNT * PIXELS; i++) {
        input[i] = ((float)((const uint8_t *)set->samples.data)[i] - normal->mean) * normal->scale;
    }
    CHECK_OK(test_plan_write(plan, "image", input));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "output", expected));
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

static void prepare(void)
{
    snprintf(weights, sizeof weights, "%s", test_path("small.safetensors"));
    SDLF(0, "train", "--net", small_network(), "--data", "digits:3000", "--epochs", "10", CALCULATOR, "--out", weights);
    sdlf_dataset *set = NULL;
    if (!CHECK_OK(sdlf_dataset_open(&set, "digits:600,9", SDLF_SPLIT_TEST))) return;
    write_files(set);
    compute_expected(set);
    sdlf_dataset_free(set);
}

static int likeliest(const float *probability)
{
    int best = 0;
    for (int i = 1; i < 10; i++) best = probability[i] > probability[best] ? i : best;
    return best;
}

/* Check that entry `at` of the output of --json is image `index`. */
static void check_entry(const program *p, size_t at, int index)
{
    json_t *results = json_loads(p->out, 0, NULL), *entry = json_array_get(results, at);
    if (!CHECK(json_is_object(entry))) return;
    CHECK_EQUAL(json_integer_value(json_object_get(entry, "class")), likeliest(expected[index]));
    json_t *probabilities = json_object_get(entry, "probabilities");
    CHECK_EQUAL((int64_t)json_array_size(probabilities), 10);
    for (size_t i = 0; i < 10; i++) {
        CHECK_CLOSE(json_number_value(json_array_get(probabilities, i)), (double)expected[index][i], 1e-6);
    }
    json_decref(results);
}

static void every_file_has_the_same_answer(void)
{
    const program *p =
        SDLF(0, "predict", "--weights", weights, CALCULATOR, "--json", single[0], single[1], single[2], negative);
    for (int i = 0; i < 3; i++) check_entry(p, (size_t)i, i);
    check_entry(p, 3, 0); /* black on white, seen as white on black */
    for (int i = 0; i < COUNT; i += 3) {
        char index[16];
        snprintf(index, sizeof index, "%d", i);
        check_entry(SDLF(0, "predict", "--weights", weights, CALCULATOR, "--json", "--index", index, idx), 0, i);
    }
}

static void text_lines_up(void)
{
    const program *p = SDLF(0, "predict", "--weights", weights, CALCULATOR, "--top", "2", single[0], single[1]);
    for (int i = 0; i < 2; i++) {
        char line[600];
        int best = likeliest(expected[i]);
        snprintf(line, sizeof line, "%.511s   %d  %5.1f%%   ", single[i], best, 100 * (double)expected[i][best]);
        CHECK_SAYS(p, line);
    }
}

static void pictures_are_drawn(void)
{
    setenv("LC_ALL", "C", 1);
    const program *p = SDLF(0, "predict", "--weights", weights, CALCULATOR, "--draw", single[0]);
    CHECK_SAYS(p, "@@");
    int lines = 0;
    for (const char *c = p->out; *c; c++) lines += *c == '\n';
    CHECK_EQUAL(lines, 1 + 28);
    unsetenv("LC_ALL");
}

/* Unreadable files are reported, and the others are classified. */
static void bad_pictures(void)
{
    const char *text = test_path("text.png");
    test_write_file(text, "I am no picture", 15);
    const program *p = SDLF(1, "predict", "--weights", weights, CALCULATOR, text, "/nowhere.png", single[0]);
    CHECK_SAYS(p, "text.png");
    CHECK_SAYS(p, "/nowhere.png");
    CHECK(strstr(p->out, single[0]) != NULL);
    CHECK_SAYS(SDLF(2, "predict", "--weights", weights, CALCULATOR), "a picture, an array or a table is missing");
    CHECK_SAYS(SDLF(1, "predict", "--weights", weights, CALCULATOR, "--index", "99", idx), "99");
    CHECK_SAYS(SDLF(1, "predict", "--weights", single[0], CALCULATOR, single[0]),
               "expected weights, in a safetensors or an ONNX file");
}

/* One NaN among the weights of the last layer: every output is NaN, and no class is the most likely. */
static void outputs_that_are_not_finite(void)
{
    const char *path = test_path("nan.safetensors");
    sdlf_model *model = NULL;
    if (!CHECK_OK(sdlf_model_open(&model, weights))) return;
    const sdlf_parameter *bias = sdlf_model_parameter(model, sdlf_model_parameter_count(model) - 1);
    *(float *)bias->value.data = NAN;
    CHECK_OK(sdlf_model_save(model, path));
    sdlf_model_free(model);
    for (int json = 0; json < 2; json++) {
        const program *p = SDLF(1, "predict", "--weights", path, CALCULATOR, single[0], json ? "--json" : "--top=3");
        CHECK_SAYS(p, "0.picture: the network's outputs are not finite: 10 of 10 are NaN or infinite");
        CHECK_TEXT(p->out, json ? "[]\n" : "");
    }
}

/* Files of networks trained by SDLF, including ONNX, state how images are normalised; for other networks it must be
 * specified. */
static void files_say_how_pictures_are_normalised(void)
{
    char onnx[512];
    snprintf(onnx, sizeof onnx, "%s", test_path("small.onnx"));
    const char *const known[] = {"predict", "--weights", onnx, CALCULATOR, "--json", single[0], single[1], NULL};
    if (onnx_available()) {
        SDLF(0, "export", weights, "-o", onnx);
        const program *p = sdlf_run(__FILE__, __LINE__, 0, known);
        for (int i = 0; i < 2; i++) check_entry(p, (size_t)i, i);
    }
    sdlf_model *model = NULL;
    const char *path = test_path("silent.safetensors");
    char mean[32], std[32];
    if (!CHECK_OK(sdlf_model_open(&model, weights))) return;
    const sdlf_normalization own = *sdlf_model_normalization(model);
    *sdlf_model_normalization(model) = (sdlf_normalization){.scale = 1};
    CHECK_OK(sdlf_model_save(model, path));
    sdlf_model_free(model);
    const program *p = SDLF(2, "predict", "--weights", path, CALCULATOR, single[0]);
    CHECK_SAYS(p,
               "silent.safetensors: the file does not say how its pictures are preprocessed: expected --preprocess ");
    CHECK_TEXT(p->out, "");
    snprintf(mean, sizeof mean, "%.9g", (double)own.mean / 255);
    snprintf(std, sizeof std, "%.9g", 1 / (255 * (double)own.scale));
    check_entry(SDLF(0, "predict", "--weights", path, CALCULATOR, "--json", "--mean", mean, "--std", std, single[2]), 0,
                2);
    SDLF(0, "predict", "--weights", path, CALCULATOR, "--preprocess", "none", single[0]);
}

static void classes_have_names(void)
{
    const char *names = test_path("names");
    char label[32], text[] = "n0\nn1\nn2\nn3\nn4\nn5\nn6\nn7\nn8\nn9\n";
    test_write_file(names, text, sizeof text - 1);
    snprintf(label, sizeof label, "%%  n%d\n", likeliest(expected[0]));
    CHECK_SAYS(SDLF(0, "predict", "--weights", weights, CALCULATOR, "--labels", names, single[0]), label);
    CHECK_SAYS(SDLF(0, "predict", "--weights", weights, CALCULATOR, "--labels", names, "--json", single[0]),
               "\"label\": \"n");
}

/* The same images as an array, and as rows of a table, with and without a column of labels. */
static void rows_of_arrays_and_tables(void)
{
    static char text[COUNT * (4 * PIXELS + 16)];
    static uint8_t file[128 + COUNT * PIXELS];
    char array[512], table[512], labelled[512];
    sdlf_dataset *set = NULL;
    if (!CHECK_OK(sdlf_dataset_open(&set, "digits:600,9", SDLF_SPLIT_TEST))) return;
    const uint8_t *pixels = set->samples.data;
    memset(file, ' ', 128);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00{'descr': '|u1', 'fortran_order': False, 'shape': (10, 28, 28), }", 76);
    memcpy(file + 128, pixels, COUNT * PIXELS);
    snprintf(array, sizeof array, "%s", test_path("pictures.npy"));
    test_write_file(array, file, sizeof file);
    for (int labels = 0; labels < 2; labels++) {
        size_t used = 0;
        for (int i = 0; i < COUNT; i++) {
            for (int k = 0; k < PIXELS; k++)
                used += (size_t)sprintf(text + used, "%s%d", k > 0 ? "," : "", pixels[i * PIXELS + k]);
            used += (size_t)sprintf(text + used, labels ? ",name\n" : "\n");
        }
        snprintf(labels ? labelled : table, sizeof table, "%s", test_path(labels ? "labelled.csv" : "rows.csv"));
        test_write_file(labels ? labelled : table, text, used);
    }
    sdlf_dataset_free(set);
    const program *p =
        SDLF(0, "predict", "--weights", weights, CALCULATOR, "--json", array, single[1], table, labelled);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 3; k++) check_entry(p, (size_t)(i + k * COUNT + (k > 0)), i);
    check_entry(p, COUNT, 1);
    check_entry(SDLF(0, "predict", "--weights", weights, CALCULATOR, "--json", "--index", "7", table), 0, 7);
    char line[600];
    snprintf(line, sizeof line, "%.511s  9   %d  ", array, likeliest(expected[9]));
    CHECK_SAYS(SDLF(0, "predict", "--weights", weights, CALCULATOR, array), line);
    CHECK_SAYS(SDLF(0, "predict", "--weights", weights, CALCULATOR, labelled),
               "labelled.csv: column '785' is taken for labels, and is ignored: the network expects 784 numbers");
    CHECK_SAYS(SDLF(1, "predict", "--weights", weights, CALCULATOR, "--index", "10", array), "there is no row 10");
    CHECK_SAYS(SDLF(2, "predict", "--weights", weights, CALCULATOR, "--fit", "crop", array), "--fit is for pictures");
    CHECK_SAYS(SDLF(2, "predict", "--weights", weights, CALCULATOR, "--draw", single[0], table), "--draw is for");
    test_write_file(table, "1,2,3\n", 6);
    CHECK_SAYS(SDLF(1, "predict", "--weights", weights, CALCULATOR, table),
               "rows.csv: expected samples of 1x28x28, which the network expects, found 3");
}

/* Rows of numbers, for a network that is not for images, with the class names in its file. */
static void classes_of_a_table_have_names(void)
{
    char table[512], specification[600], path[512], text[4096];
    size_t used = 0;
    for (int i = 0; i < 64; i++) used += (size_t)sprintf(text + used, "%d,%d,%s\n", i, 63 - i, i < 32 ? "low" : "high");
    snprintf(table, sizeof table, "%s", test_path("levels.csv"));
    test_write_file(table, text, used);
    snprintf(specification, sizeof specification, "csv:%s", table);
    snprintf(path, sizeof path, "%s", test_path("levels.safetensors"));
    SDLF(0, "train", "--data", specification, "--net", "mlp", CALCULATOR, "--epochs", "20", "--batch", "8", "--out",
         path);
    const program *p = SDLF(0, "predict", "--weights", path, CALCULATOR, table);
    CHECK(strstr(p->out, "levels.csv  0   1  ") != NULL && strstr(p->out, "%  low\n") != NULL);
    CHECK(strstr(p->out, "levels.csv  63   0  ") != NULL && strstr(p->out, "%  high\n") != NULL);
}

/* A table of two values and three float targets, with a header or without: the targets' columns are not inputs. */
static void targets_of_a_table(void)
{
    char table[512], bare[512], order[512], inputs[512], path[512], specification[600], text[8192];
    snprintf(table, sizeof table, "%s", test_path("targets.csv"));
    snprintf(bare, sizeof bare, "%s", test_path("bare.csv"));
    snprintf(order, sizeof order, "%s", test_path("order.csv"));
    snprintf(inputs, sizeof inputs, "%s", test_path("inputs.csv"));
    snprintf(path, sizeof path, "%s", test_path("targets.safetensors"));
    char *const files[] = {table, bare, order, inputs};
    for (int f = 0; f < 4; f++) {
        static const char *const headers[] = {"a,b,sum,half,less\n", "", "sum,half,less,a,b\n", "a,b\n"};
        size_t used = (size_t)sprintf(text, "%s", headers[f]);
        for (int i = 0; i < 64; i++) {
            int a = i, b = i * 7 % 13;
            if (f < 2) used += (size_t)sprintf(text + used, "%d,%d,%d,%g,%d\n", a, b, a + b, 0.5 * a, a - b);
            if (f == 2) used += (size_t)sprintf(text + used, "%d,%g,%d,%d,%d\n", a + b, 0.5 * a, a - b, a, b);
            if (f == 3) used += (size_t)sprintf(text + used, "%d,%d\n", a, b);
        }
        test_write_file(files[f], text, used);
    }
    snprintf(specification, sizeof specification, "csv:%s,label=sum..less", table);
    SDLF(0, "train", "--data", specification, "--net", "mlp", CALCULATOR, "--loss", "mse", "--epochs", "3", "--out",
         path, "--quiet");
    const program *p = SDLF(0, "predict", "--weights", path, CALCULATOR, "--index", "5", inputs);
    char *expected_values = strdup(strstr(p->out, "inputs.csv") ? strstr(p->out, "inputs.csv") + 10 : p->out);
    CHECK(strstr(expected_values, "sum ") != NULL && strstr(expected_values, "less ") != NULL);
    CHECK_TEXT(p->err, "");
    static const char *const told[] = {"targets.csv: columns 'sum..less' are taken for labels, and are ignored",
                                       "bare.csv: columns '3..5' are taken for labels, and are ignored",
                                       "order.csv: columns 'sum..less' are taken for labels, and are ignored"};
    for (int f = 0; f < 3; f++) {
        p = SDLF(0, "predict", "--weights", path, CALCULATOR, "--index", "5", files[f]);
        CHECK_SAYS(p, expected_values);
        CHECK_SAYS(p, told[f]);
    }
    p = SDLF(0, "predict", "--weights", path, CALCULATOR, "--index", "5", "--label", "1..3", order);
    CHECK_SAYS(p, expected_values);
    CHECK_TEXT(p->err, "");
    free(expected_values);
    CHECK_SAYS(SDLF(1, "predict", "--weights", path, CALCULATOR, "--label", "none", order),
               "label=none: expected the name");
    CHECK_SAYS(SDLF(1, "predict", "--weights", path, CALCULATOR, "--label", "sum", order),
               "expected samples of 2, which the network expects, found 4");
    CHECK_SAYS(SDLF(2, "predict", "--weights", path, CALCULATOR, "--label", "sum", "x.npy"), "--label is for tables");
}

/* A network trained on ImageNet elsewhere classifies three images correctly, but only if they are preprocessed as in
 * its training. */
static void a_network_for_imagenet(void)
{
    static const struct {
        const char *file;
        int class; /* of 1001; the expected first three are in the data's TOP3.txt */
    } pictures[] = {{"images/cat.jpg", 282}, {"images/dog.jpg", 250}, {"images/hot_dog.jpg", 935}};
    const char *packed = test_data("onnx/mobilenetv2/mobilenetv2_1.0_224_fp32.onnx.gz");
    if (packed == NULL || !onnx_available() || !HAVE_TURBOJPEG) {
        test_skip("there is no network in SDLF_DATA, or it or its pictures cannot be read");
        return;
    }
    char command[2048], onnx[512], path[1024];
    snprintf(onnx, sizeof onnx, "%s", test_path("mobilenetv2.onnx"));
    snprintf(command, sizeof command, "gzip -dc '%s' > '%s'", packed, onnx);
    if (!CHECK(system(command) == 0)) return;
    for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
        const char *picture = test_data(pictures[i].file);
        if (picture == NULL) continue;
        snprintf(path, sizeof path, "%s", picture);
        CHECK_SAYS(SDLF(2, "predict", "--weights", onnx, path), "expected --preprocess imagenet, tf, unit or none");
        const program *p = SDLF(0, "predict", "--weights", onnx, "--preprocess", "tf", "--json", path);
        json_t *results = json_loads(p->out, 0, NULL);
        CHECK_EQUAL(json_integer_value(json_object_get(json_array_get(results, 0), "class")), pictures[i].class);
        json_decref(results);
    }
}

int main(void)
{
    if (!HAVE_TURBOJPEG) puts("PGM files are not tested: built without libturbojpeg");
    RUN(prepare);
    RUN(every_file_has_the_same_answer);
    RUN(text_lines_up);
    RUN(pictures_are_drawn);
    RUN(bad_pictures);
    RUN(outputs_that_are_not_finite);
    RUN(files_say_how_pictures_are_normalised);
    RUN(classes_have_names);
    RUN(rows_of_arrays_and_tables);
    RUN(classes_of_a_table_have_names);
    RUN(targets_of_a_table);
    RUN(a_network_for_imagenet);
    return test_summary();
}
