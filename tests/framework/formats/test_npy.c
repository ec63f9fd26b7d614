/* SPDX-License-Identifier: MIT */
/* .npy: files written by NumPy and by SDLF are read, and invalid files are reported with their defects. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/npy.h"
#include "testing.h"

/* A version 1.0 file of this header text and these elements. Returns its size. */
static size_t make(unsigned char *file, const char *text, const void *data, size_t bytes)
{
    static const unsigned char start[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    size_t length = strlen(text);
    memcpy(file, start, 8);
    file[8] = (unsigned char)(length & 255);
    file[9] = (unsigned char)(length >> 8);
    memcpy(file + 10, text, length);
    memcpy(file + 10 + length, data, bytes);
    return 10 + length + bytes;
}

static const float six[6] = {0, 1.5f, -2, 3, 4, 5};

static void column_major_becomes_row_major(void)
{
    unsigned char file[400];
    sdlf_tensor tensor;
    const float eight[8] = {0, 4, 2, 6, 1, 5, 3, 7}; /* of (2,2,2), the first side varies fastest */
    const float rows[6] = {0, -2, 4, 1.5f, 3, 5};
    size_t size = make(file, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", six, sizeof six);
    if (!CHECK_OK(npy_parse(&tensor, file, size, "a.npy"))) return;
    CHECK(sdlf_shape_equal(tensor.shape, sdlf_shape(2, 3)) && memcmp(tensor.data, rows, sizeof rows) == 0);
    sdlf_tensor_release(&tensor, NULL);
    size = make(file, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2, 2)}", eight, sizeof eight);
    if (!CHECK_OK(npy_parse(&tensor, file, size, "a.npy"))) return;
    for (int i = 0; i < 8; i++) CHECK_EQUAL((int)((const float *)tensor.data)[i], i);
    sdlf_tensor_release(&tensor, NULL);
    size = make(file, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 4)}", six, sizeof six);
    CHECK_FAILS(npy_parse(&tensor, file, size, "a.npy"), SDLF_ERROR_FORMAT, "takes 32 bytes, found 24");
}

static void reads_what_numpy_writes(void)
{
    unsigned char file[400];
    size_t size =
        make(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n", six, sizeof six);
    sdlf_tensor tensor;
    if (!CHECK_OK(npy_parse(&tensor, file, size, "a.npy"))) return;
    CHECK_EQUAL(tensor.dtype, SDLF_FLOAT32);
    CHECK(sdlf_shape_equal(tensor.shape, sdlf_shape(2, 3)));
    CHECK(memcmp(tensor.data, six, sizeof six) == 0);
    sdlf_tensor_release(&tensor, NULL);
    /* other orders of keys, no last comma, one dimension, a scalar, no elements */
    size = make(file, "{\"shape\": (3,), 'fortran_order': False, 'descr': '<f8'}", six, sizeof six);
    if (!CHECK_OK(npy_parse(&tensor, file, size, "a.npy"))) return;
    CHECK(tensor.dtype == SDLF_FLOAT64 && sdlf_shape_equal(tensor.shape, sdlf_shape(3)));
    sdlf_tensor_release(&tensor, NULL);
    size = make(file, "{'descr': '<i8', 'fortran_order': False, 'shape': ()}", six, 8);
    if (!CHECK_OK(npy_parse(&tensor, file, size, "a.npy"))) return;
    CHECK(tensor.dtype == SDLF_INT64 && tensor.shape.rank == 0);
    sdlf_tensor_release(&tensor, NULL);
    size = make(file, "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 4)}", six, 0);
    if (!CHECK_OK(npy_parse(&tensor, file, size, "a.npy"))) return;
    CHECK(tensor.dtype == SDLF_UINT8 && sdlf_tensor_count(&tensor) == 0);
    sdlf_tensor_release(&tensor, NULL);
}

static void refuses_bad_files(void)
{
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", "element type '>f4'"},
        {"{'descr': '<f4', 'fortran_order': Yes, 'shape': (2, 3)}", "True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}", "takes 32 bytes, found 24"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}",
         "takes more bytes than there can be"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "63 bits"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "a side of 'shape'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6)}", "at most 8"},
        {"{'descr': '<f4', 'fortran_order': False}", "'shape' is missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "repeated key"},
        {"{'what': 1, 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "unknown key 'what'"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (6,)}", "',' or '}'"},
        {"{'descr': '<f4, 'fortran_order", "header"},
        {"", "expected '{'"},
    };
    unsigned char file[400];
    sdlf_tensor tensor;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size = make(file, cases[i].header, six, sizeof six);
        CHECK_FAILS(npy_parse(&tensor, file, size, "bad.npy"), SDLF_ERROR_FORMAT, cases[i].message);
        CHECK(!sdlf_tensor_present(&tensor));
    }
    size_t size = make(file, "{'descr': '<f4#', 'fortran_order': False, 'shape': (6,)}", six, sizeof six);
    *(unsigned char *)memchr(file, '#', size) = '\0'; /* not the end of the text */
    CHECK_FAILS(npy_parse(&tensor, file, size, "bad.npy"), SDLF_ERROR_FORMAT, "expected 'descr' in quotes");
    size = make(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", six, sizeof six);
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *part = malloc(cut + 1); /* so that a sanitizer detects overreads */
        if (!CHECK(part != NULL)) return;
        memcpy(part, file, cut);
        CHECK_FAILS(npy_parse(&tensor, part, cut, "cut.npy"), SDLF_ERROR_FORMAT, "cut.npy: ");
        free(part);
    }
    file[6] = 4;
    CHECK_FAILS(npy_parse(&tensor, file, size, "new.npy"), SDLF_ERROR_FORMAT, "version 4");
    CHECK_FAILS(npy_read(&tensor, test_path("none.npy")), SDLF_ERROR_IO, "none.npy");
}

static void writes_what_it_reads(void)
{
    static const sdlf_dtype dtypes[] = {SDLF_FLOAT32, SDLF_FLOAT64, SDLF_FLOAT16, SDLF_UINT8,
                                        SDLF_INT32,   SDLF_INT64,   SDLF_INT8};
    const sdlf_shape shapes[] = {SDLF_SCALAR, sdlf_shape(7), sdlf_shape(2, 3), sdlf_shape(1, 1, 1, 1, 1, 1, 1, 5)};
    unsigned char bytes[64];
    for (int i = 0; i < 64; i++) bytes[i] = (unsigned char)(3 * i);
    for (int i = 0; i < 28; i++) {
        sdlf_tensor tensor = sdlf_tensor_view(dtypes[i % 7], shapes[i / 7], bytes), found;
        const char *path = test_path("array.npy");
        if (!CHECK_OK(npy_write(&tensor, path)) || !CHECK_OK(npy_read(&found, path))) return;
        CHECK(found.dtype == tensor.dtype && sdlf_shape_equal(found.shape, tensor.shape));
        CHECK(memcmp(found.data, bytes, (size_t)sdlf_tensor_bytes(&tensor)) == 0);
        sdlf_tensor_release(&found, NULL);
    }
    const unsigned char truth[2] = {1, 0}; /* are read as bytes */
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_BOOL, sdlf_shape(2), (void *)truth), found;
    CHECK_OK(npy_write(&tensor, test_path("array.npy")));
    CHECK_OK(npy_read(&found, test_path("array.npy")));
    CHECK(found.dtype == SDLF_UINT8 && memcmp(found.data, truth, sizeof truth) == 0);
    sdlf_tensor_release(&found, NULL);
    tensor = sdlf_tensor_view(SDLF_BFLOAT16, sdlf_shape(2), bytes);
    CHECK_FAILS(npy_write(&tensor, test_path("array.npy")), SDLF_ERROR_ARGUMENT, "bfloat16");
}

static sdlf_status read_again(void *path)
{
    sdlf_tensor tensor;
    sdlf_status status = npy_read(&tensor, path);
    sdlf_tensor_release(&tensor, NULL);
    return status;
}

static void survives_lack_of_memory(void)
{
    static char path[4096];
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(6), (void *)(uintptr_t)six);
    strncpy(path, test_path("memory.npy"), sizeof path - 1);
    if (!CHECK_OK(npy_write(&tensor, path))) return;
    test_every_allocation("reading", read_again, path);
}

int main(void)
{
    RUN(reads_what_numpy_writes);
    RUN(column_major_becomes_row_major);
    RUN(refuses_bad_files);
    RUN(writes_what_it_reads);
    RUN(survives_lack_of_memory);
    return test_summary();
}
