/* spmm_csr with more elements than 32 bits count: on devices with the memory for it, some 44 GB, half of them for a
 * form that is made ready. All but the last elements are one row's. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/calculator.h>

#include "testing.h"

enum { ROWS = 6, COLUMNS = 5, WIDTH = 2, LAST = 7 /* elements behind the long row */ };
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

/* Row 0 is empty, row 1 the long one, of values 2^-10 in column 0; rows 2 to 5 have 0, 3, 1 and 3 elements, far behind. */
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

/* Twice: the matrix made ready in the workspace, and ahead. */
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

int main(void)
{
    RUN(elements_are_counted_with_64_bits);
    return test_summary();
}
