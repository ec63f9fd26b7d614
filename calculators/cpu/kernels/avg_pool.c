/* SPDX-License-Identifier: MIT */
/* avg_pool2d and global_avg_pool2d, forward and backward. Contracts: <sdlf/operation.h>.
 *
 * A task processes whole planes (n, c). Forward, for each row of windows: the sum over the window's rows, column by
 * column, then over the columns of each window; in short rows, windows inside the image are summed directly; small
 * planes with a stride of 1 are avg_pool_padded.c's. Backward adds dy / count to each window's positions. Moves each
 * operand once: floor, bytes over bandwidth. */
#include "calculators/cpu/kernels/avg_pool_padded.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/pool_nhwc.h"

enum { SHORT_ROW = 64 }; /* elements */

typedef struct pool_context {
    const element *from;
    element *to, *scratch; /* scratch: a line of W elements for each thread */
    int64_t planes, planes_per_task, h, w, p, q;
    sdlf_window2d window;
    bool count_padding;
} pool_context;

static pool_context context_of(const sdlf_operation *operation, const sdlf_tensor *x, const sdlf_tensor *y)
{
    pool_context pool = {.from = input(operation, 0),
                         .to = output(operation, 0),
                         .scratch = operation->workspace.data,
                         .planes = x->shape.dim[0] * x->shape.dim[1],
                         .h = x->shape.dim[2],
                         .w = x->shape.dim[3],
                         .p = y->shape.dim[2],
                         .q = y->shape.dim[3]};
    pool.planes_per_task = cpu_max(1, TASK_ELEMENTS / cpu_max(1, pool.h * pool.w));
    return pool;
}

static inline element window_count(const pool_context *pool, span rows, span columns)
{
    if (pool->count_padding) return (element)((int64_t)pool->window.size[0] * pool->window.size[1]);
    return (element)((rows.last - rows.first) * (columns.last - columns.first));
}

/* y[q] for q in [first, last) from the column sums in `line`, for windows that may extend beyond it. */
static void edge_windows(element *y, const element *line, const pool_context *pool, span rows, int64_t first,
                         int64_t last)
{
    for (int64_t q = first; q < last; q++) {
        span columns = window_span(&pool->window, 1, q, pool->w);
        element sum = 0;
        for (int64_t s = columns.first; s < columns.last; s++)
            sum += line[columns.start + s * pool->window.dilation[1]];
        y[q] = sum / window_count(pool, rows, columns);
    }
}

/* height and width are compile-time constants where this is inlined. */
static inline __attribute__((always_inline)) void sum_windows(element *y, const element *x, const pool_context *pool,
                                                              const int height, const int width, element count,
                                                              int64_t windows)
{
    const sdlf_window2d *window = &pool->window;
    int64_t below = pool->w * window->dilation[0], beside = window->dilation[1], stride = window->stride[1];
    for (int64_t q = 0; q < windows; q++, x += stride) {
        element sum = 0;
        for (int r = 0; r < height; r++) {
            for (int s = 0; s < width; s++) sum += x[r * below + s * beside];
        }
        y[q] = sum / count;
    }
}

/* Windows [first, last) of a short row, all of them inside it. */
static void short_windows(element *y, const element *plane, const pool_context *pool, span rows, int64_t first,
                          int64_t last)
{
    const sdlf_window2d *window = &pool->window;
    int height = (int)(rows.last - rows.first), width = window->size[1];
    const element *x = plane + (rows.start + rows.first * window->dilation[0]) * pool->w + first * window->stride[1] -
                       window->padding_before[1];
    element count = window_count(pool, rows, (span){.last = width});
    if (height == 2 && width == 2) {
        sum_windows(y + first, x, pool, 2, 2, count, last - first);
    } else if (height == 3 && width == 3) {
        sum_windows(y + first, x, pool, 3, 3, count, last - first);
    } else {
        sum_windows(y + first, x, pool, height, width, count, last - first);
    }
}

/* Windows entirely inside a long line of column sums, one window column at a time. `stride` is a constant after inlining. */
static inline __attribute__((always_inline)) void long_windows(element *restrict y, const element *line, int64_t count,
                                                               const sdlf_window2d *window, const int64_t stride,
                                                               element elements)
{
    for (int64_t s = 0; s < window->size[1]; s++) {
        const element *column = line + s * window->dilation[1];
        const bool is_first = s == 0, is_last = s + 1 == window->size[1];
#pragma omp simd
        for (int64_t q = 0; q < count; q++) {
            element sum = is_first ? column[q * stride] : y[q] + column[q * stride];
            y[q] = is_last ? sum / elements : sum;
        }
    }
}

static void forward_row(element *y, element *line, const element *plane, const pool_context *pool, int64_t p)
{
    const sdlf_window2d *window = &pool->window;
    span rows = window_span(window, 0, p, pool->h), whole = whole_windows(window, pool->w, pool->q);
    bool is_short = pool->w < SHORT_ROW && rows.first < rows.last;
    if (is_short) short_windows(y, plane, pool, rows, whole.first, whole.last);
    if (is_short && whole.first == 0 && whole.last == pool->q) return;
    if (pool->w > 0) memset(line, 0, (size_t)pool->w * sizeof *line);
    for (int64_t r = rows.first; r < rows.last; r++) {
        const element *row = plane + (rows.start + r * window->dilation[0]) * pool->w;
#pragma omp simd
        for (int64_t i = 0; i < pool->w; i++) line[i] += row[i];
    }
    edge_windows(y, line, pool, rows, 0, whole.first);
    edge_windows(y, line, pool, rows, whole.last, pool->q);
    int64_t count = whole.last - whole.first, stride = window->stride[1];
    if (is_short || count == 0) return;
    element elements = window_count(pool, rows, (span){.last = window->size[1]});
    line += whole.first * stride - window->padding_before[1];
    if (stride == 1) {
        long_windows(y + whole.first, line, count, window, 1, elements);
    } else if (stride == 2) {
        long_windows(y + whole.first, line, count, window, 2, elements);
    } else {
        long_windows(y + whole.first, line, count, window, stride, elements);
    }
}

static void forward_planes(void *context, int64_t index, int thread)
{
    const pool_context *pool = context;
    int64_t last = cpu_min((index + 1) * pool->planes_per_task, pool->planes);
    for (int64_t plane = index * pool->planes_per_task; plane < last; plane++) {
        for (int64_t p = 0; p < pool->p; p++) {
            forward_row(pool->to + (plane * pool->p + p) * pool->q, pool->scratch + thread * pool->w,
                        pool->from + plane * pool->h * pool->w, pool, p);
        }
    }
}

int64_t avg_pool2d_forward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const int64_t padded = avg_pool_padded_space_cpu(cpu_from_const(calculator), operation);
    if (padded > 0 && !sdlf_operation_is_channels_last(operation)) return padded;
    return cpu_from_const(calculator)->threads * operation->in[0].shape.dim[3] * (int64_t)sizeof(element);
}

sdlf_status avg_pool2d_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_operation_is_channels_last(operation)) {
        avg_pool_nhwc_cpu(cpu_from(calculator), operation);
        return SDLF_OK;
    }
    if (avg_pool_padded_space_cpu(cpu_from(calculator), operation) > 0) {
        avg_pool_padded_cpu(cpu_from(calculator), operation);
        return SDLF_OK;
    }
    pool_context pool = context_of(operation, &operation->in[0], &operation->out[0]);
    pool.window = operation->pool2d.window;
    pool.count_padding = operation->pool2d.count_padding;
    cpu_parallel(cpu_from(calculator), cpu_divide_up(pool.planes, pool.planes_per_task), pool.planes * pool.h * pool.w,
                 forward_planes, &pool);
    return SDLF_OK;
}

static void backward_planes(void *context, int64_t index, int thread)
{
    const pool_context *pool = context;
    const sdlf_window2d *window = &pool->window;
    int64_t last = cpu_min((index + 1) * pool->planes_per_task, pool->planes), area = pool->h * pool->w;
    (void)thread;
    for (int64_t plane = index * pool->planes_per_task; plane < last; plane++) {
        element *dx = pool->to + plane * area;
        memset(dx, 0, (size_t)area * sizeof *dx);
        for (int64_t i = 0; i < pool->p * pool->q; i++) {
            span rows = window_span(window, 0, i / pool->q, pool->h);
            span columns = window_span(window, 1, i % pool->q, pool->w);
            element share = pool->from[plane * pool->p * pool->q + i] / window_count(pool, rows, columns);
            for (int64_t r = rows.first; r < rows.last; r++) {
                element *row = dx + (rows.start + r * window->dilation[0]) * pool->w + columns.start;
                for (int64_t s = columns.first; s < columns.last; s++) row[s * window->dilation[1]] += share;
            }
        }
    }
}

sdlf_status avg_pool2d_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_operation_is_channels_last(operation)) {
        avg_pool_nhwc_backward_cpu(cpu_from(calculator), operation);
        return SDLF_OK;
    }
    pool_context pool = context_of(operation, &operation->out[0], &operation->in[0]);
    pool.window = operation->pool2d.window;
    pool.count_padding = operation->pool2d.count_padding;
    cpu_parallel(cpu_from(calculator), cpu_divide_up(pool.planes, pool.planes_per_task), pool.planes * pool.h * pool.w,
                 backward_planes, &pool);
    return SDLF_OK;
}

/* ---- global ---- */

static void global_forward_planes(void *context, int64_t index, int thread)
{
    const pool_context *pool = context;
    int64_t last = cpu_min((index + 1) * pool->planes_per_task, pool->planes), area = pool->h * pool->w;
    (void)thread;
    for (int64_t plane = index * pool->planes_per_task; plane < last; plane++) {
        pool->to[plane] = sum_run(pool->from + plane * area, area) / (element)area;
    }
}

sdlf_status global_avg_pool2d_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_operation_is_channels_last(operation)) {
        global_avg_pool_nhwc_cpu(cpu_from(calculator), operation);
        return SDLF_OK;
    }
    pool_context pool = context_of(operation, &operation->in[0], &operation->out[0]);
    cpu_parallel(cpu_from(calculator), cpu_divide_up(pool.planes, pool.planes_per_task), pool.planes * pool.h * pool.w,
                 global_forward_planes, &pool);
    return SDLF_OK;
}

int64_t global_avg_pool2d_forward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return sdlf_operation_is_channels_last(operation) ? global_avg_pool_nhwc_space_cpu(operation) : 0;
}

static void global_backward_planes(void *context, int64_t index, int thread)
{
    const pool_context *pool = context;
    int64_t last = cpu_min((index + 1) * pool->planes_per_task, pool->planes), area = pool->h * pool->w;
    (void)thread;
    for (int64_t plane = index * pool->planes_per_task; plane < last; plane++) {
        element share = pool->from[plane] / (element)area;
        for (int64_t i = 0; i < area; i++) pool->to[plane * area + i] = share;
    }
}

sdlf_status global_avg_pool2d_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_operation_is_channels_last(operation)) {
        global_avg_pool_nhwc_backward_cpu(cpu_from(calculator), operation);
        return SDLF_OK;
    }
    pool_context pool = context_of(operation, &operation->out[0], &operation->in[0]);
    cpu_parallel(cpu_from(calculator), cpu_divide_up(pool.planes, pool.planes_per_task), pool.planes * pool.h * pool.w,
                 global_backward_planes, &pool);
    return SDLF_OK;
}
