/* SPDX-License-Identifier: MIT */
/* spmm_csr with more elements than 32 bits can count. On devices with enough memory, some 44 GB, half of it for the
 * prepacked form; on the host only with address space: the system maps one page of zeros for everything that is never
 * written. All but the last elements are in one row. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <sdlf/calculator.h>

#include "testing.h"

enum { ROWS = 6, COLUMNS = 5, WIDTH = 2, LAST = 7 /* elements after the long row */ };
static const int64_t long_row = ((int64_t)1 << 31) + 300, room = (int64_t)48 << 30;

static sdlf_status allocate(sdlf_calculator *c, sdlf_tensor *tensor)
{
    return c->type->allocate(c, sdlf_tensor_bytes(tensor), &tensor->data);
}

static sdlf_status fill(sdlf_calculator *c, sdlf_dtype dtype, void *data, int64_t count, double value)
{
    const sdlf_operation operation = {
        .kind = SDLF_FILL, .out = {sdlf_tensor_view(dtype, sdlf_shape(count), data)}, .fill = {.value = value}};
    return sdlf_calculator_run(c, &operation);
}

/* Row 0 is empty; row 1 is the long one, with values 2^-10 in column 0; rows 2 to 5 have 0, 3, 1 and 3 elements, at
 * large offsets. */
static sdlf_status make_matrix(sdlf_calculator *c, sdlf_tensor *a)
{
    static const int32_t columns[LAST] = {1, 2, 4, 3, 0, 4, 4};
    static const float values[LAST] = {1, -2, 3, 0.5f, 8, 1, 2};
    const int64_t n = long_row, offsets[ROWS + 1] = {0, 0, n, n, n + 3, n + 4, n + 7};
    sdlf_status status = allocate(c, a);
    float *value = sdlf_csr_values(a);
    if (status == SDLF_OK) status = fill(c, SDLF_INT32, sdlf_csr_columns(a), a->stored, 0);
    if (status == SDLF_OK) status = fill(c, SDLF_FLOAT32, value, a->stored, 0x1p-10);
    if (status == SDLF_OK) status = c->type->upload(c, sdlf_csr_offsets(a), offsets, sizeof offsets);
    if (status == SDLF_OK) status = c->type->upload(c, sdlf_csr_columns(a) + n, columns, sizeof columns);
    if (status == SDLF_OK) status = c->type->upload(c, value + n, values, sizeof values);
    return status == SDLF_OK ? c->type->synchronize(c) : status;
}

/* Run twice: with the matrix prepacked in the workspace, and in advance. */
static void multiply(sdlf_calculator *c, sdlf_operation *operation, bool ready)
{
    static const float expected[ROWS][WIDTH] = {{0, 0}, {0, 0}, {0, 0}, {-1, 18}, {2, -1}, {18, -2}};
    float found[ROWS][WIDTH];
    int64_t prepared = ready ? sdlf_calculator_prepared(c, operation) : 0;
    if (ready && prepared == 0) return;
    operation->prepared = operation->workspace = (sdlf_tensor){.dtype = SDLF_NONE};
    if (prepared > 0) {
        operation->prepared = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(prepared), NULL);
        CHECK_OK(allocate(c, &operation->prepared));
        CHECK_OK(c->type->kernel[SDLF_SPMM_CSR].prepare(c, operation));
    }
    int64_t workspace = sdlf_calculator_workspace(c, operation);
    if (workspace > 0) {
        operation->workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(workspace), NULL);
        CHECK_OK(allocate(c, &operation->workspace));
    }
    CHECK_OK(sdlf_calculator_run(c, operation));
    CHECK_OK(c->type->download(c, found, operation->out[0].data, sizeof found));
    CHECK_CLOSE(found[1][0], 1.5 * ((double)long_row / 1024), 1);
    CHECK_CLOSE(found[1][1], -(double)long_row / 1024, 1);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        if (i / WIDTH != 1) CHECK_CLOSE(found[i / WIDTH][i % WIDTH], expected[i / WIDTH][i % WIDTH], 0);
    }
    if (operation->workspace.data != NULL) c->type->deallocate(c, operation->workspace.data);
    if (operation->prepared.data != NULL) c->type->deallocate(c, operation->prepared.data);
}

static void elements_are_counted_with_64_bits(void)
{
    static const float x[COLUMNS][WIDTH] = {{1.5f, -1}, {1, 4}, {4, -4}, {4, -2}, {2, 2}};
    bool ran = false;
    for (int i = 0; sdlf_calculator_class_at(i); i++) {
        sdlf_calculator *c;
        int64_t available = 0, total;
        const sdlf_calculator_class *type = sdlf_calculator_class_at(i);
        if (type->memory_info == NULL || sdlf_calculator_open(&c, type->name, NULL) != SDLF_OK) continue;
        CHECK_OK(type->memory_info(c, &available, &total));
        if (available >= room) {
            sdlf_operation operation = {.kind = SDLF_SPMM_CSR,
                                        .in = {sdlf_csr_view(SDLF_FLOAT32, ROWS, COLUMNS, long_row + LAST, NULL),
                                               sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(COLUMNS, WIDTH), NULL)},
                                        .out = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(ROWS, WIDTH), NULL)}};
            ran = CHECK_OK(make_matrix(c, &operation.in[0])) && CHECK_OK(allocate(c, &operation.in[1])) &&
                  CHECK_OK(allocate(c, &operation.out[0]));
            if (ran) {
                CHECK_OK(type->upload(c, operation.in[1].data, x, sizeof x));
                multiply(c, &operation, false);
                multiply(c, &operation, true);
            }
            type->deallocate(c, operation.in[0].data);
            type->deallocate(c, operation.in[1].data);
            type->deallocate(c, operation.out[0].data);
        }
        sdlf_calculator_close(c);
    }
    if (!ran) test_skip("no device has 48 GB free");
}

/* ---- on the host ---- */

/* Row 1 has zeros and a few values on both sides of the 31-bit boundary; the rows after it are those of
 * make_matrix. */
static void fill_on_host(const sdlf_tensor *a)
{
    static const int32_t columns[LAST] = {1, 2, 4, 3, 0, 4, 4};
    static const float values[LAST] = {1, -2, 3, 0.5f, 8, 1, 2};
    const int64_t n = long_row, offsets[ROWS + 1] = {0, 0, n, n, n + 3, n + 4, n + 7};
    const int64_t marks[] = {0, ((int64_t)1 << 31) - 1, (int64_t)1 << 31, n - 1};
    memcpy(sdlf_csr_offsets(a), offsets, sizeof offsets);
    for (int i = 0; i < 4; i++) {
        sdlf_csr_columns(a)[marks[i]] = i;
        ((float *)sdlf_csr_values(a))[marks[i]] = (float)(1 << i);
    }
    memcpy(sdlf_csr_columns(a) + n, columns, sizeof columns);
    memcpy((float *)sdlf_csr_values(a) + n, values, sizeof values);
}

/* Wide enough for vectorised sums: x and y repeat two columns. */
static void multiply_on_host(const sdlf_tensor *a)
{
    enum { WIDE = 16 };
    static const float two[COLUMNS][WIDTH] = {{1.5f, -1}, {1, 4}, {4, -4}, {4, -2}, {2, 2}};
    static const float expected[ROWS][WIDTH] = {{0, 0}, {51.5f, -25}, {0, 0}, {-1, 18}, {2, -1}, {18, -2}};
    float x[COLUMNS][WIDE], found[ROWS][WIDE];
    sdlf_calculator *c;
    if (!CHECK_OK(sdlf_calculator_open(&c, "cpu", NULL))) return;
    for (int i = 0; i < COLUMNS * WIDE; i++) x[i / WIDE][i % WIDE] = two[i / WIDE][i % WIDTH];
    sdlf_operation operation = {.kind = SDLF_SPMM_CSR,
                                .in = {*a, sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(COLUMNS, WIDE), x)},
                                .out = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(ROWS, WIDE), found)}};
    int64_t workspace = sdlf_calculator_workspace(c, &operation);
    if (workspace > 0) {
        operation.workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(workspace), NULL);
        CHECK_OK(allocate(c, &operation.workspace));
    }
    CHECK_OK(sdlf_calculator_run(c, &operation));
    for (int i = 0; i < ROWS * WIDE; i++) CHECK_CLOSE(found[i / WIDE][i % WIDE], expected[i / WIDE][i % WIDTH], 0);
    if (operation.workspace.data != NULL) c->type->deallocate(c, operation.workspace.data);
    sdlf_calculator_close(c);
}

static void so_they_are_on_the_host(void)
{
    sdlf_tensor a = sdlf_csr_view(SDLF_FLOAT32, ROWS, COLUMNS, long_row + LAST, NULL);
    const size_t bytes = (size_t)sdlf_tensor_bytes(&a);
    a.data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a.data == MAP_FAILED) {
        test_skip("no addresses for 17 GB");
        return;
    }
    fill_on_host(&a);
    sdlf_csr_columns(&a)[long_row] = COLUMNS;
    CHECK_FAILS(sdlf_csr_check(&a), SDLF_ERROR_ARGUMENT, "row 3");
    sdlf_csr_columns(&a)[long_row] = 1;
    multiply_on_host(&a);
    munmap(a.data, bytes);
}

int main(void)
{
    RUN(so_they_are_on_the_host);
    RUN(elements_are_counted_with_64_bits);
    return test_summary();
}
