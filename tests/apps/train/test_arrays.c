/* SPDX-License-Identifier: MIT */
/* sdlf train, eval and run on arrays that are not images. */
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "testing.h"

enum { COUNT = 200, LENGTH = 3, VOCABULARY = 10 };

static char samples_path[1024], labels_path[1024], net_path[1024], weights_path[1024], set[2100];

static void write_array(char *path, const char *name, sdlf_dtype dtype, sdlf_shape shape, void *data)
{
    snprintf(path, sizeof samples_path, "%s", test_path(name));
    sdlf_tensor tensor = sdlf_tensor_view(dtype, shape, data);
    CHECK_OK(sdlf_tensor_write_file(&tensor, path));
}

static const char *network(const char *text)
{
    snprintf(net_path, sizeof net_path, "%s", test_path("net.json"));
    test_write_file(net_path, text, strlen(text));
    return net_path;
}

#define TRAIN(net, ...)                                                                                                \
    "train", "--net", network(net), "--data", set, "--calculator", "reference", "--batch", "20", "--optimizer",        \
        "adam", "--learning-rate", "0.02", __VA_ARGS__

#define EMBEDDING(dtype)                                                                                               \
    "{\"name\":\"parity\",\"input\":{\"name\":\"tokens\",\"shape\":[3]" dtype "},\"layers\":["                         \
    "{\"type\":\"embedding\",\"vocabulary\":10,\"units\":4},{\"type\":\"flatten\"},"                                   \
    "{\"type\":\"fully_connected\",\"units\":2},{\"type\":\"softmax\"}]}"

/* The class is whether the first token is odd. */
static void write_tokens(void)
{
    int64_t tokens[COUNT * LENGTH], labels[COUNT];
    for (int i = 0; i < COUNT * LENGTH; i++) tokens[i] = i * 37 % 101 % VOCABULARY;
    for (int n = 0; n < COUNT; n++) labels[n] = tokens[n * LENGTH] % 2;
    write_array(samples_path, "tokens.npy", SDLF_INT64, sdlf_shape(COUNT, LENGTH), tokens);
    write_array(labels_path, "labels.npy", SDLF_INT64, sdlf_shape(COUNT), labels);
    snprintf(set, sizeof set, "npy:%s,%s,all", samples_path, labels_path);
    snprintf(weights_path, sizeof weights_path, "%s", test_path("tokens.safetensors"));
}

/* Integer inputs, as in ONNX files, in training, testing and prediction; the same weights. */
static void integers_train_as_floats_do(void)
{
    static const char *const networks[] = {EMBEDDING(",\"dtype\":\"int64\""), EMBEDDING(",\"dtype\":\"int32\""),
                                           EMBEDDING("")};
    char trained[3][64] = {"", "", ""};
    for (int i = 0; i < 3; i++) {
        const char *path = test_path("integers.safetensors");
        const program *p = SDLF(0, TRAIN(networks[i], "--epochs", "8", "--out", path));
        CHECK_SAYS(p, "200 train  200 test  3 as they are\n");
        CHECK_SAYS(p, "\ntest   100.00%");
        const char *at = strstr(p->out, "weights ");
        if (CHECK(at != NULL)) snprintf(trained[i], sizeof trained[i], "%.16s", at);
        CHECK_SAYS(SDLF(0, "eval", "--weights", path, "--data", set, "--calculator", "reference"), "\ntest   100.00%");
        CHECK_SAYS(SDLF(0, "predict", "--weights", path, "--index", "7", samples_path), "tokens.npy  7   ");
    }
    CHECK_TEXT(trained[0], trained[2]);
    CHECK_TEXT(trained[1], trained[2]);
    CHECK_SAYS(SDLF(1, TRAIN("{\"name\":\"n\",\"input\":{\"name\":\"tokens\",\"shape\":[3],\"dtype\":\"int64\"},"
                             "\"layers\":[{\"type\":\"embedding\",\"vocabulary\":2,\"units\":2},"
                             "{\"type\":\"flatten\"},{\"type\":\"fully_connected\",\"units\":2},"
                             "{\"type\":\"softmax\"}]}",
                             "--no-save")),
               "of input 'tokens', is out of range: expected -2 to 1");
    SDLF(0, "info", "--net", net_path, "--time", "--calculator", "reference"); /* with integers that index any table */
}

static void tokens_are_taken_as_they_are(void)
{
    write_tokens();
    const program *p = SDLF(0, TRAIN(EMBEDDING(""), "--epochs", "8", "--out", weights_path));
    CHECK_SAYS(p, "200 train  200 test  3 as they are\n");
    CHECK_SAYS(p, "\ntest   100.00%");
    p = SDLF(0, "eval", "--weights", weights_path, "--calculator", "reference");
    CHECK_SAYS(p, "200 test  3 as they are\n");
    CHECK_SAYS(p, "\ntest   100.00%");
    p = SDLF(0, TRAIN(EMBEDDING(""), "--epochs", "8", "--normalize", "none", "--no-save"));
    CHECK_SAYS(p, "\ntest   100.00%");
    CHECK_SAYS(SDLF(2, TRAIN(EMBEDDING(""), "--normalize", "unit", "--no-save")),
               "--normalize unit: samples are tokens, which have no brightness");
    integers_train_as_floats_do();
    static const char numbers[] = "{\"name\":\"n\",\"input\":{\"name\":\"x\",\"shape\":[3]},\"layers\":["
                                  "{\"type\":\"fully_connected\",\"units\":2},{\"type\":\"softmax\"}]}";
    p = SDLF(0, TRAIN(numbers, "--epochs", "1", "--no-save")); /* integers that are not indices are normalised */
    CHECK_SAYS(p, "200 train  200 test  3\n");
}

/* One pair of arrays: a part is held out, which is reported, and tested again by eval; another set is tested whole. */
static void a_part_is_held_out(void)
{
    char test[64], all[2100];
    snprintf(all, sizeof all, "%s", set);
    *strrchr(set, ',') = '\0';
    const program *p = SDLF(0, TRAIN(EMBEDDING(""), "--epochs", "8", "--out", weights_path));
    CHECK_SAYS(p, " test, held out  3 as they are\n");
    const char *found = strstr(p->out, "\ntest   ");
    if (!CHECK(found != NULL)) return;
    snprintf(test, sizeof test, "%.40s", found);
    *strstr(test, " right") = '\0';
    CHECK(strstr(test, " of 200") == NULL);
    CHECK_SAYS(SDLF(0, "eval", "--weights", weights_path, "--calculator", "reference"), test);
    CHECK_SAYS(SDLF(0, "eval", "--weights", weights_path, "--data", all, "--calculator", "reference"), " of 200 right");
    CHECK_SAYS(SDLF(0, TRAIN(EMBEDDING(""), "--epochs", "1", "--test-data", all, "--no-save")),
               "160 train  200 test  3");
    snprintf(all, sizeof all, "npy:/.%s,/./%s", samples_path, labels_path); /* the same files */
    CHECK_SAYS(SDLF(0, "eval", "--weights", weights_path, "--data", all, "--calculator", "reference"), test);
    CHECK_SAYS(SDLF(0, TRAIN(EMBEDDING(""), "--epochs", "1", "--test-data", all, "--no-save")), " test, held out  3");
    snprintf(all, sizeof all, "npy:%s,%s", labels_path, labels_path);
    CHECK_SAYS(SDLF(1, TRAIN(EMBEDDING(""), "--epochs", "1", "--test-data", all, "--no-save")), "labels.npy");
    strcat(set, ",all");
}

static void integers_go_into_float_inputs(void)
{
    const program *p = SDLF(0, "run", weights_path, "--input", samples_path, "--calculator", "reference");
    CHECK_TEXT(p->err, "");
    CHECK_SAYS(p, "float32 200x2");
    int64_t large[] = {1, 2, 16777217}, even[] = {1, 2, 9}, huge[] = {1, 2, INT64_MAX};
    write_array(samples_path, "x.npy", SDLF_INT64, sdlf_shape(1, 3), large);
    CHECK_SAYS(SDLF(1, "run", weights_path, "--input", samples_path),
               "input 'tokens' is of float32, but the file's elements are of int64, which are not all numbers of that "
               "type");
    write_array(samples_path, "x.npy", SDLF_INT64, sdlf_shape(1, 3), huge);
    CHECK_SAYS(SDLF(1, "run", weights_path, "--input", samples_path), "not all numbers of that type");
    write_array(samples_path, "x.npy", SDLF_INT64, sdlf_shape(1, 3), even);
    SDLF(0, "run", weights_path, "--input", samples_path);
}

/* (N,T,F) and images of 12 channels: the class is whether the first value is above 0. */
static void shapes_are_those_of_the_network(void)
{
    static float x[COUNT * 12 * 4];
    int64_t labels[COUNT];
    for (int i = 0; i < COUNT * 48; i++) x[i] = (float)(i * 37 % 101 - 50) / 25;
    for (int n = 0; n < COUNT; n++) labels[n] = x[n * 48] > 0;
    write_array(labels_path, "labels.npy", SDLF_INT64, sdlf_shape(COUNT), labels);
    write_array(samples_path, "x.npy", SDLF_FLOAT32, sdlf_shape(COUNT, 12, 4), x);
    snprintf(set, sizeof set, "npy:%s,%s", samples_path, labels_path);
    static const char layers[] = "},\"layers\":[{\"type\":\"flatten\"},{\"type\":\"fully_connected\",\"units\":2},"
                                 "{\"type\":\"softmax\"}]}";
    char sequence[400], channels[400];
    snprintf(sequence, sizeof sequence, "{\"name\":\"s\",\"input\":{\"name\":\"x\",\"shape\":[12,4]%s", layers);
    snprintf(channels, sizeof channels, "{\"name\":\"c\",\"input\":{\"name\":\"x\",\"shape\":[12,2,2]%s", layers);
    snprintf(weights_path, sizeof weights_path, "%s", test_path("s.safetensors"));
    const program *p = SDLF(0, TRAIN(sequence, "--epochs", "10", "--out", weights_path));
    CHECK_SAYS(p, "160 train  40 test, held out  12x4\n");
    CHECK_SAYS(p, "\ntest   100.00%");
    CHECK_SAYS(SDLF(0, "eval", "--weights", weights_path, "--calculator", "reference"), "40 test, held out  12x4\n");
    SDLF(0, TRAIN(sequence, "--epochs", "1", "--normalize", "none", "--no-save"));
    CHECK_SAYS(SDLF(2, TRAIN(sequence, "--augment-flip", "--no-save")), "--augment-flip changes pictures, but");
    CHECK_SAYS(SDLF(1, TRAIN(channels, "--no-save")), "takes samples of 12x2x2, but those of npy");
    CHECK_SAYS(SDLF(2, "train", "--net", "mlp", "--data", set, "--size", "8", "--no-save"),
               "--size 8 scales pictures of folders, but samples of npy");
    write_array(samples_path, "x.npy", SDLF_FLOAT32, sdlf_shape(COUNT, 12, 2, 2), x);
    CHECK_SAYS(SDLF(0, TRAIN(channels, "--epochs", "10", "--no-save")), "40 test, held out  12x2x2\n");
}

int main(void)
{
    RUN(tokens_are_taken_as_they_are);
    RUN(a_part_is_held_out);
    RUN(integers_go_into_float_inputs);
    RUN(shapes_are_those_of_the_network);
    return test_summary();
}
