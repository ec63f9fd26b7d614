/* SPDX-License-Identifier: MIT */
/* softmax and log_softmax, forward and backward. Contracts: <sdlf/operation.h>.
 *
 * Each row along the axis is read two or three times while it is in the cache; each operand moves through memory once.
 * exp costs some 15 instructions a vector. A row that is not contiguous is first gathered into scratch space. */
#include "calculators/cpu/kernels/exponential.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/log_softmax.h"

/* `rows` contiguous rows of `length` elements. */
typedef void rows_function(element *out, const element *a, const element *b, int64_t rows, int64_t length);
/* LANES rows side by side, with `stride` between a row's elements. */
typedef void lanes_function(element *out, const element *a, int64_t stride, int64_t length);

typedef struct softmax_context {
    const element *a, *b; /* forward: x, NULL; backward: y, dy */
    element *out, *scratch;
    int64_t length, inner, rows, rows_per_task;
    rows_function *function;
    lanes_function *lanes; /* NULL: none */
} softmax_context;

static void softmax_row(element *y, const element *x, int64_t length)
{
    element maximum = largest_of_run(x, length);
#pragma omp simd
    for (int64_t i = 0; i < length; i++) y[i] = exponential(x[i] - maximum);
    element factor = 1 / sum_run(y, length);
#pragma omp simd
    for (int64_t i = 0; i < length; i++) y[i] *= factor;
}

static void softmax_backward_row(element *dx, const element *y, const element *dy, int64_t length)
{
    double sum = 0;
    for (int64_t i = 0; i < length; i++) sum += (double)y[i] * (double)dy[i];
    element projection = (element)sum;
#pragma omp simd
    for (int64_t i = 0; i < length; i++) dx[i] = y[i] * (dy[i] - projection);
}

static void log_softmax_backward_row(element *dx, const element *y, const element *dy, int64_t length)
{
    element sum = sum_run(dy, length);
#pragma omp simd
    for (int64_t i = 0; i < length; i++) dx[i] = dy[i] - exponential(y[i]) * sum;
}

/* ---- contiguous rows ---- */

static void softmax_rows(element *y, const element *x, const element *unused, int64_t rows, int64_t length)
{
    (void)unused;
    for (int64_t i = 0; i < rows * length; i += length) softmax_row(y + i, x + i, length);
}

static void log_softmax_rows(element *y, const element *x, const element *unused, int64_t rows, int64_t length)
{
    (void)unused;
    log_softmax_rows_cpu(y, x, rows, length);
}

static void softmax_backward_rows(element *dx, const element *y, const element *dy, int64_t rows, int64_t length)
{
    for (int64_t i = 0; i < rows * length; i += length) softmax_backward_row(dx + i, y + i, dy + i, length);
}

static void log_softmax_backward_rows(element *dx, const element *y, const element *dy, int64_t rows, int64_t length)
{
    for (int64_t i = 0; i < rows * length; i += length) log_softmax_backward_row(dx + i, y + i, dy + i, length);
}

/* ---- all rows ---- */

static void gather_row(element *row, const element *from, int64_t stride, int64_t length)
{
    for (int64_t i = 0; i < length; i++) row[i] = from[i * stride];
}

static void rows_task(void *context, int64_t index, int thread)
{
    const softmax_context *softmax = context;
    int64_t length = softmax->length, inner = softmax->inner;
    int64_t last = cpu_min((index + 1) * softmax->rows_per_task, softmax->rows);
    int64_t first = index * softmax->rows_per_task, at = first * length;
    if (inner == 1) {
        softmax->function(softmax->out + at, softmax->a + at, softmax->b + at, last - first, length);
        return;
    }
    for (int64_t row = first; row < last; row++) {
        int64_t start = row / inner * length * inner + row % inner;
        if (softmax->lanes != NULL && row + LANES <= last && row % inner + LANES <= inner) {
            softmax->lanes(softmax->out + start, softmax->a + start, inner, length);
            row += LANES - 1;
            continue;
        }
        element *a = softmax->scratch + thread * 2 * length, *b = a + length;
        gather_row(a, softmax->a + start, inner, length);
        gather_row(b, softmax->b + start, inner, length);
        softmax->function(b, a, b, 1, length);
        for (int64_t i = 0; i < length; i++) softmax->out[start + i * inner] = b[i];
    }
}

int64_t softmax_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    int axis = operation->softmax.axis;
    bool contiguous = sdlf_shape_span(x->shape, axis + 1, x->shape.rank) == 1;
    return contiguous ? 0 : cpu_from_const(calculator)->threads * 2 * x->shape.dim[axis] * (int64_t)sizeof(element);
}

static sdlf_status run_rows(sdlf_calculator *calculator, const sdlf_operation *operation, rows_function *function,
                            lanes_function *lanes)
{
    const sdlf_tensor *x = &operation->in[0];
    int axis = operation->softmax.axis;
    if (sdlf_tensor_count(x) == 0) return SDLF_OK;
    softmax_context softmax = {.a = input(operation, 0),
                               .b = sdlf_tensor_present(&operation->in[1]) ? input(operation, 1) : input(operation, 0),
                               .out = output(operation, 0),
                               .scratch = operation->workspace.data,
                               .length = x->shape.dim[axis],
                               .inner = sdlf_shape_span(x->shape, axis + 1, x->shape.rank),
                               .function = function,
                               .lanes = lanes};
    softmax.rows = sdlf_tensor_count(x) / softmax.length;
    softmax.rows_per_task = cpu_max(1, TASK_ELEMENTS / 4 / softmax.length);
    if (softmax.rows_per_task > LANES) softmax.rows_per_task -= softmax.rows_per_task % LANES;
    cpu_parallel(cpu_from(calculator), cpu_divide_up(softmax.rows, softmax.rows_per_task), sdlf_tensor_count(x),
                 rows_task, &softmax);
    return SDLF_OK;
}

sdlf_status softmax_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run_rows(calculator, operation, softmax_rows, NULL);
}

sdlf_status softmax_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run_rows(calculator, operation, softmax_backward_rows, NULL);
}

sdlf_status log_softmax_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run_rows(calculator, operation, log_softmax_rows, log_softmax_lanes_cpu);
}

sdlf_status log_softmax_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run_rows(calculator, operation, log_softmax_backward_rows, NULL);
}
