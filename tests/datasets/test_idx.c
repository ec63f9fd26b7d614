/* SPDX-License-Identifier: MIT */
/* The IDX reader: valid files, and invalid ones with their error messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sdlf/dataset.h>

#include "datasets/idx.h"
#include "datasets/idx_files.h"
#include "testing.h"

static void check_content(const sdlf_tensor *tensor, sdlf_shape shape)
{
    CHECK(tensor->dtype == SDLF_UINT8);
    if (!CHECK(sdlf_shape_equal(tensor->shape, shape))) return;
    const unsigned char *element = tensor->data;
    int64_t count = sdlf_tensor_count(tensor), wrong = 0;
    for (int64_t i = 0; i < count; i++) wrong += element[i] != idx_element(i);
    CHECK_EQUAL(wrong, 0);
}

static void check_reads(idx_bytes file, sdlf_shape shape)
{
    sdlf_tensor tensor;
    if (CHECK_OK(sdlf_idx_parse(&tensor, file.data, file.size, "memory"))) check_content(&tensor, shape);
    sdlf_tensor_release(&tensor, NULL);

    const char *path = test_path("file");
    test_write_file(path, file.data, file.size);
    if (CHECK_OK(sdlf_idx_read(&tensor, path))) check_content(&tensor, shape);
    sdlf_tensor_release(&tensor, NULL);
}

/* Check that the bytes are rejected from memory and from a file, with this message, and that no tensor is returned. */
static void check_refuses(const unsigned char *bytes, size_t size, const char *text)
{
    sdlf_tensor tensor;
    int64_t live = test_live_allocations();
    CHECK_FAILS(sdlf_idx_parse(&tensor, bytes, size, "memory"), SDLF_ERROR_FORMAT, text);
    CHECK(strncmp(sdlf_error_message(), "memory: ", 8) == 0);
    CHECK(!sdlf_tensor_present(&tensor));

    const char *path = test_path("file");
    test_write_file(path, bytes, size);
    CHECK_FAILS(sdlf_idx_read(&tensor, path), SDLF_ERROR_FORMAT, text);
    CHECK(strncmp(sdlf_error_message(), path, strlen(path)) == 0);
    CHECK(!sdlf_tensor_present(&tensor));
    CHECK_EQUAL(test_live_allocations(), live);
}

static void reads_plain_and_gzip(void)
{
    /* the last is longer than the reader's buffer, also when compressed */
    const sdlf_shape shapes[] = {sdlf_shape(1),
                                 sdlf_shape(7),
                                 sdlf_shape(2, 3, 4),
                                 sdlf_shape(3, 1, 2, 2),
                                 sdlf_shape(1, 1, 1, 1, 1, 1, 1, 2),
                                 sdlf_shape(400, 28, 28)};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        idx_bytes plain = idx_make(shapes[i], NULL), gzip = idx_gzip(plain.data, plain.size);
        check_reads(plain, shapes[i]);
        check_reads(gzip, shapes[i]);
        free(plain.data);
        free(gzip.data);
    }
}

static void reads_gzip_of_several_members(void)
{
    idx_bytes plain = idx_make(sdlf_shape(5, 6), NULL);
    idx_bytes gzip =
        idx_join(idx_gzip(plain.data, 6), idx_join(idx_gzip("", 0), idx_gzip(plain.data + 6, plain.size - 6)));
    check_reads(gzip, sdlf_shape(5, 6));
    free(plain.data);
    free(gzip.data);
}

static void refuses_bad_headers(void)
{
    static const struct {
        unsigned char bytes[40];
        size_t size;
        const char *text;
    } cases[] = {
        {{0}, 0, "byte 0: expected 4 bytes of IDX magic number from byte 0, found the end of the file after 0"},
        {{0, 0, 8}, 3, "byte 3: expected 4 bytes of IDX magic number from byte 0, found the end of the file after 3"},
        {{0x89, 'P', 'N', 'G', 1, 2}, 6, "byte 0: expected 0x00 0x00 (an IDX file, plain or gzip), found 0x89 0x50"},
        {{0, 0, 0x0D, 1, 0, 0, 0, 1, 0, 0, 0, 0},
         12,
         "byte 2: expected element type 0x08 (unsigned byte), found 0x0d (float32)"},
        {{0, 0, 0x07, 1, 0, 0, 0, 1, 0}, 9, "byte 2: expected element type 0x08 (unsigned byte), found 0x07 (no type"},
        {{0, 0, 8, 0}, 4, "byte 3: expected a rank of 1 to 8, found 0"},
        {{0, 0, 8, 9}, 40, "byte 3: expected a rank of 1 to 8, found 9"},
        {{0, 0, 8, 255}, 40, "byte 3: expected a rank of 1 to 8, found 255"},
        {{0, 0, 8, 2, 0, 0, 0, 1, 0},
         9,
         "byte 9: expected 8 bytes of IDX dimensions from byte 4, found the end of the file after 5"},
        {{0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 0}, 12, "byte 8: expected dimension 1 to be at least 1, found 0"},
        {{0, 0, 8, 1, 0, 0, 0, 3, 1, 2},
         10,
         "byte 11: expected the end of the file there (a header of 8 bytes and 3 elements), found a file of 10 bytes"},
        {{0, 0, 8, 1, 0, 0, 0, 1, 1, 2},
         10,
         "byte 9: expected the end of the file there (a header of 8 bytes and 1 elements), found a file of 10 bytes"},
        {{0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff, 1},
         9,
         "expected the end of the file there (a header of 8 bytes and 4294967295 elements)"},
        {{0, 0, 8, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         12,
         "byte 4: dimensions 4294967295x4294967295: more bytes than can be addressed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_refuses(cases[i].bytes, cases[i].size, cases[i].text);
    }
}

static void refuses_files_cut_short(void)
{
    idx_bytes plain = idx_make(sdlf_shape(3, 5, 7), NULL), gzip = idx_gzip(plain.data, plain.size);
    for (size_t size = 0; size < plain.size; size++) check_refuses(plain.data, size, "found ");
    for (size_t size = 0; size < gzip.size; size++)
        check_refuses(gzip.data, size, size < 2 ? "found " : "found the end of the file");
    /* the gzip file is whole, but its content is not */
    idx_bytes part = idx_gzip(plain.data, plain.size - 1);
    check_refuses(part.data, part.size,
                  "byte 120: expected 105 bytes of elements from byte 16, found the end of the file after 104");
    free(plain.data);
    free(gzip.data);
    free(part.data);
}

static void refuses_bytes_beyond_the_end(void)
{
    idx_bytes plain = idx_make(sdlf_shape(4, 4), NULL);
    idx_bytes longer = idx_join(idx_gzip(plain.data, plain.size), idx_gzip("x", 1));
    check_refuses(longer.data, longer.size,
                  "byte 28: expected the end of the file after 4x4 elements, found more bytes");
    idx_bytes gzip = idx_gzip(plain.data, plain.size);
    char text[80];
    snprintf(text, sizeof text, "compressed byte %zu: expected the end of the file, found 0x00", gzip.size);
    gzip = idx_join(gzip, (idx_bytes){.data = calloc(1, 10), .size = 10});
    check_refuses(gzip.data, gzip.size, text);
    free(plain.data);
    free(longer.data);
    free(gzip.data);
}

/* Whatever one bit does to a gzip file, the content is right or there is an error. */
static void notices_damage(void)
{
    idx_bytes plain = idx_make(sdlf_shape(20, 9), NULL), gzip = idx_gzip(plain.data, plain.size);
    gzip.data[gzip.size - 8] ^= 1;
    check_refuses(gzip.data, gzip.size, "damaged gzip data: incorrect data check");
    gzip.data[gzip.size - 8] ^= 1;
    int64_t live = test_live_allocations(), failures = 0;
    for (size_t bit = 0; bit < 8 * gzip.size; bit++) {
        sdlf_tensor tensor;
        gzip.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        sdlf_status status = sdlf_idx_parse(&tensor, gzip.data, gzip.size, "memory");
        if (status == SDLF_OK)
            check_content(&tensor, sdlf_shape(20, 9));
        else
            CHECK(status == SDLF_ERROR_FORMAT);
        failures += status != SDLF_OK;
        sdlf_tensor_release(&tensor, NULL);
        gzip.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    CHECK(failures > (int64_t)(8 * (gzip.size - 10))); /* all but some bits of the gzip header: time, system */
    CHECK_EQUAL(test_live_allocations(), live);
    free(plain.data);
    free(gzip.data);
}

static void is_not_taken_in_by_gzip_bombs(void)
{
    /* a header that claims 4 GB in a file of under 100 bytes: rejected before memory is allocated */
    static const unsigned char promise[16] = {0, 0, 8, 3, 0, 0, 0x10, 0, 0, 0, 0x10, 0, 0, 0, 1, 0};
    idx_bytes gzip = idx_gzip(promise, sizeof promise);
    check_refuses(gzip.data, gzip.size, "byte 4: dimensions 4096x4096x256: expected at most ");
    free(gzip.data);

    /* content far beyond the size in its header: reading stops at that size */
    size_t size = (size_t)64 << 20;
    unsigned char *zeros = calloc(1, size);
    if (!CHECK(zeros != NULL)) return;
    memcpy(zeros, (unsigned char[]){0, 0, 8, 1, 0, 0, 0, 5}, 8);
    gzip = idx_gzip(zeros, size);
    check_refuses(gzip.data, gzip.size, "byte 13: expected the end of the file after 5 elements, found more bytes");
    free(gzip.data);
    free(zeros);
}

static void says_why_a_file_cannot_be_opened(void)
{
    sdlf_tensor tensor;
    CHECK_FAILS(sdlf_idx_read(&tensor, test_path("absent")), SDLF_ERROR_IO,
                "absent: cannot open: No such file or directory");
    const char *folder = test_path("folder");
    CHECK(mkdir(folder, 0700) == 0);
    CHECK_FAILS(sdlf_idx_read(&tensor, folder), SDLF_ERROR_IO, "folder: expected a regular file, found a folder");
    const char *pipe = test_path("pipe");
    CHECK(mkfifo(pipe, 0600) == 0);
    CHECK_FAILS(sdlf_idx_read(&tensor, pipe), SDLF_ERROR_IO, "pipe: expected a regular file, found something else");
}

static sdlf_status read_and_release(void *path)
{
    sdlf_tensor tensor;
    sdlf_status status = sdlf_idx_read(&tensor, path);
    if (status == SDLF_OK) sdlf_tensor_release(&tensor, NULL);
    return status;
}

static void survives_failing_allocations(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("file"));
    idx_bytes plain = idx_make(sdlf_shape(9), NULL), gzip = idx_gzip(plain.data, plain.size);
    test_write_file(path, plain.data, plain.size);
    test_every_allocation("plain", read_and_release, path);
    test_write_file(path, gzip.data, gzip.size);
    test_every_allocation("gzip", read_and_release, path);
    free(plain.data);
    free(gzip.data);
}

/* 500 kB of gzip may expand to 500 MB, as this header claims: more than the budget of so small a file. */
static void what_gzip_may_become_is_bounded(void)
{
    enum { STORED = 500000 };
    sdlf_tensor tensor;
    idx_bytes some = idx_make(sdlf_shape(STORED), NULL);
    uint32_t noise = 1;
    for (size_t i = 8; i < some.size; i++) some.data[i] = (unsigned char)((noise = noise * 1664525 + 1013904223) >> 24);
    memcpy(some.data + 4, (unsigned char[]){0x18, 0, 0, 0}, 4); /* 400 MB */
    idx_bytes gzip = idx_gzip(some.data, some.size);
    test_reset_peak();
    int64_t before = test_live_bytes();
    CHECK_FAILS(sdlf_idx_parse(&tensor, gzip.data, gzip.size, "t.gz"), SDLF_ERROR_MEMORY,
                "t.gz: its elements: 402.7 MB, more than the 1");
    CHECK(test_peak_bytes() - before < 1 << 20);
    CHECK(setenv("SDLF_READ_MEMORY", "1G", 1) == 0);
    CHECK_FAILS(sdlf_idx_parse(&tensor, gzip.data, gzip.size, "t.gz"), SDLF_ERROR_FORMAT, "elements");
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
    free(some.data);
    free(gzip.data);
}

int main(void)
{
    RUN(reads_plain_and_gzip);
    RUN(reads_gzip_of_several_members);
    RUN(refuses_bad_headers);
    RUN(refuses_files_cut_short);
    RUN(refuses_bytes_beyond_the_end);
    RUN(notices_damage);
    RUN(is_not_taken_in_by_gzip_bombs);
    RUN(says_why_a_file_cannot_be_opened);
    RUN(survives_failing_allocations);
    RUN(what_gzip_may_become_is_bounded);
    return test_summary();
}
