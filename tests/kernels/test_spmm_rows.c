/* SPDX-License-Identifier: MIT */
/* A row of y = log_softmax(a x) of spmm_csr depends only on its own elements: values in other rows that take other
 * paths through a kernel do not change its bits. */
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/random.h>

enum { ROWS = 300, MOST_WIDTH = 32, STRANGE = 37 /* distance between strange rows */ };

static bool is_strange(int64_t row)
{
    return row % STRANGE == STRANGE / 2;
}

/* Row r of a has one element, in column r. */
static void make_matrix(sdlf_calculator *calculator, sdlf_tensor *a, bool single)
{
    int64_t offsets[ROWS + 1];
    int32_t columns[ROWS];
    double values[ROWS];
    float narrow[ROWS];
    *a = sdlf_csr_view(single ? SDLF_FLOAT32 : SDLF_FLOAT64, ROWS, ROWS, ROWS, NULL);
    CHECK_OK(calculator->type->allocate(calculator, sdlf_tensor_bytes(a), &a->data));
    for (int i = 0; i <= ROWS; i++) offsets[i] = i;
    for (int i = 0; i < ROWS; i++) columns[i] = i, values[i] = narrow[i] = 1 + (float)(i % 7) / 8;
    CHECK_OK(calculator->type->upload(calculator, sdlf_csr_offsets(a), offsets, sizeof offsets));
    CHECK_OK(calculator->type->upload(calculator, sdlf_csr_columns(a), columns, sizeof columns));
    CHECK_OK(calculator->type->upload(calculator, sdlf_csr_values(a), single ? (void *)narrow : (void *)values,
                                      single ? (int64_t)sizeof narrow : (int64_t)sizeof values));
}

/* x from -4 to 4; strange rows times `factor`. */
static void make_x(void *to, int64_t width, bool single, double factor)
{
    for (int64_t i = 0; i < ROWS * width; i++) {
        double x = (double)sdlf_philox4x32(3, (uint64_t)i, 0, 0).word[0] * 0x1p-29 - 4;
        if (is_strange(i / width)) x *= factor;
        if (single)
            ((float *)to)[i] = (float)x;
        else
            ((double *)to)[i] = x;
    }
}

static void run(sdlf_calculator *calculator, sdlf_operation *o, const void *x, void *y)
{
    CHECK_OK(calculator->type->upload(calculator, o->in[1].data, x, sdlf_tensor_bytes(&o->in[1])));
    CHECK_OK(sdlf_calculator_run(calculator, o));
    CHECK_OK(calculator->type->download(calculator, y, o->out[0].data, sdlf_tensor_bytes(&o->out[0])));
}

static void try_width(sdlf_calculator *calculator, int64_t width, bool single)
{
    static const double factors[] = {1000, 1e30, NAN};
    const sdlf_dtype t = single ? SDLF_FLOAT32 : SDLF_FLOAT64;
    static double x[ROWS * MOST_WIDTH], usual[ROWS * MOST_WIDTH], found[ROWS * MOST_WIDTH];
    sdlf_operation o = {.kind = SDLF_SPMM_CSR, .spmm = {.log_softmax = true}};
    make_matrix(calculator, &o.in[0], single);
    o.in[1] = sdlf_tensor_view(t, sdlf_shape(ROWS, width), NULL);
    o.out[0] = sdlf_tensor_view(t, sdlf_shape(ROWS, width), NULL);
    CHECK_OK(calculator->type->allocate(calculator, sdlf_tensor_bytes(&o.in[1]), &o.in[1].data));
    CHECK_OK(calculator->type->allocate(calculator, sdlf_tensor_bytes(&o.out[0]), &o.out[0].data));
    const int64_t workspace = sdlf_calculator_workspace(calculator, &o);
    if (workspace > 0) {
        o.workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(workspace), NULL);
        CHECK_OK(calculator->type->allocate(calculator, workspace, &o.workspace.data));
    }
    make_x(x, width, single, 1);
    run(calculator, &o, x, usual);
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        const size_t row = (size_t)width * sdlf_dtype_size(t);
        int64_t changed = 0, strange = 0;
        make_x(x, width, single, factors[i]);
        run(calculator, &o, x, found);
        for (int64_t r = 0; r < ROWS; r++) {
            const bool same = memcmp((char *)found + (size_t)r * row, (char *)usual + (size_t)r * row, row) == 0;
            if (is_strange(r))
                strange += !same;
            else
                changed += !same;
        }
        CHECK_EQUAL(changed, 0);
        CHECK(strange > 0);
    }
    calculator->type->deallocate(calculator, o.in[0].data);
    calculator->type->deallocate(calculator, o.in[1].data);
    calculator->type->deallocate(calculator, o.out[0].data);
    if (workspace > 0) calculator->type->deallocate(calculator, o.workspace.data);
}

static void rows_do_not_depend_on_each_other(void)
{
    static const int64_t widths[] = {2, 5, 7, 16, MOST_WIDTH};
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(i)->name);
        if (calculator == NULL) continue;
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            try_width(calculator, widths[w], true);
            try_width(calculator, widths[w], false);
        }
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(rows_do_not_depend_on_each_other);
    return test_summary();
}
