/* SPDX-License-Identifier: MIT */
/* cifar10 and cifar100, on folders written by the test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sdlf/dataset.h>

#include "datasets/idx_files.h"
#include "testing.h"

enum { PIXELS = 3072, RECORDS = 7 };

static char root[512];

static void begin(void)
{
    static int made;
    char name[32];
    snprintf(name, sizeof name, "cifar%d", ++made);
    snprintf(root, sizeof root, "%s", test_path(name));
    CHECK(mkdir(root, 0700) == 0);
}

static int label_of(int file, int record)
{
    return (3 * file + record) % 10;
}

static int pixel_of(int file, int record, int i)
{
    return (file + 7 * record + i / 1024 * 50 + i % 5) & 255;
}

/* Write a file of records with `labels` label bytes, of which the last counts, less `missing` bytes at the end. */
static void write_records(const char *name, int file, int labels, int missing)
{
    char path[1024];
    size_t record = (size_t)labels + PIXELS, size = RECORDS * record;
    unsigned char *bytes = malloc(size);
    if (bytes == NULL) abort();
    for (int r = 0; r < RECORDS; r++) {
        unsigned char *at = bytes + (size_t)r * record;
        memset(at, 99, (size_t)labels);
        at[labels - 1] = (unsigned char)label_of(file, r);
        for (int i = 0; i < PIXELS; i++) at[labels + i] = (unsigned char)pixel_of(file, r, i);
    }
    size -= (size_t)missing;
    snprintf(path, sizeof path, "%s/%s", root, name);
    if (strstr(name, ".gz") != NULL) {
        idx_bytes packed = idx_gzip(bytes, size);
        test_write_file(path, packed.data, packed.size);
        free(packed.data);
    } else {
        test_write_file(path, bytes, size);
    }
    free(bytes);
}

static void write_text(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", root, name);
    test_write_file(path, text, strlen(text));
}

static void write_ten(const char *gz)
{
    char name[64];
    begin();
    for (int file = 0; file < 5; file++) {
        snprintf(name, sizeof name, "data_batch_%d.bin%s", file + 1, gz);
        write_records(name, file, 1, 0);
    }
    snprintf(name, sizeof name, "test_batch.bin%s", gz);
    write_records(name, 5, 1, 0);
}

static sdlf_status open_it(sdlf_dataset **data, const char *kind, sdlf_split split, bool outline)
{
    char specification[1024];
    snprintf(specification, sizeof specification, "%s:%s", kind, root);
    return sdlf_dataset_open_with(data, specification, split, &(sdlf_dataset_options){.outline = outline});
}

static void check_records(const sdlf_dataset *data, int first_file, int files)
{
    const uint8_t *pixel = data->samples.data;
    const int32_t *label = data->labels.data;
    double sum = 0;
    CHECK(sdlf_shape_equal(data->samples.shape, sdlf_shape(files * RECORDS, 3, 32, 32)));
    CHECK(sdlf_shape_equal(data->labels.shape, sdlf_shape(files * RECORDS)));
    for (int n = 0; n < files * RECORDS; n++) {
        int file = first_file + n / RECORDS, record = n % RECORDS, wrong = 0;
        CHECK_EQUAL(label[n], label_of(file, record));
        for (int i = 0; i < PIXELS; i++) wrong += pixel[n * PIXELS + i] != pixel_of(file, record, i);
        for (int i = 0; i < 1024; i++) sum += pixel[n * PIXELS + 1024 + i];
        CHECK_EQUAL(wrong, 0);
    }
    CHECK_EQUAL(data->channels.count, 3);
    CHECK_CLOSE(data->channels.mean[1], sum / (1024.0 * files * RECORDS), 1e-3);
}

static void ten_classes(void)
{
    for (int gz = 0; gz < 2; gz++) {
        sdlf_dataset *data = NULL;
        write_ten(gz ? ".gz" : "");
        if (CHECK_OK(open_it(&data, "cifar10", SDLF_SPLIT_TRAIN, false))) check_records(data, 0, 5);
        CHECK(data != NULL && data->class_names == NULL);
        sdlf_dataset_free(data);
        write_text("batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
        if (CHECK_OK(open_it(&data, "cifar10", SDLF_SPLIT_TEST, false))) {
            check_records(data, 5, 1);
            CHECK_EQUAL(data->class_count, 10);
            CHECK_TEXT(data->class_names[9], "truck");
        }
        sdlf_dataset_free(data);
        if (CHECK_OK(open_it(&data, "cifar10", SDLF_SPLIT_TEST, true))) {
            CHECK(data->samples.data == NULL);
            CHECK(sdlf_shape_equal(sdlf_shape_without(data->samples.shape, 0), sdlf_shape(3, 32, 32)));
        }
        sdlf_dataset_free(data);
    }
}

static void a_hundred_classes(void)
{
    sdlf_dataset *data = NULL;
    begin();
    write_records("train.bin", 0, 2, 0);
    write_records("test.bin", 1, 2, 0);
    write_text("fine_label_names.txt", "apple\nbear\n"); /* not theirs: there are too few */
    if (CHECK_OK(open_it(&data, "cifar100", SDLF_SPLIT_TRAIN, false))) check_records(data, 0, 1);
    CHECK(data != NULL && data->class_count == 100 && data->class_names == NULL);
    sdlf_dataset_free(data);
}

static void refused(const char *kind, sdlf_status wanted, const char *words)
{
    sdlf_dataset *data = NULL;
    CHECK_FAILS(open_it(&data, kind, SDLF_SPLIT_TRAIN, false), wanted, words);
    CHECK(data == NULL);
}

static void wrong_files(void)
{
    begin();
    refused("cifar10", SDLF_ERROR_IO, "lacks a file: looked for data_batch_1.bin, with and without .gz");
    write_ten("");
    write_records("data_batch_3.bin", 2, 1, 1);
    refused("cifar10", SDLF_ERROR_FORMAT,
            "data_batch_3.bin: expected records of 3073 bytes, found a file of 21510 bytes");
    write_records("data_batch_3.bin", 2, 1, RECORDS * (1 + PIXELS));
    refused("cifar10", SDLF_ERROR_FORMAT, "found a file of 0 bytes");
    write_ten(".gz");
    write_records("data_batch_2.bin.gz", 1, 1, 5);
    refused("cifar10", SDLF_ERROR_FORMAT,
            "data_batch_2.bin.gz: byte 21506: expected a record of 3073 bytes from byte 18438, found the end");
    write_ten("");
    char path[1024];
    static unsigned char bad[1 + PIXELS] = {10};
    snprintf(path, sizeof path, "%s/data_batch_1.bin", root);
    test_write_file(path, bad, sizeof bad);
    refused("cifar10", SDLF_ERROR_FORMAT, "data_batch_1.bin: byte 0: expected a label of 0 to 9, found 10");
    CHECK_FAILS(sdlf_dataset_check("cifar100:/not/there", SDLF_SPLIT_TEST), SDLF_ERROR_IO, "test.bin");
}

static sdlf_status open_and_close(void *unused)
{
    (void)unused;
    sdlf_dataset *data = NULL;
    sdlf_status status = open_it(&data, "cifar10", SDLF_SPLIT_TEST, false);
    sdlf_dataset_free(data);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    write_ten("");
    write_text("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
    test_every_allocation("cifar10", open_and_close, NULL);
}

int main(void)
{
    RUN(ten_classes);
    RUN(a_hundred_classes);
    RUN(wrong_files);
    RUN(no_allocation_is_unchecked);
    return test_summary();
}
