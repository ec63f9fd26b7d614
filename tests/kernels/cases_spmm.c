/* SPDX-License-Identifier: MIT */
/* Cases of spmm_csr: uniform rows, one row with half of the elements, all elements in the last row, empty rows, no
 * elements; and for its log_softmax, values that its fast paths do not handle.
 *
 * Tolerance: a dot product of the longest row, of terms up to 1 in any order, and 8 for the epilogue; 32 if it contains
 * a log_softmax. */
#include "kernels.h"

#include <math.h>

typedef struct spmm_size {
    int64_t rows, columns, stored, width;
} spmm_size;

static kernel_case spmm(sdlf_dtype t, spmm_size size, kernel_graph graph)
{
    kernel_case made = {.operation = {.kind = SDLF_SPMM_CSR}};
    made.operation.in[0] = sdlf_csr_view(t, size.rows, size.columns, size.stored, NULL);
    made.operation.in[1] = kernel_tensor(t, sdlf_shape(size.columns, size.width));
    made.operation.out[0] = kernel_tensor(t, sdlf_shape(size.rows, size.width));
    made.in[0].limit = graph;
    int64_t longest = graph == GRAPH_UNIFORM ? size.stored / size.rows + 1 : size.stored;
    made.tolerance = (double)longest + 8;
    return made;
}

static void emit_spmm(kernel_sink *sink, const kernel_case *made, spmm_size size)
{
    static const char *const graphs[] = {"", " hub", " last"};
    const sdlf_operation *o = &made->operation;
    kernel_emit(sink, made, "%dx%d, %d stored, x %d%s%s%s%s", (int)size.rows, (int)size.columns, (int)size.stored,
                (int)size.width, graphs[made->in[0].limit], sdlf_tensor_present(&o->in[2]) ? " bias" : "",
                kernel_activation_name[o->spmm.activation.function], o->spmm.log_softmax ? " log_softmax" : "");
}

static void all_epilogues(kernel_sink *sink, sdlf_dtype t, spmm_size size, kernel_graph graph)
{
    for (int bias = 0; bias < 2; bias++) {
        for (int activation = 0; activation <= KERNEL_EPILOGUES; activation++) {
            kernel_case made = spmm(t, size, graph);
            if (bias) made.operation.in[2] = kernel_tensor(t, sdlf_shape(size.width));
            made.operation.spmm.log_softmax = activation == KERNEL_EPILOGUES;
            if (activation < KERNEL_EPILOGUES) made.operation.spmm.activation = kernel_activation[activation];
            if (activation > 0) made.tolerance += 32;
            emit_spmm(sink, &made, size);
        }
    }
}

/* Set some elements of x to NaN or infinity. */
static void strange_rows(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[1];
    const double strange[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    int64_t width = x->shape.dim[1];
    (void)calculator;
    for (int64_t row = 0; row < x->shape.dim[0]; row += 7) {
        int64_t at = row * width + row / 7 % width;
        if (x->dtype == SDLF_FLOAT32)
            ((float *)x->data)[at] = (float)strange[row / 7 % 3];
        else
            ((double *)x->data)[at] = strange[row / 7 % 3];
    }
}

/* log_softmax of sums whose exponentials overflow, that exceed 2^25, or that are NaN. Errors are those of the sums,
 * relative to their largest terms. */
static void large_numbers(kernel_sink *sink, sdlf_dtype t, spmm_size size)
{
    static const char *const said[] = {"up to 1000", "up to 2^30", "not finite"};
    static const double largest[] = {1000, 0x1p30, 1};
    for (int i = 0; i < 3; i++) {
        kernel_case made = spmm(t, size, GRAPH_UNIFORM);
        made.operation.spmm.log_softmax = true;
        if (i == 0) made.in[1].values = VALUES_WIDE;
        if (i == 1) made.in[1] = (kernel_fill){VALUES_HUGE, 30};
        if (i == 2) made.prepare = strange_rows;
        made.infinite = i == 2;
        made.tolerance += 32;
        made.floor = largest[i];
        kernel_emit(sink, &made, "%dx%d, %d stored, x %d log_softmax, %s", (int)size.rows, (int)size.columns,
                    (int)size.stored, (int)size.width, said[i]);
    }
}

void spmm_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const spmm_size sizes[] = {{1, 1, 1, 1},     {1, 3, 0, 4},      {5, 7, 0, 16},       {7, 5, 20, 3},
                                      {33, 40, 90, 7},  {64, 64, 300, 16}, {100, 50, 1000, 16}, {17, 33, 200, 31},
                                      {9, 100, 70, 65}, {300, 20, 100, 2}, {40, 40, 2000, 128}, {70, 30, 400, 8},
                                      {40, 9, 200, 17}, {21, 30, 150, 24}, {30, 21, 100, 48},   {25, 25, 90, 32},
                                      {12, 12, 60, 64}, {6, 2, 12, 11}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int graph = GRAPH_UNIFORM; graph <= GRAPH_LAST; graph++) {
            kernel_case made = spmm(t, sizes[i], (kernel_graph)graph);
            emit_spmm(sink, &made, sizes[i]);
            made.operation.spmm.log_softmax = true;
            made.tolerance += 32;
            emit_spmm(sink, &made, sizes[i]);
        }
    }
    all_epilogues(sink, t, (spmm_size){30, 30, 200, 16}, GRAPH_HUB);
    all_epilogues(sink, t, (spmm_size){11, 30, 100, 5}, GRAPH_UNIFORM);
    large_numbers(sink, t, (spmm_size){90, 60, 300, 16});
    large_numbers(sink, t, (spmm_size){50, 60, 200, 5});
    large_numbers(sink, t, (spmm_size){40, 30, 1600, 32});
    /* rows that are split */
    all_epilogues(sink, t, (spmm_size){200, 3000, 70000, 16}, GRAPH_HUB);
    all_epilogues(sink, t, (spmm_size){3, 500, 30000, 5}, GRAPH_LAST);
    /* so many elements that every warp of the device has some */
    static const spmm_size many[] = {{50000, 3000, 1500000, 16}, {2000, 3000, 1500000, 10}};
    for (int i = 0; i < 2; i++) {
        kernel_case made = spmm(t, many[i], i == 0 ? GRAPH_UNIFORM : GRAPH_HUB);
        made.fills_device = true;
        made.operation.spmm.log_softmax = i == 0;
        made.tolerance += 32;
        emit_spmm(sink, &made, many[i]);
    }
}

/* The size of a web graph at width 16, with uniform rows and with one row of half the elements. */
void spmm_bench(kernel_sink *sink, sdlf_dtype t)
{
    static const spmm_size size = {281903, 281903, 2594400, 16};
    for (int graph = GRAPH_UNIFORM; graph <= GRAPH_HUB; graph++) {
        for (int wide = 0; wide < 2; wide++) {
            kernel_case made = spmm(wide ? SDLF_FLOAT64 : t, size, (kernel_graph)graph);
            emit_spmm(sink, &made, size);
            made.operation.spmm.log_softmax = true;
            emit_spmm(sink, &made, size);
        }
    }
}
