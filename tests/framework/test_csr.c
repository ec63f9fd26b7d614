/* SPDX-License-Identifier: MIT */
/* Sparse matrices: one block, its parts, checks, transposes, lack of memory. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/tensor.h>

#include "testing.h"

/* 3x4: row 0 is empty, row 1 has columns 3, 0 and 3 again, row 2 has 1. */
static const int64_t offsets[4] = {0, 0, 3, 4};
static const int32_t columns[4] = {3, 0, 3, 1};
static const double values[4] = {1, 2, 3, 4};

static sdlf_tensor make(void)
{
    sdlf_tensor matrix;
    if (!CHECK_OK(sdlf_csr_create(&matrix, NULL, SDLF_FLOAT64, 3, 4, 4))) exit(1);
    memcpy(sdlf_csr_offsets(&matrix), offsets, sizeof offsets);
    memcpy(sdlf_csr_columns(&matrix), columns, sizeof columns);
    memcpy(sdlf_csr_values(&matrix), values, sizeof values);
    return matrix;
}

static void parts_do_not_touch(void)
{
    static const int64_t sizes[][3] = {{0, 0, 0}, {1, 1, 0}, {7, 9, 1}, {8, 8, 16}, {100, 3, 257}};
    for (int i = 0; i < 5; i++) {
        char *base = (char *)(uintptr_t)4096; /* never read */
        sdlf_tensor m = sdlf_csr_view(SDLF_FLOAT32, sizes[i][0], sizes[i][1], sizes[i][2], base);
        char *column = (char *)sdlf_csr_columns(&m), *value = sdlf_csr_values(&m);
        CHECK((char *)sdlf_csr_offsets(&m) == base);
        CHECK(column >= base + (sizes[i][0] + 1) * 8 && value >= column + sizes[i][2] * 4);
        CHECK((column - base) % 64 == 0 && (value - base) % 64 == 0);
        CHECK(sdlf_tensor_bytes(&m) >= value - base + sizes[i][2] * 4);
        CHECK_EQUAL(sdlf_tensor_count(&m), sizes[i][2]);
        CHECK(sdlf_tensor_is_contiguous(&m));
    }
}

static void sizes_that_overflow_are_told(void)
{
    static const int64_t sizes[][3] = {{INT64_MAX, 1, 0},
                                       {INT64_MAX / 8, 1, 0},
                                       {1, 1, INT64_MAX},
                                       {1, 1, INT64_MAX / 8},
                                       {1, 1, INT64_MAX / 4 - 9},
                                       {-1, 1, 0},
                                       {1, 1, -1}};
    for (int i = 0; i < 7; i++) {
        sdlf_tensor m = sdlf_csr_view(SDLF_FLOAT64, sizes[i][0], sizes[i][1], sizes[i][2], NULL);
        CHECK_EQUAL(sdlf_tensor_bytes(&m), -1);
        CHECK_FAILS(sdlf_csr_create(&m, NULL, SDLF_FLOAT64, sizes[i][0], sizes[i][1], sizes[i][2]), SDLF_ERROR_SHAPE,
                    "more bytes than can be counted");
    }
}

static void checks_find_what_is_wrong(void)
{
    sdlf_tensor m = make();
    CHECK_OK(sdlf_csr_check(&m));
    sdlf_csr_columns(&m)[2] = 4;
    CHECK_FAILS(sdlf_csr_check(&m), SDLF_ERROR_ARGUMENT, "row 1 has column 4, expected 0 to 3");
    sdlf_csr_columns(&m)[2] = -1;
    CHECK_FAILS(sdlf_csr_check(&m), SDLF_ERROR_ARGUMENT, "row 1 has column -1");
    sdlf_csr_columns(&m)[2] = 3;
    sdlf_csr_offsets(&m)[1] = 5;
    CHECK_FAILS(sdlf_csr_check(&m), SDLF_ERROR_ARGUMENT, "row 0 goes from 0 to 5");
    sdlf_csr_offsets(&m)[1] = 0;
    sdlf_csr_offsets(&m)[3] = 3;
    CHECK_FAILS(sdlf_csr_check(&m), SDLF_ERROR_ARGUMENT, "offsets go from 0 to 3, expected 0 to 4");
    sdlf_tensor_release(&m, NULL);
    double dense = 1;
    m = sdlf_tensor_view(SDLF_FLOAT64, sdlf_shape(1, 1), &dense);
    CHECK_FAILS(sdlf_csr_check(&m), SDLF_ERROR_ARGUMENT, "found dense");
}

static void transposes_and_converts(void)
{
    sdlf_tensor m = make(), t, back, narrow;
    CHECK_OK(sdlf_csr_transpose(&t, &m));
    CHECK_OK(sdlf_csr_check(&t));
    static const int64_t starts[5] = {0, 1, 2, 2, 4};
    static const int32_t rows[4] = {1, 2, 1, 1};
    static const double moved[4] = {2, 4, 1, 3};
    CHECK(sdlf_shape_equal(t.shape, sdlf_shape(4, 3)));
    CHECK(memcmp(sdlf_csr_offsets(&t), starts, sizeof starts) == 0);
    CHECK(memcmp(sdlf_csr_columns(&t), rows, sizeof rows) == 0);
    CHECK(memcmp(sdlf_csr_values(&t), moved, sizeof moved) == 0);
    CHECK_OK(sdlf_csr_transpose(&back, &t)); /* the same, columns in order */
    CHECK(memcmp(sdlf_csr_offsets(&back), offsets, sizeof offsets) == 0);
    CHECK_OK(sdlf_csr_convert(&narrow, &m, SDLF_FLOAT32));
    CHECK(memcmp(sdlf_csr_columns(&narrow), columns, sizeof columns) == 0);
    CHECK_CLOSE(((const float *)sdlf_csr_values(&narrow))[3], 4, 0);
    sdlf_tensor_release(&m, NULL);
    sdlf_tensor_release(&t, NULL);
    sdlf_tensor_release(&back, NULL);
    sdlf_tensor_release(&narrow, NULL);
}

static sdlf_status transpose_again(void *matrix)
{
    sdlf_tensor t;
    sdlf_status status = sdlf_csr_transpose(&t, matrix);
    sdlf_tensor_release(&t, NULL);
    return status;
}

static void survives_lack_of_memory(void)
{
    sdlf_tensor m = make();
    test_every_allocation("transposing", transpose_again, &m);
    sdlf_tensor_release(&m, NULL);
}

int main(void)
{
    RUN(parts_do_not_touch);
    RUN(sizes_that_overflow_are_told);
    RUN(checks_find_what_is_wrong);
    RUN(transposes_and_converts);
    RUN(survives_lack_of_memory);
    return test_summary();
}
