/* SPDX-License-Identifier: MIT */
/* The npy data set, on two arrays written by the test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/dataset.h>

#include "testing.h"

enum { IMAGES = 4 };

/* Write a file of version 1.0 with this type and shape ("(4,)"), and bytes whose values are their indices. */
static void write_array(const char *name, const char *type, const char *shape, const void *data, size_t size)
{
    char header[128], text[119];
    unsigned char counted[4096];
    for (size_t i = 0; i < sizeof counted; i++) counted[i] = (unsigned char)i;
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(header + 10, text, (size_t)length);
    header[127] = '\n';
    unsigned char *bytes = malloc(sizeof header + size);
    if (bytes == NULL) abort();
    memcpy(bytes, header, sizeof header);
    memcpy(bytes + sizeof header, data != NULL ? data : counted, size);
    test_write_file(test_path(name), bytes, sizeof header + size);
    free(bytes);
}

static sdlf_status open_with(sdlf_dataset **data, const sdlf_dataset_options *options)
{
    char specification[2048], images[1024];
    snprintf(images, sizeof images, "%s", test_path("images.npy"));
    snprintf(specification, sizeof specification, "npy:%s,%s,all", images, test_path("labels.npy"));
    return sdlf_dataset_open_with(data, specification, SDLF_SPLIT_TRAIN, options);
}

static sdlf_status open_it(sdlf_dataset **data, bool outline)
{
    return open_with(data, &(sdlf_dataset_options){.outline = outline});
}

static void check_images(const char *shape, size_t size, sdlf_shape wanted, int second)
{
    sdlf_dataset *data = NULL;
    write_array("images.npy", "|u1", shape, NULL, size);
    if (!CHECK_OK(open_it(&data, false))) return;
    CHECK(sdlf_shape_equal(data->samples.shape, wanted));
    const uint8_t *pixel = data->samples.data;
    CHECK(pixel[0] == 0 && pixel[1] == second);
    CHECK_EQUAL(data->channels.count, wanted.dim[1]);
    sdlf_dataset_free(data);
    if (CHECK_OK(open_it(&data, true)))
        CHECK(data->samples.data == NULL && sdlf_shape_equal(data->samples.shape, wanted));
    sdlf_dataset_free(data);
}

static void images_of_every_layout(void)
{
    const int32_t labels[IMAGES] = {2, 0, 1, 2};
    write_array("labels.npy", "<i4", "(4,)", labels, sizeof labels);
    check_images("(4, 5, 6)", 120, sdlf_shape(IMAGES, 1, 5, 6), 1);
    check_images("(4, 5, 6, 3)", 360, sdlf_shape(IMAGES, 3, 5, 6), 3);
    check_images("(4, 3, 5, 6)", 360, sdlf_shape(IMAGES, 3, 5, 6), 1);
    check_images("(4, 5, 6, 1)", 120, sdlf_shape(IMAGES, 1, 5, 6), 1);
    check_images("(4, 3, 5, 2)", 120, sdlf_shape(IMAGES, 2, 3, 5), 2); /* both could be meant */
}

/* Samples of any rank, as the network's input specifies; one mean for sequences. */
static void samples_as_the_network_takes_them(void)
{
    static const struct {
        const char *shape;
        sdlf_shape takes, wanted;
        int second, channels;
        size_t size;
    } cases[] = {
        {"(4, 5, 6)", {2, {5, 6}}, {3, {IMAGES, 5, 6}}, 1, 0, 120},
        {"(4, 5, 6)", {3, {1, 5, 6}}, {4, {IMAGES, 1, 5, 6}}, 1, 1, 120},
        {"(4, 1, 5, 6)", {2, {5, 6}}, {3, {IMAGES, 5, 6}}, 1, 0, 120},
        {"(4, 5, 6)", {4, {1, 1, 5, 6}}, {5, {IMAGES, 1, 1, 5, 6}}, 1, 1, 120},
        {"(4, 12, 5, 6)", {3, {12, 5, 6}}, {4, {IMAGES, 12, 5, 6}}, 1, 12, 1440},
        {"(4, 3, 5, 2)", {3, {3, 5, 2}}, {4, {IMAGES, 3, 5, 2}}, 1, 3, 120}, /* 2 channels behind would not fit */
        {"(4, 3, 3, 3)", {3, {3, 3, 3}}, {4, {IMAGES, 3, 3, 3}}, 3, 3, 108}, /* these do */
        {"(4, 2, 3, 4, 5)", {4, {2, 3, 4, 5}}, {5, {IMAGES, 2, 3, 4, 5}}, 1, 2, 480},
        {"(4,)", {1, {1}}, {2, {IMAGES, 1}}, 1, 1, 4},
        {"(4, 5, 6)", {2, {6, 5}}, {4, {IMAGES, 1, 5, 6}}, 1, 1, 120}, /* which is told of later */
    };
    write_array("labels.npy", "|u1", "(4,)", NULL, 4);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sdlf_dataset *data = NULL;
        write_array("images.npy", "|u1", cases[i].shape, NULL, cases[i].size);
        for (int outline = 0; outline < 2; outline++) {
            const sdlf_dataset_options options = {.sample = cases[i].takes, .outline = outline};
            if (!CHECK_OK(open_with(&data, &options))) continue;
            CHECK(sdlf_shape_equal(data->samples.shape, cases[i].wanted));
            if (!outline) CHECK_EQUAL(data->channels.count, cases[i].channels);
            if (!outline) CHECK_EQUAL(((const uint8_t *)data->samples.data)[1], cases[i].second);
            sdlf_dataset_free(data);
        }
    }
    sdlf_dataset *data = NULL;
    write_array("images.npy", "|u1", "(4, 5, 5, 5)", NULL, 500);
    CHECK_FAILS(open_with(&data, &(sdlf_dataset_options){.sample = sdlf_shape(7, 5, 5)}), SDLF_ERROR_FORMAT,
                "or rows (N,F), or (N,7x5x5), the input of the network, found uint8 of (4x5x5x5)");
}

static void labels_of_every_type(void)
{
    const uint8_t bytes[IMAGES] = {7, 0, 1, 2};
    const int32_t ints[IMAGES] = {7, 0, 1, 2};
    const int64_t longs[IMAGES] = {7, 0, 1, 2};
    const struct {
        const char *type;
        const void *data;
        size_t size;
    } cases[] = {{"|u1", bytes, sizeof bytes}, {"<i4", ints, sizeof ints}, {"<i8", longs, sizeof longs}};
    write_array("images.npy", "|u1", "(4, 2, 2)", NULL, 16);
    for (int i = 0; i < 3; i++) {
        sdlf_dataset *data = NULL;
        write_array("labels.npy", cases[i].type, "(4,)", cases[i].data, cases[i].size);
        if (!CHECK_OK(open_it(&data, false))) continue;
        for (int k = 0; k < IMAGES; k++) CHECK_EQUAL(((const int32_t *)data->labels.data)[k], ints[k]);
        CHECK_EQUAL(data->class_count, 8);
        sdlf_dataset_free(data);
    }
}

/* Numbers other than bytes become float32, and rows of them are samples too. */
static void numbers_of_every_type(void)
{
    const float floats[8] = {0, 1, 2, 3, 4, 5, 6, -7};
    const double doubles[8] = {0, 1, 2, 3, 4, 5, 6, -7};
    const int32_t ints[8] = {0, 1, 2, 3, 4, 5, 6, -7};
    const struct {
        const char *type;
        const void *data;
        size_t size;
    } cases[] = {{"<f4", floats, sizeof floats}, {"<f8", doubles, sizeof doubles}, {"<i4", ints, sizeof ints}};
    write_array("labels.npy", "|u1", "(4,)", NULL, 4);
    for (int i = 0; i < 6; i++) {
        sdlf_dataset *data = NULL;
        write_array("images.npy", cases[i / 2].type, i % 2 ? "(4, 2)" : "(4, 1, 1, 2)", cases[i / 2].data,
                    cases[i / 2].size);
        if (!CHECK_OK(open_it(&data, false))) continue;
        CHECK(data->samples.dtype == SDLF_FLOAT32 &&
              sdlf_shape_equal(data->samples.shape, i % 2 ? sdlf_shape(4, 2) : sdlf_shape(4, 2, 1, 1)));
        for (int k = 0; k < 8; k++) CHECK_EQUAL((int)((const float *)data->samples.data)[k], ints[k]);
        CHECK_EQUAL(data->channels.count, 2);
        CHECK_CLOSE(data->channels.mean[0], 3, 1e-6);
        sdlf_dataset_free(data);
    }
}

static void refused(const char *words)
{
    sdlf_dataset *data = NULL;
    CHECK_FAILS(open_it(&data, false), SDLF_ERROR_FORMAT, words);
    CHECK(data == NULL);
}

static void wrong_arrays(void)
{
    const int32_t labels[IMAGES] = {2, 0, -1, 2};
    const float reals[IMAGES] = {0, 1, 0.5f, 2};
    sdlf_dataset *data = NULL;
    CHECK_FAILS(sdlf_dataset_open(&data, "npy:images.npy", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT,
                "npy: expected npy:IMAGES,LABELS[,all], found 'npy:images.npy'");
    CHECK_FAILS(sdlf_dataset_open(&data, "npy", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "found 'npy:'");
    CHECK_FAILS(sdlf_dataset_check("npy:/not/there,x", SDLF_SPLIT_TRAIN), SDLF_ERROR_IO, "/not/there");
    write_array("images.npy", "|u1", "(4, 2, 2)", NULL, 16);
    write_array("labels.npy", "<i4", "(4,)", labels, sizeof labels);
    refused("labels.npy: label 2: expected 0 to 1048575, found -1");
    write_array("labels.npy", "<f4", "(4,)", reals, sizeof reals);
    refused("labels.npy: expected 4 labels, one for each image or each of its pixels, uint8, int32 or int64, found "
            "float32 of (4)");
    write_array("labels.npy", "|u1", "(3,)", NULL, 3);
    refused("found uint8 of (3)");
    write_array("images.npy", "|u1", "(4, 5, 5, 5)", NULL, 500);
    refused("found uint8 of (4x5x5x5)");
    write_array("images.npy", "|u1", "(16,)", NULL, 16);
    refused("found uint8 of (16)");
    write_array("images.npy", "|u1", "(4, 2, 2)", NULL, 15);
    refused("images.npy");
}

static sdlf_status open_and_close(void *unused)
{
    (void)unused;
    sdlf_dataset *data = NULL;
    sdlf_status status = open_it(&data, false);
    sdlf_dataset_free(data);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    write_array("images.npy", "|u1", "(4, 2, 2, 3)", NULL, 48);
    write_array("labels.npy", "|u1", "(4,)", NULL, 4);
    test_every_allocation("npy", open_and_close, NULL);
}

static sdlf_status open_targets(sdlf_dataset **data)
{
    return open_with(data, &(sdlf_dataset_options){.targets = true});
}

static void targets(void)
{
    static const double numbers[8] = {0.5, -1, 2, 3, 4, 5, 6, 7};
    static const struct {
        const char *shape;
        int each;
    } shapes[] = {{"(4,)", 1}, {"(4, 2)", 2}, {"(4, 2, 1)", 2}};
    sdlf_dataset *data = NULL;
    write_array("images.npy", "|u1", "(4, 3)", NULL, 12);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int count = 4 * shapes[s].each;
        write_array("labels.npy", "<f8", shapes[s].shape, numbers, (size_t)count * sizeof *numbers);
        if (!CHECK_OK(open_targets(&data))) continue;
        CHECK(data->labels.dtype == SDLF_FLOAT32 && data->class_count == shapes[s].each);
        CHECK(sdlf_shape_equal(data->labels.shape, sdlf_shape(4, shapes[s].each)));
        for (int i = 0; i < count; i++) CHECK((double)((const float *)data->labels.data)[i] == numbers[i]);
        sdlf_dataset_free(data);
    }
    write_array("labels.npy", "<f8", "(3,)", numbers, 3 * sizeof *numbers);
    CHECK_FAILS(open_targets(&data), SDLF_ERROR_FORMAT, "expected float targets (4) or (4,K)");
    write_array("labels.npy", "<f8", "(4,)", numbers, 4 * sizeof *numbers);
    CHECK_FAILS(open_it(&data, false), SDLF_ERROR_FORMAT, "float targets need a loss: --loss mse");
    for (int behind = 0; behind < 2; behind++) { /* integers are classes, unless targets are requested */
        write_array("labels.npy", "<f8", behind ? "(4, 1)" : "(4,)", numbers + 2, 4 * sizeof *numbers);
        if (!CHECK_OK(open_it(&data, false))) continue;
        CHECK(data->labels.dtype == SDLF_INT32 && data->class_count == 6);
        for (int i = 0; i < 4; i++) CHECK_EQUAL(((const int32_t *)data->labels.data)[i], i + 2);
        sdlf_dataset_free(data);
    }
}

/* A fifth of the samples, with their labels, is for testing, unless all are wanted; the rest is trained on. */
static void a_part_is_held_out(void)
{
    enum { COUNT = 100 };
    static uint8_t rows[2 * COUNT];
    int32_t labels[COUNT], times[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) labels[i] = i;
    for (int i = 0; i < 2 * COUNT; i++) rows[i] = (uint8_t)i;
    write_array("images.npy", "|u1", "(100, 2)", rows, sizeof rows);
    write_array("labels.npy", "<i4", "(100,)", labels, sizeof labels);
    char specification[2048], images[1024];
    snprintf(images, sizeof images, "%s", test_path("images.npy"));
    snprintf(specification, sizeof specification, "npy:%s,%s", images, test_path("labels.npy"));
    for (int way = 0; way < 3; way++) /* held out; all, and only shapes of those held out */
        for (int half = 0; half < 2; half++) {
            sdlf_dataset *data = NULL;
            const sdlf_dataset_options options = {.whole = way == 1, .outline = way == 2};
            if (!CHECK_OK(sdlf_dataset_open_with(&data, specification, (sdlf_split)half, &options))) continue;
            int64_t kept = data->samples.shape.dim[0];
            CHECK_EQUAL(data->labels.shape.dim[0], kept);
            CHECK(data->held_out == (way != 1) && data->class_count == COUNT);
            CHECK(way == 1 ? kept == COUNT : half == 0 ? kept > 65 && kept < 95 : kept > 5 && kept < 35);
            for (int64_t i = 0; way == 0 && i < kept; i++) {
                int32_t label = ((const int32_t *)data->labels.data)[i];
                times[label]++;
                CHECK_EQUAL(((const uint8_t *)data->samples.data)[2 * i + 1], 2 * label + 1);
            }
            sdlf_dataset_free(data);
        }
    for (int i = 0; i < COUNT; i++) CHECK_EQUAL(times[i], 1);
    sdlf_dataset *data = NULL;
    write_array("images.npy", "|u1", "(1, 2)", rows, 2);
    write_array("labels.npy", "<i4", "(1,)", labels, 4);
    bool first_is_for_test = sdlf_dataset_open(&data, specification, SDLF_SPLIT_TEST) == SDLF_OK;
    sdlf_dataset_free(data);
    CHECK_FAILS(sdlf_dataset_open(&data, specification, first_is_for_test ? SDLF_SPLIT_TRAIN : SDLF_SPLIT_TEST),
                SDLF_ERROR_FORMAT, "too few samples, 1, to hold some out");
}

/* Samples only: an array of samples, or an array that is a single sample of the network's shape. */
static void without_labels(void)
{
    static const struct {
        const char *shape;
        sdlf_shape takes, wanted;
    } cases[] = {
        {"(4, 5, 6)", {0}, {4, {4, 1, 5, 6}}},
        {"(4, 5, 6)", {3, {1, 5, 6}}, {4, {4, 1, 5, 6}}},
        {"(4, 5, 6)", {3, {4, 5, 6}}, {4, {1, 4, 5, 6}}},
        {"(20, 6)", {3, {1, 20, 6}}, {4, {1, 1, 20, 6}}},
        {"(120,)", {1, {120}}, {2, {1, 120}}},
        {"(5, 8, 3)", {3, {3, 5, 8}}, {4, {1, 3, 5, 8}}},
        {"(20, 6)", {1, {7}}, {2, {20, 6}}},
    };
    char specification[2048];
    sdlf_dataset *data = NULL;
    snprintf(specification, sizeof specification, "npy:%s", test_path("images.npy"));
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const sdlf_dataset_options options = {.sample = cases[c].takes, .unlabelled = true};
        write_array("images.npy", "|u1", cases[c].shape, NULL, 120);
        if (!CHECK_OK(sdlf_dataset_open_with(&data, specification, SDLF_SPLIT_TEST, &options))) continue;
        CHECK(sdlf_shape_equal(data->samples.shape, cases[c].wanted));
        CHECK(sdlf_shape_equal(data->labels.shape, sdlf_shape(cases[c].wanted.dim[0])) && data->class_count == 1);
        sdlf_dataset_free(data);
    }
    CHECK_FAILS(sdlf_dataset_open_with(&data, "npy", SDLF_SPLIT_TEST, &(sdlf_dataset_options){.unlabelled = true}),
                SDLF_ERROR_ARGUMENT, "expected npy:FILE");
}

int main(void)
{
    RUN(images_of_every_layout);
    RUN(samples_as_the_network_takes_them);
    RUN(labels_of_every_type);
    RUN(numbers_of_every_type);
    RUN(wrong_arrays);
    RUN(no_allocation_is_unchecked);
    RUN(targets);
    RUN(without_labels);
    RUN(a_part_is_held_out);
    return test_summary();
}
