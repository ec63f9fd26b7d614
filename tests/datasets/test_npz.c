/* SPDX-License-Identifier: MIT */
/* The npz data set, on ZIP archives written by the test: valid ones, and ones with false headers. */
#include <math.h>
#include <stdio.h>

#include <sdlf/dataset.h>

#include "datasets/zip_files.h"

enum { ROOM = 8192 };

static zip_made zip;
static const zip_lies deflated = {.deflated = true};

static void add_array(const char *name, const char *type, const char *shape, const void *data, size_t size,
                      zip_lies lies)
{
    unsigned char bytes[ROOM];
    if (size + 128 > sizeof bytes) abort();
    zip_add(&zip, name, bytes, zip_array(bytes, type, shape, data, size), lies);
}

static const char *write_zip(void)
{
    zip_finish(&zip);
    test_write_file(test_path("a.npz"), zip.bytes, zip.size);
    memset(&zip, 0, sizeof zip);
    return test_path("a.npz");
}

static sdlf_status open_as(sdlf_dataset **data, const char *behind, sdlf_split split, bool outline)
{
    char specification[2048];
    snprintf(specification, sizeof specification, "npz:%s%s", test_path("a.npz"), behind);
    return sdlf_dataset_open_with(data, specification, split,
                                  &(sdlf_dataset_options){.outline = outline, .whole = true});
}

static const float rows[6] = {1, 2, 3, 4, 5, 7};
static const uint8_t bytes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const int64_t labels[4] = {2, 0, 1, 2}, more[2] = {4, 0};

static void halves(zip_lies lies)
{
    add_array("x_train.npy", "|u1", "(4, 2, 2)", bytes, 16, lies);
    add_array("y_train.npy", "<i8", "(4,)", labels, sizeof labels, lies);
    add_array("x_test.npy", "|u1", "(2, 2, 2)", bytes, 8, lies);
    add_array("y_test.npy", "<i8", "(2, 1)", more, sizeof more, lies);
    write_zip();
    for (int outline = 0; outline < 2; outline++) {
        sdlf_dataset *train = NULL, *test = NULL;
        if (CHECK_OK(open_as(&train, "", SDLF_SPLIT_TRAIN, outline)) &&
            CHECK_OK(open_as(&test, "", SDLF_SPLIT_TEST, outline))) {
            CHECK(sdlf_shape_equal(train->samples.shape, sdlf_shape(4, 1, 2, 2)));
            CHECK(sdlf_shape_equal(test->samples.shape, sdlf_shape(2, 1, 2, 2)));
            CHECK_EQUAL(train->class_count, 5); /* which only the other half has */
            CHECK_EQUAL(test->class_count, 5);
            CHECK_EQUAL(((const int32_t *)train->labels.data)[3], 2);
            CHECK_EQUAL(((const int32_t *)test->labels.data)[0], 4);
            if (!outline) CHECK_EQUAL(((const uint8_t *)train->samples.data)[15], 15);
            CHECK(train->samples.dtype == SDLF_UINT8);
        }
        sdlf_dataset_free(train);
        sdlf_dataset_free(test);
    }
}

static void halves_stored_and_deflated(void)
{
    halves((zip_lies){.deflated = false});
    halves(deflated);
}

/* Of one pair a part is held out, unless all are wanted. */
static void a_part_is_held_out(void)
{
    enum { COUNT = 50 };
    static float x[2 * COUNT];
    static const char *const behind[] = {"", ",x,y", ",all", ",x,y,all"};
    int64_t y[COUNT] = {1};
    add_array("x.npy", "<f4", "(50, 2)", x, sizeof x, deflated);
    add_array("y.npy", "<i8", "(50,)", y, sizeof y, deflated);
    write_zip();
    for (int way = 0; way < 4; way++) {
        sdlf_dataset *train = NULL, *test = NULL;
        char specification[2048];
        snprintf(specification, sizeof specification, "npz:%s%s", test_path("a.npz"), behind[way]);
        CHECK_OK(sdlf_dataset_check(specification, SDLF_SPLIT_TEST));
        if (CHECK_OK(sdlf_dataset_open(&train, specification, SDLF_SPLIT_TRAIN)) &&
            CHECK_OK(sdlf_dataset_open(&test, specification, SDLF_SPLIT_TEST))) {
            int64_t trained = train->samples.shape.dim[0], tested = test->samples.shape.dim[0];
            CHECK(way < 2 ? trained + tested == COUNT : trained == COUNT && tested == COUNT);
            CHECK(train->held_out == (way < 2) && test->class_count == 2);
        }
        sdlf_dataset_free(train);
        sdlf_dataset_free(test);
    }
}

static void names_and_pairs(void)
{
    sdlf_dataset *data = NULL;
    add_array("images.npy", "<f4", "(2, 3)", rows, sizeof rows, deflated);
    add_array("labels.npy", "<i8", "(2,)", more, sizeof more, deflated);
    add_array("other.npy", "<i8", "(2,)", labels, 16, deflated);
    write_zip();
    if (CHECK_OK(open_as(&data, "", SDLF_SPLIT_TEST, false))) {
        CHECK(data->samples.dtype == SDLF_FLOAT32 && sdlf_shape_equal(data->samples.shape, sdlf_shape(2, 3)));
        CHECK_EQUAL(((const float *)data->samples.data)[5], 7);
        CHECK_EQUAL(data->class_count, 5);
        CHECK_EQUAL(data->channels.count, 3); /* a mean of each column */
        CHECK_CLOSE(data->channels.mean[2], 5, 1e-6);
        CHECK_CLOSE(data->channels.scale[2], 0.5, 1e-6);
    }
    sdlf_dataset_free(data);
    if (CHECK_OK(open_as(&data, ",images,other", SDLF_SPLIT_TRAIN, false))) CHECK_EQUAL(data->class_count, 3);
    sdlf_dataset_free(data);
    CHECK_FAILS(open_as(&data, ",images,not", SDLF_SPLIT_TRAIN, false), SDLF_ERROR_FORMAT,
                "there is no array 'not'; there are: images.npy, labels.npy, other.npy");
    CHECK_FAILS(open_as(&data, ",images", SDLF_SPLIT_TRAIN, false), SDLF_ERROR_ARGUMENT,
                "expected npz:FILE or npz:FILE,IMAGES,LABELS");
    CHECK_FAILS(sdlf_dataset_open(&data, "npz", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "found 'npz:'");
    CHECK_FAILS(sdlf_dataset_check("npz:/not/there", SDLF_SPLIT_TRAIN), SDLF_ERROR_IO, "/not/there");
}

static void refused(const char *words)
{
    sdlf_dataset *data = NULL;
    CHECK_FAILS(open_as(&data, "", SDLF_SPLIT_TRAIN, false), SDLF_ERROR_FORMAT, words);
    CHECK(data == NULL);
}

/* Check that x of that type and shape, with valid labels, is rejected. */
static void refused_x(const char *type, const char *shape, const void *data, size_t size, zip_lies lies,
                      const char *words)
{
    add_array("x.npy", type, shape, data, size, lies);
    add_array("y.npy", "<i8", "(2,)", more, sizeof more, deflated);
    write_zip();
    refused(words);
}

static void arrays_that_are_none(void)
{
    const float nan[2] = {1, NAN};
    refused_x("|O", "(2, 1)", bytes, 16, deflated,
              "x.npy: .npy header: Python objects, a pickle that may run any program");
    refused_x("<f4", "(2, 1)", nan, 8, deflated,
              "x.npy: sample 1, element 0: expected a finite float32 number, found nan");
    refused_x("<f4", "(2,)", rows, 8, deflated,
              "x.npy: expected images (N,H,W), (N,H,W,C) or (N,C,H,W) with 1 to 4 channels, or rows");
    refused_x("<f4", "(3, 1)", rows, 12, deflated,
              "y.npy: expected 3 labels, one for each image or each of its pixels, uint8, int32 or int64, found int64 "
              "of (2)");
    refused_x("<f4", "(2, 200)", rows, 8, deflated, "x.npy: .npy: float32 of shape 2x200 takes 1600 bytes, found 8");
    zip_add(&zip, "z.pkl", "cos\nsystem\n", 11, deflated);
    write_zip();
    refused("expected the arrays x_train, y_train, x_test and y_test, or x and y, or images and labels, found z.pkl");
    const int32_t below[2] = {0, -3};
    add_array("x.npy", "<f4", "(2, 1)", rows, 8, deflated);
    add_array("y.npy", "<i4", "(2,)", below, 8, deflated);
    write_zip();
    refused("y.npy: label 1: expected 0 to 1048575, found -3");
}

static void entries_that_lie(void)
{
    refused_x("<f4", "(2, 1)", rows, 8, (zip_lies){.crc_change = 1}, "x.npy: expected a content of checksum");
    refused_x("<f4", "(2, 1)", rows, 8, (zip_lies){.deflated = true, .crc_change = 1},
              "x.npy: expected a content of checksum");
    refused_x("<f4", "(2, 1)", rows, 8, (zip_lies){.flags = 1}, "x.npy: cannot be read: it is encrypted");
    refused_x("<f4", "(2, 1)", rows, 8, (zip_lies){.method = 12},
              "x.npy: cannot be read: it is compressed with a method other than deflate");
    refused_x("<f4", "(2, 1)", rows, 8, (zip_lies){.size = 4000000000u},
              "its size is more than its bytes can be unpacked to");
    refused_x("<f4", "(2, 1)", rows, 8, (zip_lies){.deflated = true, .size = 137},
              "x.npy: .npy: float32 of shape 2x1 takes 8 bytes, found 9");
    refused_x("<f4", "(2, 1)", rows, 8, (zip_lies){.deflated = true, .method = 0, .size = 135}, "found 7");
}

/* Half a gigabyte of zeros in half a megabyte is more than a file may become. */
static void bombs(void)
{
    enum { STORED = 1 << 19, CLAIMED = 500 << 20 };
    unsigned char *packed = calloc(1, STORED + 4096);
    size_t at = 0;
    if (packed == NULL) abort();
    unsigned char *name = (unsigned char *)"x.npy";
    for (int which = 0; which < 2; which++) { /* an entry and its place in the directory */
        if (which == 1) at = 35 + STORED;
        zip_put(packed, &at, which == 0 ? 0x04034b50 : 0x02014b50, 4);
        if (which == 1) zip_put(packed, &at, 20, 2);
        zip_put(packed, &at, 20, 4);
        zip_put(packed, &at, 8, 2);
        zip_put(packed, &at, 0, 8);
        zip_put(packed, &at, STORED, 4);
        zip_put(packed, &at, CLAIMED, 4);
        zip_put(packed, &at, 5, 4);
        for (int i = 0; which == 1 && i < 7; i++) zip_put(packed, &at, 0, 2);
        memcpy(packed + at, name, 5);
        at += 5;
    }
    size_t directory = at - 35 - STORED;
    zip_put(packed, &at, 0x06054b50, 4);
    zip_put(packed, &at, 0, 4);
    zip_put(packed, &at, 1 | 1 << 16, 4);
    zip_put(packed, &at, (uint32_t)directory, 4);
    zip_put(packed, &at, 35 + STORED, 4);
    zip_put(packed, &at, 0, 2);
    test_write_file(test_path("a.npz"), packed, at);
    free(packed);
    sdlf_dataset *data = NULL;
    CHECK_FAILS(open_as(&data, ",x,x", SDLF_SPLIT_TRAIN, false), SDLF_ERROR_MEMORY, "x.npy: 524.3 MB, more than the");
}

/* Every prefix of an archive, and every byte of it changed: an error, or the arrays. */
static void damaged_archives(void)
{
    add_array("x.npy", "<f4", "(2, 1)", rows, 8, deflated);
    add_array("y.npy", "<i8", "(2,)", more, sizeof more, (zip_lies){.deflated = false});
    zip_finish(&zip);
    zip_made whole = zip;
    memset(&zip, 0, sizeof zip);
    sdlf_dataset *data = NULL;
    for (size_t size = 0; size < whole.size; size++) {
        test_write_file(test_path("a.npz"), whole.bytes, size);
        CHECK(open_as(&data, "", SDLF_SPLIT_TRAIN, false) != SDLF_OK && data == NULL);
    }
    for (size_t i = 0; i < whole.size; i++) {
        whole.bytes[i] ^= 0x41;
        test_write_file(test_path("a.npz"), whole.bytes, whole.size);
        if (open_as(&data, "", SDLF_SPLIT_TRAIN, false) == SDLF_OK)
            CHECK(sdlf_shape_equal(data->samples.shape, sdlf_shape(2, 1)));
        sdlf_dataset_free(data);
        whole.bytes[i] ^= 0x41;
    }
}

static sdlf_status open_and_close(void *unused)
{
    (void)unused;
    sdlf_dataset *data = NULL;
    sdlf_status status = open_as(&data, "", SDLF_SPLIT_TRAIN, false);
    sdlf_dataset_free(data);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    add_array("x.npy", "<f4", "(2, 1)", rows, 8, deflated);
    add_array("y.npy", "<i8", "(2,)", more, sizeof more, deflated);
    write_zip();
    test_every_allocation("npz", open_and_close, NULL);
}

/* A label per pixel, where 255 (in integers -1) marks ignored pixels. */
static void labels_of_pixels(void)
{
    static const uint8_t masks[16] = {0, 1, 2, 255, 0, 0, 0, 0, 1, 1, 1, 1, 255, 255, 3, 3};
    static const int32_t signed_masks[8] = {0, -1, 5, 0, 0, 0, 0, -1};
    sdlf_dataset *data = NULL;
    add_array("x.npy", "|u1", "(4, 2, 2)", bytes, 16, deflated);
    add_array("y.npy", "|u1", "(4, 2, 2)", masks, 16, deflated);
    write_zip();
    if (CHECK_OK(open_as(&data, "", SDLF_SPLIT_TRAIN, false))) {
        CHECK(sdlf_shape_equal(data->labels.shape, sdlf_shape(4, 2, 2)) && data->class_count == 4);
        for (int i = 0; i < 16; i++)
            CHECK_EQUAL(((const int32_t *)data->labels.data)[i], masks[i] == 255 ? -1 : masks[i]);
        sdlf_dataset_free(data);
    }
    add_array("x.npy", "|u1", "(2, 2, 2)", bytes, 8, deflated);
    add_array("y.npy", "<i4", "(2, 2, 2)", signed_masks, sizeof signed_masks, deflated);
    write_zip();
    if (CHECK_OK(open_as(&data, "", SDLF_SPLIT_TRAIN, false))) {
        CHECK(data->class_count == 6 && ((const int32_t *)data->labels.data)[1] == -1);
        sdlf_dataset_free(data);
    }
    add_array("x.npy", "|u1", "(2, 2, 2)", bytes, 8, deflated);
    add_array("y.npy", "<i4", "(2, 2, 1)", signed_masks, 16, deflated);
    write_zip();
    CHECK_FAILS(open_as(&data, "", SDLF_SPLIT_TRAIN, false), SDLF_ERROR_FORMAT, "or each of its pixels");
}

int main(void)
{
    RUN(halves_stored_and_deflated);
    RUN(names_and_pairs);
    RUN(a_part_is_held_out);
    RUN(arrays_that_are_none);
    RUN(entries_that_lie);
    RUN(bombs);
    RUN(damaged_archives);
    RUN(no_allocation_is_unchecked);
    RUN(labels_of_pixels);
    return test_summary();
}
