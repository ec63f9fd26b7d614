/* SPDX-License-Identifier: MIT */
/* Sparse matrices in host memory: checking, transposing, converting. Layout: <sdlf/tensor.h>. */
#include <sdlf/tensor.h>

#include <inttypes.h>
#include <string.h>

#include "framework/require.h"

static sdlf_status check_matrix(const sdlf_tensor *matrix)
{
    if (matrix->layout == SDLF_CSR && matrix->shape.rank == 2 && sdlf_tensor_bytes(matrix) >= 0 && matrix->data != NULL)
        return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "csr: expected a sparse matrix with memory, found %s %s%s",
                     matrix->layout == SDLF_CSR ? "sparse" : "dense", sdlf_shape_print(matrix->shape).text,
                     matrix->data == NULL ? " without memory" : "");
}

sdlf_status sdlf_csr_check(const sdlf_tensor *matrix)
{
    SDLF_REQUIRE(matrix);
    sdlf_status status = check_matrix(matrix);
    if (status != SDLF_OK) return status;
    int64_t rows = matrix->shape.dim[0], columns = matrix->shape.dim[1], stored = matrix->stored;
    if (columns > INT32_MAX)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "csr: %" PRId64 " columns, expected at most %d", columns, INT32_MAX);
    const int64_t *offsets = sdlf_csr_offsets(matrix);
    const int32_t *column = sdlf_csr_columns(matrix);
    if (offsets[0] != 0 || offsets[rows] != stored)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "csr: offsets go from %" PRId64 " to %" PRId64 ", expected 0 to %" PRId64,
                         offsets[0], offsets[rows], stored);
    for (int64_t r = 0; r < rows; r++) {
        if (offsets[r + 1] < offsets[r] || offsets[r + 1] > stored)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "csr: row %" PRId64 " goes from %" PRId64 " to %" PRId64, r,
                             offsets[r], offsets[r + 1]);
        for (int64_t e = offsets[r]; e < offsets[r + 1]; e++) {
            if (column[e] < 0 || column[e] >= columns)
                return sdlf_fail(SDLF_ERROR_ARGUMENT, "csr: row %" PRId64 " has column %d, expected 0 to %" PRId64, r,
                                 column[e], columns - 1);
        }
    }
    return SDLF_OK;
}

/* Counting sort by column; rows are visited in order, so the columns of each new row ascend. */
sdlf_status sdlf_csr_transpose(sdlf_tensor *transpose, const sdlf_tensor *matrix)
{
    SDLF_REQUIRE(transpose);
    SDLF_REQUIRE(matrix);
    sdlf_status status = check_matrix(matrix);
    if (status != SDLF_OK) return status;
    int64_t rows = matrix->shape.dim[0], columns = matrix->shape.dim[1], stored = matrix->stored;
    if (rows > INT32_MAX)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "csr: the transpose would have %" PRId64 " columns, expected at most %d",
                         rows, INT32_MAX);
    status = sdlf_csr_create(transpose, NULL, matrix->dtype, columns, rows, stored);
    if (status != SDLF_OK) return status;
    size_t size = sdlf_dtype_size(matrix->dtype);
    const int64_t *offsets = sdlf_csr_offsets(matrix);
    const int32_t *column = sdlf_csr_columns(matrix);
    const char *value = sdlf_csr_values(matrix);
    int64_t *starts = sdlf_csr_offsets(transpose);
    int32_t *row = sdlf_csr_columns(transpose);
    char *moved = sdlf_csr_values(transpose);
    memset(starts, 0, (size_t)(columns + 1) * sizeof *starts);
    for (int64_t e = 0; e < stored; e++) starts[column[e] + 1]++;
    for (int64_t c = 0; c < columns; c++) starts[c + 1] += starts[c];
    for (int64_t r = 0; r < rows; r++) { /* starts[c] advances to the next row's start as column c fills */
        for (int64_t e = offsets[r]; e < offsets[r + 1]; e++) {
            int64_t to = starts[column[e]]++;
            row[to] = (int32_t)r;
            memcpy(moved + (size_t)to * size, value + (size_t)e * size, size);
        }
    }
    memmove(starts + 1, starts, (size_t)columns * sizeof *starts);
    starts[0] = 0;
    return SDLF_OK;
}

sdlf_status sdlf_csr_convert(sdlf_tensor *converted, const sdlf_tensor *matrix, sdlf_dtype dtype)
{
    SDLF_REQUIRE(converted);
    SDLF_REQUIRE(matrix);
    sdlf_status status = check_matrix(matrix);
    if (status != SDLF_OK) return status;
    int64_t rows = matrix->shape.dim[0], stored = matrix->stored;
    status = sdlf_csr_create(converted, NULL, dtype, rows, matrix->shape.dim[1], stored);
    if (status != SDLF_OK) return status;
    memcpy(sdlf_csr_offsets(converted), sdlf_csr_offsets(matrix), (size_t)(rows + 1) * sizeof(int64_t));
    memcpy(sdlf_csr_columns(converted), sdlf_csr_columns(matrix), (size_t)stored * sizeof(int32_t));
    sdlf_convert(dtype, sdlf_csr_values(converted), matrix->dtype, sdlf_csr_values(matrix), stored);
    return SDLF_OK;
}
