/* SPDX-License-Identifier: MIT */
/* normalize, forward and backward. Contracts: <sdlf/operation.h>.
 *
 * A row is read three times (from memory once if it fits the cache): for the mean, the variance about it, the result. Sums are
 * float64, in an order that depends only on the row. Channel gradients: a task owns some channels and iterates over all rows. */
#include <math.h>

#include "calculators/cpu/kernels/kernels.h"

enum { CHANNEL_BLOCK = 32 };

typedef struct normalization {
    const element *x, *scale, *shift, *mean_in, *inverse_in, *dy;
    element *y, *mean, *inverse, *dscale, *dshift;
    int64_t rows, length, inner, channels, count, rows_per_task;
    double epsilon;
} normalization;

static const element *present(const sdlf_tensor *tensor)
{
    return sdlf_tensor_present(tensor) ? tensor->data : NULL;
}

static normalization of(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    normalization n = {.x = x->data,
                       .scale = present(&operation->in[1]),
                       .length = operation->normalize.length,
                       .inner = operation->normalize.inner,
                       .count = sdlf_tensor_count(x),
                       .epsilon = (double)operation->normalize.epsilon};
    n.rows = n.count / n.length;
    n.rows_per_task = cpu_max(1, TASK_ELEMENTS / n.length);
    return n;
}

/* Layer normalization, as opposed to instance and group normalization: one channel for each element. */
static bool is_layer(const normalization *n)
{
    return n->inner == 1 && n->channels == n->length;
}

/* y = x a + b over one row: the channel changes every `inner` elements. */
static void scale_row(const normalization *n, int64_t row)
{
    const element *x = n->x + row * n->length;
    element *y = n->y + row * n->length, mean = n->mean[row], inverse = n->inverse[row];
    int64_t c = n->channels ? row * n->length / n->inner % n->channels : 0;
    if (is_layer(n)) {
        for (int64_t p = 0; p < n->length; p++) {
            element factor = n->scale ? n->scale[p] : 1, add = n->shift ? n->shift[p] : 0;
            y[p] = (x[p] - mean) * inverse * factor + add;
        }
        return;
    }
    for (int64_t p = 0; p < n->length; p += n->inner) {
        element factor = inverse * (n->scale ? n->scale[c] : 1), add = n->shift ? n->shift[c] : 0;
#pragma omp simd
        for (int64_t i = p; i < p + n->inner; i++) y[i] = (x[i] - mean) * factor + add;
        if (++c >= n->channels) c = 0;
    }
}

static void forward_rows(void *context, int64_t index, int thread)
{
    const normalization *n = context;
    int64_t last = cpu_min((index + 1) * n->rows_per_task, n->rows);
    (void)thread;
    for (int64_t row = index * n->rows_per_task; row < last; row++) {
        const element *x = n->x + row * n->length;
        double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n->length; i++) sum += (double)x[i];
        double mean = sum / (double)n->length;
#pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < n->length; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        n->mean[row] = (element)mean;
        n->inverse[row] = (element)(1 / sqrt(squares / (double)n->length + n->epsilon));
        scale_row(n, row);
    }
}

sdlf_status normalize_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    normalization n = of(operation);
    n.shift = present(&operation->in[2]);
    n.channels = n.scale ? sdlf_tensor_count(&operation->in[1]) : n.shift ? sdlf_tensor_count(&operation->in[2]) : 0;
    n.y = output(operation, 0);
    n.mean = output(operation, 1);
    n.inverse = output(operation, 2);
    cpu_parallel(cpu_from(calculator), cpu_divide_up(n.rows, n.rows_per_task), 3 * cpu_time_of_elements(n.count),
                 forward_rows, &n);
    return SDLF_OK;
}

/* ---- backward ---- */

typedef struct row_sums {
    double sum, projection; /* of g, and of g xhat */
} row_sums;

/* g = dy scale, to dx, for elements [first, last) of a row; scale NULL: each element has its own. */
static row_sums scale_gradient(const normalization *n, int64_t row, int64_t first, int64_t last, const element *scale)
{
    const element *x = n->x + row * n->length, *dy = n->dy + row * n->length;
    const element mean = n->mean_in[row], inverse = n->inverse_in[row];
    element *dx = n->y + row * n->length;
    double sum = 0, projection = 0;
    if (scale) {
        const element factor = *scale;
#pragma omp simd reduction(+ : sum, projection)
        for (int64_t i = first; i < last; i++) {
            element g = dy[i] * factor;
            dx[i] = g;
            sum += (double)g;
            projection += (double)g * (double)((x[i] - mean) * inverse);
        }
    } else {
#pragma omp simd reduction(+ : sum, projection)
        for (int64_t i = first; i < last; i++) {
            element g = dy[i] * n->scale[i];
            dx[i] = g;
            sum += (double)g;
            projection += (double)g * (double)((x[i] - mean) * inverse);
        }
    }
    return (row_sums){sum, projection};
}

static row_sums scale_row_gradient(const normalization *n, int64_t row)
{
    static const element one = 1;
    row_sums all = {0, 0};
    if (!n->scale) return scale_gradient(n, row, 0, n->length, &one);
    if (is_layer(n)) return scale_gradient(n, row, 0, n->length, NULL);
    int64_t c = row * n->length / n->inner % n->channels;
    for (int64_t p = 0; p < n->length; p += n->inner) {
        row_sums some = scale_gradient(n, row, p, p + n->inner, n->scale + c);
        all.sum += some.sum;
        all.projection += some.projection;
        if (++c >= n->channels) c = 0;
    }
    return all;
}

static void backward_rows(void *context, int64_t index, int thread)
{
    const normalization *n = context;
    int64_t last = cpu_min((index + 1) * n->rows_per_task, n->rows);
    (void)thread;
    for (int64_t row = index * n->rows_per_task; row < last; row++) {
        const element *x = n->x + row * n->length;
        element *dx = n->y + row * n->length, mean = n->mean_in[row], inverse = n->inverse_in[row];
        row_sums sums = scale_row_gradient(n, row);
        element share = (element)(sums.sum / (double)n->length), along = (element)(sums.projection / (double)n->length);
#pragma omp simd
        for (int64_t i = 0; i < n->length; i++) dx[i] = inverse * (dx[i] - share - (x[i] - mean) * inverse * along);
    }
}

/* For layer normalization, where the rows are aligned. */
static inline __attribute__((always_inline)) void add_layer_rows(const normalization *n, int64_t first,
                                                                 const int64_t some, double *by_scale, double *by_shift)
{
    for (int64_t row = 0; row < n->rows; row++) {
        const element *x = n->x + row * n->length + first, *dy = n->dy + row * n->length + first;
        const double mean = (double)n->mean_in[row], inverse = (double)n->inverse_in[row];
#pragma omp simd
        for (int64_t c = 0; c < some; c++) {
            by_scale[c] += (double)dy[c] * ((double)x[c] - mean) * inverse;
            by_shift[c] += (double)dy[c];
        }
    }
}

static void add_runs(const normalization *n, int64_t first, int64_t some, double *by_scale, double *by_shift)
{
    for (int64_t start = 0; start < n->count; start += n->channels * n->inner) {
        for (int64_t c = 0; c < some; c++) {
            int64_t run = start + (first + c) * n->inner, row = run / n->length;
            double mean = (double)n->mean_in[row], inverse = (double)n->inverse_in[row], scaled = 0, shifted = 0;
#pragma omp simd reduction(+ : scaled, shifted)
            for (int64_t i = run; i < run + n->inner; i++) {
                scaled += (double)n->dy[i] * ((double)n->x[i] - mean) * inverse;
                shifted += (double)n->dy[i];
            }
            by_scale[c] += scaled;
            by_shift[c] += shifted;
        }
    }
}

/* Channels [index CHANNEL_BLOCK, ...): they repeat every `channels inner` elements. */
static void backward_channels(void *context, int64_t index, int thread)
{
    const normalization *n = context;
    double by_scale[CHANNEL_BLOCK] = {0}, by_shift[CHANNEL_BLOCK] = {0};
    int64_t first = index * CHANNEL_BLOCK, some = cpu_min(CHANNEL_BLOCK, n->channels - first);
    (void)thread;
    if (!is_layer(n)) {
        add_runs(n, first, some, by_scale, by_shift);
    } else if (some == CHANNEL_BLOCK) {
        add_layer_rows(n, first, CHANNEL_BLOCK, by_scale, by_shift);
    } else {
        add_layer_rows(n, first, some, by_scale, by_shift);
    }
    for (int64_t c = 0; c < some; c++) {
        if (n->dscale) n->dscale[first + c] = (element)by_scale[c];
        if (n->dshift) n->dshift[first + c] = (element)by_shift[c];
    }
}

sdlf_status normalize_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    normalization n = of(operation);
    const cpu_calculator *cpu = cpu_from(calculator);
    n.mean_in = input(operation, 2);
    n.inverse_in = input(operation, 3);
    n.dy = input(operation, 4);
    n.y = sdlf_tensor_present(&operation->out[0]) ? output(operation, 0) : NULL;
    n.dscale = sdlf_tensor_present(&operation->out[1]) ? output(operation, 1) : NULL;
    n.dshift = sdlf_tensor_present(&operation->out[2]) ? output(operation, 2) : NULL;
    if (n.scale) n.channels = sdlf_tensor_count(&operation->in[1]);
    if (n.dscale) n.channels = sdlf_tensor_count(&operation->out[1]);
    if (n.dshift) n.channels = sdlf_tensor_count(&operation->out[2]);
    if (n.y)
        cpu_parallel(cpu, cpu_divide_up(n.rows, n.rows_per_task), 3 * cpu_time_of_elements(n.count), backward_rows, &n);
    if (n.dscale || n.dshift)
        cpu_parallel(cpu, cpu_divide_up(n.channels, CHANNEL_BLOCK), 2 * cpu_time_of_elements(n.count),
                     backward_channels, &n);
    return SDLF_OK;
}
