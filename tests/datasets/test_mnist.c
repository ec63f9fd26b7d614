/* SPDX-License-Identifier: MIT */
/* The mnist data set, on folders written by the test, and on the real files if SDLF_DATA has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sdlf/dataset.h>

#include "datasets/idx_files.h"
#include "testing.h"

enum { TRAIN_COUNT = 12, TEST_COUNT = 5 };

static const unsigned char digits[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};

/* A fresh folder; static storage, valid until the next call. */
static const char *make_folder(void)
{
    static char path[512];
    static int made;
    char name[32];
    snprintf(name, sizeof name, "folder%d", ++made);
    snprintf(path, sizeof path, "%s", test_path(name));
    CHECK(mkdir(path, 0700) == 0);
    return path;
}

static void write_idx(const char *folder, const char *name, sdlf_shape shape, const unsigned char *elements)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    idx_bytes file = idx_make(shape, elements);
    if (strstr(name, ".gz") != NULL) {
        idx_bytes plain = file;
        file = idx_gzip(plain.data, plain.size);
        free(plain.data);
    }
    test_write_file(path, file.data, file.size);
    free(file.data);
}

/* Four files whose names end in `ends` (after "idx3-ubyte") and have `dot` before "idx". */
static const char *write_set(const char *prefix, const char *test, const char *dot, const char *ends)
{
    const char *folder = make_folder();
    char name[128];
    snprintf(name, sizeof name, "%strain-images%sidx3-ubyte%s", prefix, dot, ends);
    write_idx(folder, name, sdlf_shape(TRAIN_COUNT, 3, 4), NULL);
    snprintf(name, sizeof name, "%strain-labels%sidx1-ubyte%s", prefix, dot, ends);
    write_idx(folder, name, sdlf_shape(TRAIN_COUNT), digits);
    snprintf(name, sizeof name, "%s%s-images%sidx3-ubyte%s", prefix, test, dot, ends);
    write_idx(folder, name, sdlf_shape(TEST_COUNT, 3, 4), NULL);
    snprintf(name, sizeof name, "%s%s-labels%sidx1-ubyte%s", prefix, test, dot, ends);
    write_idx(folder, name, sdlf_shape(TEST_COUNT), digits);
    return folder;
}

/* Open `mnist:FOLDER` plus `after`. */
static sdlf_status open_set(sdlf_dataset **dataset, const char *folder, const char *after, sdlf_split split)
{
    char specification[1024];
    snprintf(specification, sizeof specification, "mnist:%s%s", folder, after);
    return sdlf_dataset_open(dataset, specification, split);
}

static void check_set(const sdlf_dataset *dataset, int64_t count)
{
    CHECK(sdlf_shape_equal(dataset->samples.shape, sdlf_shape(count, 1, 3, 4)));
    CHECK(sdlf_shape_equal(dataset->labels.shape, sdlf_shape(count)));
    CHECK_EQUAL(dataset->class_count, 10);
    CHECK_CLOSE(dataset->mean, 33.3, 1e-5);
    CHECK_CLOSE(dataset->scale * 78.6, 1, 1e-6);
    const unsigned char *pixel = dataset->samples.data;
    const int32_t *label = dataset->labels.data;
    for (int64_t i = 0; i < count * 12; i++) CHECK_EQUAL(pixel[i], idx_element(i));
    for (int64_t i = 0; i < count; i++) CHECK_EQUAL(label[i], digits[i]);
}

static void check_opens(const char *folder, const char *after)
{
    sdlf_dataset *train = NULL, *test = NULL;
    if (CHECK_OK(open_set(&train, folder, after, SDLF_SPLIT_TRAIN))) {
        check_set(train, TRAIN_COUNT);
        char name[1024];
        snprintf(name, sizeof name, "mnist (%s%s)", folder, after);
        CHECK_TEXT(train->name, name);
        CHECK_TEXT(train->type->name, "mnist");
    }
    if (CHECK_OK(open_set(&test, folder, after, SDLF_SPLIT_TEST))) check_set(test, TEST_COUNT);
    sdlf_dataset_free(train);
    sdlf_dataset_free(test);
}

static void reads_every_spelling(void)
{
    check_opens(write_set("", "t10k", "-", ""), "");
    check_opens(write_set("", "t10k", ".", ""), "");
    check_opens(write_set("", "t10k", "-", ".gz"), "");
    check_opens(write_set("", "t10k", ".", ".gz"), "/");
    check_opens(write_set("", "test", "-", ""), "");
    check_opens(write_set("emnist-letters-", "test", "-", ".gz"), "/emnist-letters");
}

/* Check the classes derived from these labels, for the training set and for a test set of `test_labels`. */
static void check_classes(const unsigned char *labels, int64_t count, const unsigned char *test_labels,
                          int64_t test_count, int expected)
{
    const char *folder = make_folder();
    sdlf_dataset *train = NULL, *test = NULL;
    write_idx(folder, "t10k-images-idx3-ubyte", sdlf_shape(test_count, 2, 2), NULL);
    write_idx(folder, "t10k-labels-idx1-ubyte", sdlf_shape(test_count), test_labels);
    write_idx(folder, "train-images-idx3-ubyte", sdlf_shape(count, 2, 2), NULL);
    write_idx(folder, "train-labels-idx1-ubyte", sdlf_shape(count), labels);
    if (CHECK_OK(open_set(&train, folder, "", SDLF_SPLIT_TRAIN))) CHECK_EQUAL(train->class_count, expected);
    if (CHECK_OK(open_set(&test, folder, "", SDLF_SPLIT_TEST))) CHECK_EQUAL(test->class_count, expected);
    sdlf_dataset_free(train);
    sdlf_dataset_free(test);
}

static void counts_classes(void)
{
    unsigned char labels[512];
    for (int i = 0; i < 512; i++) labels[i] = (unsigned char)(i * 7 % 47);
    check_classes(labels, 470, labels, 20, 47);
    for (int i = 0; i < 512; i++) labels[i] = (unsigned char)(1 + i % 26);
    check_classes(labels, 52, labels, 3, 27);
    for (int i = 0; i < 512; i++) labels[i] = (unsigned char)i;
    check_classes(labels, 512, labels, 9, 256);
    check_classes((unsigned char[]){2, 0}, 2, (unsigned char[]){1}, 1, 10);
}

static void opens_a_test_set_alone(void)
{
    unsigned char labels[30];
    for (int i = 0; i < 30; i++) labels[i] = (unsigned char)(i % 15);
    const char *folder = make_folder();
    sdlf_dataset *dataset;
    write_idx(folder, "t10k-images-idx3-ubyte", sdlf_shape(30, 2, 2), NULL);
    write_idx(folder, "t10k-labels-idx1-ubyte", sdlf_shape(30), labels);
    if (CHECK_OK(open_set(&dataset, folder, "", SDLF_SPLIT_TEST))) CHECK_EQUAL(dataset->class_count, 15);
    sdlf_dataset_free(dataset);
}

static void refuses_labels_out_of_range(void)
{
    sdlf_dataset *dataset;
    const char *folder = write_set("", "t10k", "-", "");
    unsigned char labels[TRAIN_COUNT];
    memcpy(labels, digits, sizeof labels);
    labels[7] = 200;
    write_idx(folder, "train-labels-idx1-ubyte", sdlf_shape(TRAIN_COUNT), labels);
    CHECK_FAILS(open_set(&dataset, folder, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT,
                "/train-labels-idx1-ubyte: byte 15: expected a label of 0 to 9, found 200 (label 7 of the file)");
    CHECK(dataset == NULL);
    labels[7] = 10; /* an eleventh class in the test set, that the training set lacks */
    write_idx(folder, "train-labels-idx1-ubyte", sdlf_shape(TRAIN_COUNT), digits);
    write_idx(folder, "t10k-labels-idx1-ubyte", sdlf_shape(TEST_COUNT), labels + 3);
    CHECK_FAILS(open_set(&dataset, folder, "", SDLF_SPLIT_TEST), SDLF_ERROR_FORMAT,
                "/t10k-labels-idx1-ubyte: byte 12: expected a label of 0 to 9, found 10");
}

static void refuses_counts_that_disagree(void)
{
    sdlf_dataset *dataset;
    const char *folder = write_set("", "t10k", "-", "");
    write_idx(folder, "train-images-idx3-ubyte", sdlf_shape(TRAIN_COUNT - 1, 3, 4), NULL);
    CHECK_FAILS(open_set(&dataset, folder, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT,
                "/train-images-idx3-ubyte: byte 4: expected 12 images, one for each label of ");
    CHECK_FAILS(open_set(&dataset, folder, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT,
                "/train-labels-idx1-ubyte, found 11");
}

static void refuses_files_of_another_rank(void)
{
    sdlf_dataset *dataset;
    const char *folder = write_set("", "t10k", "-", "");
    write_idx(folder, "train-images-idx3-ubyte", sdlf_shape(TRAIN_COUNT), digits);
    CHECK_FAILS(open_set(&dataset, folder, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT,
                "/train-images-idx3-ubyte: byte 3: expected a rank of 3 (images), found 1");
    write_idx(folder, "t10k-labels-idx1-ubyte", sdlf_shape(TEST_COUNT, 1), digits);
    CHECK_FAILS(open_set(&dataset, folder, "", SDLF_SPLIT_TEST), SDLF_ERROR_FORMAT,
                "/t10k-labels-idx1-ubyte: byte 3: expected a rank of 1 (labels), found 2");
}

static void says_what_it_looked_for(void)
{
    sdlf_dataset *dataset;
    const char *folder = make_folder();
    CHECK_FAILS(open_set(&dataset, folder, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_IO,
                "lacks a file: looked for train-labels-idx1-ubyte and train-labels.idx1-ubyte, with and without .gz; "
                "sdlf-get-mnist (scripts/get-mnist.sh");
    write_idx(folder, "t10k-labels-idx1-ubyte", sdlf_shape(TEST_COUNT), digits);
    CHECK_FAILS(open_set(&dataset, folder, "", SDLF_SPLIT_TEST), SDLF_ERROR_IO,
                "looked for t10k-images-idx3-ubyte and ");
    char name[600];
    snprintf(name, sizeof name, "mnist:%s", folder);
    CHECK_FAILS(sdlf_dataset_check(name, SDLF_SPLIT_TEST), SDLF_ERROR_IO, "looked for t10k-images-idx3-ubyte and ");
    CHECK_FAILS(sdlf_dataset_check(name, SDLF_SPLIT_TRAIN), SDLF_ERROR_IO, "looked for train-labels-idx1-ubyte and ");
    CHECK_FAILS(sdlf_dataset_open(&dataset, "mnist:/no/such/place", SDLF_SPLIT_TEST), SDLF_ERROR_IO,
                "mnist: there is no folder '/no/such/place', nor files that begin with '/no/such/place-t10k-labels'; "
                "sdlf-get-mnist (scripts/get-mnist.sh");
    char longest[6000];
    memset(longest, 'a', sizeof longest);
    memcpy(longest, "mnist:", 6);
    longest[sizeof longest - 1] = '\0';
    CHECK_FAILS(sdlf_dataset_open(&dataset, longest, SDLF_SPLIT_TEST), SDLF_ERROR_ARGUMENT,
                "name is too long (5993 bytes)");
}

static sdlf_status open_and_free(void *folder)
{
    sdlf_dataset *dataset = NULL;
    sdlf_status status = open_set(&dataset, folder, "", SDLF_SPLIT_TEST);
    sdlf_dataset_free(dataset);
    return status;
}

static void survives_failing_allocations(void)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s", write_set("", "t10k", "-", ".gz"));
    test_every_allocation("mnist", open_and_free, folder);
}

static void reads_the_real_files(void)
{
    const char *folder = test_data("mnist");
    if (folder == NULL) {
        test_skip("SDLF_DATA names no folder with mnist/ in it");
        return;
    }
    static const int64_t counts[] = {60000, 10000};
    static const int32_t first_labels[] = {5, 7};
    static const int64_t pixel_sums[] = {1567298545, 264923200};
    for (int split = 0; split < 2; split++) {
        sdlf_dataset *dataset = NULL;
        if (!CHECK_OK(open_set(&dataset, folder, "", (sdlf_split)split))) continue;
        CHECK(sdlf_shape_equal(dataset->samples.shape, sdlf_shape(counts[split], 1, 28, 28)));
        CHECK_EQUAL(dataset->class_count, 10);
        CHECK_EQUAL(*(const int32_t *)dataset->labels.data, first_labels[split]);
        const unsigned char *pixel = dataset->samples.data;
        int64_t sum = 0;
        for (int64_t i = 0; i < sdlf_tensor_count(&dataset->samples); i++) sum += pixel[i];
        CHECK_EQUAL(sum, pixel_sums[split]);
        sdlf_dataset_free(dataset);
    }
}

static void images_of_several_channels(void)
{
    const char *folder = make_folder();
    sdlf_dataset *data = NULL;
    write_idx(folder, "train-images-idx4-ubyte", sdlf_shape(TRAIN_COUNT, 3, 2, 5), NULL);
    write_idx(folder, "train-labels-idx1-ubyte", sdlf_shape(TRAIN_COUNT), digits);
    char specification[1024];
    snprintf(specification, sizeof specification, "mnist:%s", folder);
    CHECK_OK(sdlf_dataset_check(specification, SDLF_SPLIT_TRAIN));
    if (!CHECK_OK(open_set(&data, folder, "", SDLF_SPLIT_TRAIN))) return;
    CHECK(sdlf_shape_equal(data->samples.shape, sdlf_shape(TRAIN_COUNT, 3, 2, 5)));
    double sum = 0;
    for (int n = 0; n < TRAIN_COUNT; n++)
        for (int i = 0; i < 10; i++) sum += idx_element(n * 30 + 20 + i);
    CHECK_EQUAL(data->channels.count, 3);
    CHECK_CLOSE(data->channels.mean[2], sum / (10 * TRAIN_COUNT), 1e-4);
    sdlf_dataset_free(data);
}

int main(void)
{
    RUN(reads_every_spelling);
    RUN(counts_classes);
    RUN(opens_a_test_set_alone);
    RUN(refuses_labels_out_of_range);
    RUN(refuses_counts_that_disagree);
    RUN(refuses_files_of_another_rank);
    RUN(says_what_it_looked_for);
    RUN(survives_failing_allocations);
    RUN(reads_the_real_files);
    RUN(images_of_several_channels);
    return test_summary();
}
