/* SPDX-License-Identifier: MIT */
/* max_pool2d, forward and backward. Contracts: <sdlf/operation.h>.
 *
 * A task processes whole planes (n, c). Forward, for each row of windows: the maximum over the window's rows, column by
 * column (contiguous, so vectorised), then over the columns of each window. Backward, for each window: count the
 * positions that attain the maximum, then add their shares. Moves x and y once: floor, bytes over bandwidth. */
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/pool_nhwc.h"

typedef struct pool_context {
    const element *x, *y, *dy;
    element *out, *scratch; /* y, or dx; a line of W elements for each thread */
    int64_t planes, planes_per_task, h, w, p, q;
    sdlf_window2d window;
    sdlf_ties ties;
} pool_context;

static pool_context context_of(const sdlf_operation *operation, const sdlf_tensor *y)
{
    const sdlf_shape *x = &operation->in[0].shape;
    pool_context pool = {.x = input(operation, 0),
                         .out = output(operation, 0),
                         .scratch = operation->workspace.data,
                         .planes = x->dim[0] * x->dim[1],
                         .h = x->dim[2],
                         .w = x->dim[3],
                         .p = y->shape.dim[2],
                         .q = y->shape.dim[3],
                         .window = operation->pool2d.window,
                         .ties = operation->pool2d.ties};
    pool.planes_per_task = cpu_max(1, TASK_ELEMENTS / (pool.h * pool.w));
    return pool;
}

/* line[i] = the maximum over the rows of window row p. */
static void column_maxima(element *line, const element *plane, const pool_context *pool, int64_t p)
{
    int64_t dilation = pool->window.dilation[0];
    span rows = window_span(&pool->window, 0, p, pool->h);
    memcpy(line, plane + (rows.start + rows.first * dilation) * pool->w, (size_t)pool->w * sizeof *line);
    for (int64_t r = rows.first + 1; r < rows.last; r++) {
        const element *row = plane + (rows.start + r * dilation) * pool->w;
#pragma omp simd
        for (int64_t i = 0; i < pool->w; i++) line[i] = larger(line[i], row[i]);
    }
}

/* Windows entirely inside the plane, with few columns: in one pass, since so short a line of column maxima would be
 * reloaded before its stores complete. The compiler specialises this for the sizes that callers pass. */
static inline void maxima_inside(element *y, const element *rows, int64_t w, int64_t count, int64_t size,
                                 int64_t stride)
{
    for (int64_t q = 0; q < count; q++) {
        element best = rows[q * stride];
        for (int64_t r = 0; r < size; r++)
            for (int64_t s = 0; s < size; s++) best = larger(best, rows[r * w + q * stride + s]);
        y[q] = best;
    }
}

/* Windows entirely inside the line, one window column at a time. `stride` is a constant after inlining. */
static inline __attribute__((always_inline)) void whole_maxima(element *restrict y, const element *line, int64_t count,
                                                               int64_t size, int64_t dilation, const int64_t stride)
{
#pragma omp simd
    for (int64_t q = 0; q < count; q++) y[q] = larger(line[q * stride], line[q * stride + (size > 1 ? dilation : 0)]);
    for (int64_t s = 2; s < size; s++) {
        const element *column = line + s * dilation;
#pragma omp simd
        for (int64_t q = 0; q < count; q++) y[q] = larger(y[q], column[q * stride]);
    }
}

/* Windows [first, last), which may extend beyond the line. */
static void edge_maxima(element *y, const element *line, const pool_context *pool, int64_t first, int64_t last)
{
    int64_t dilation = pool->window.dilation[1];
    for (int64_t q = first; q < last; q++) {
        span columns = window_span(&pool->window, 1, q, pool->w);
        element best = line[columns.start + columns.first * dilation];
        for (int64_t s = columns.first + 1; s < columns.last; s++)
            best = larger(best, line[columns.start + s * dilation]);
        y[q] = best;
    }
}

static void row_maxima(element *y, const element *line, const pool_context *pool)
{
    const sdlf_window2d *window = &pool->window;
    span whole = whole_windows(window, pool->w, pool->q);
    int64_t count = whole.last - whole.first;
    edge_maxima(y, line, pool, 0, whole.first);
    edge_maxima(y, line, pool, whole.last, pool->q);
    if (count == 0) return;
    const element *from = line + whole.first * window->stride[1] - window->padding_before[1];
    if (window->stride[1] == 1) {
        whole_maxima(y + whole.first, from, count, window->size[1], window->dilation[1], 1);
    } else if (window->stride[1] == 2) {
        whole_maxima(y + whole.first, from, count, window->size[1], window->dilation[1], 2);
    } else {
        whole_maxima(y + whole.first, from, count, window->size[1], window->dilation[1], window->stride[1]);
    }
}

static void forward_planes(void *context, int64_t index, int thread)
{
    const pool_context *pool = context;
    const sdlf_window2d *window = &pool->window;
    int64_t last = cpu_min((index + 1) * pool->planes_per_task, pool->planes);
    bool inside = window->padding_before[1] == 0 && window->dilation[1] == 1 &&
                  (pool->q - 1) * window->stride[1] + window->size[1] <= pool->w;
    bool narrow = inside && window->size[0] == window->size[1] && window->dilation[0] == 1 && pool->q < 2 * LANES;
    element *line = pool->scratch + thread * pool->w;
    for (int64_t plane = index * pool->planes_per_task; plane < last; plane++) {
        for (int64_t p = 0; p < pool->p; p++) {
            element *y = pool->out + (plane * pool->p + p) * pool->q;
            const int64_t top = p * window->stride[0] - window->padding_before[0], size = window->size[0];
            if (narrow && top >= 0 && top + size <= pool->h) {
                const element *rows = pool->x + (plane * pool->h + top) * pool->w;
                if (size == 2 && window->stride[1] == 2)
                    maxima_inside(y, rows, pool->w, pool->q, 2, 2);
                else if (size == 3 && window->stride[1] == 2)
                    maxima_inside(y, rows, pool->w, pool->q, 3, 2);
                else
                    maxima_inside(y, rows, pool->w, pool->q, size, window->stride[1]);
                continue;
            }
            column_maxima(line, pool->x + plane * pool->h * pool->w, pool, p);
            row_maxima(y, line, pool);
        }
    }
}

/* A mask or an activation is supported only when fused with the neighbouring convolution. */
bool max_pool2d_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const bool forward = operation->kind == SDLF_MAX_POOL2D_FORWARD;
    (void)calculator;
    return !sdlf_tensor_present(forward ? &operation->out[1] : &operation->in[3]) &&
           operation->pool2d.activation.function == SDLF_IDENTITY;
}

int64_t max_pool2d_forward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return cpu_from_const(calculator)->threads * operation->in[0].shape.dim[3] * (int64_t)sizeof(element);
}

sdlf_status max_pool2d_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_tensor_count(&operation->in[0]) == 0) return SDLF_OK;
    if (sdlf_operation_is_channels_last(operation)) {
        max_pool_nhwc_cpu(cpu_from(calculator), operation);
        return SDLF_OK;
    }
    pool_context pool = context_of(operation, &operation->out[0]);
    cpu_parallel(cpu_from(calculator), cpu_divide_up(pool.planes, pool.planes_per_task), pool.planes * pool.h * pool.w,
                 forward_planes, &pool);
    return SDLF_OK;
}

/* ---- backward ---- */

static inline bool attains(element x, element maximum)
{
    return (x == maximum) | ((x != x) & (maximum != maximum));
}

/* One window: positions [0, rows) x [0, columns) from x, `down` and `right` elements apart. */
static inline void share_window(element *dx, const element *x, int64_t rows, int64_t columns, int64_t down,
                                int64_t right, element maximum, element dy, sdlf_ties ties)
{
    int count = 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t s = 0; s < columns; s++) count += attains(x[r * down + s * right], maximum);
    }
    element share = ties == SDLF_TIES_FIRST || count == 0 ? dy : dy / (element)count;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t s = 0; s < columns; s++) {
            if (!attains(x[r * down + s * right], maximum)) continue;
            dx[r * down + s * right] += share;
            if (ties == SDLF_TIES_FIRST) return;
        }
    }
}

static void backward_plane(element *dx, const element *x, const element *y, const element *dy, const pool_context *pool)
{
    const sdlf_window2d *window = &pool->window;
    int64_t down = window->dilation[0] * pool->w, right = window->dilation[1];
    memset(dx, 0, (size_t)(pool->h * pool->w) * sizeof *dx);
    for (int64_t p = 0; p < pool->p; p++) {
        span rows = window_span(window, 0, p, pool->h);
        for (int64_t q = 0; q < pool->q; q++) {
            span columns = window_span(window, 1, q, pool->w);
            int64_t at = rows.start * pool->w + rows.first * down + columns.start + columns.first * right;
            share_window(dx + at, x + at, rows.last - rows.first, columns.last - columns.first, down, right,
                         y[p * pool->q + q], dy[p * pool->q + q], pool->ties);
        }
    }
}

/* 2x2 windows that tile the plane: without overlap every element is written once, and nothing is cleared first. */
static void backward_plane_2x2(element *dx, const element *x, const element *y, const element *dy,
                               const pool_context *pool)
{
    if ((pool->h & 1) || (pool->w & 1)) memset(dx, 0, (size_t)(pool->h * pool->w) * sizeof *dx);
    for (int64_t p = 0; p < pool->p; p++) {
        const element *above = x + 2 * p * pool->w, *below = above + pool->w;
        element *to_above = dx + 2 * p * pool->w, *to_below = to_above + pool->w;
#pragma omp simd
        for (int64_t q = 0; q < pool->q; q++) {
            element best = y[p * pool->q + q], share = dy[p * pool->q + q];
            element a = attains(above[2 * q], best), b = attains(above[2 * q + 1], best);
            element c = attains(below[2 * q], best), d = attains(below[2 * q + 1], best);
            if (pool->ties == SDLF_TIES_FIRST) {
                b = a > 0 ? 0 : b;
                c = a + b > 0 ? 0 : c;
                d = a + b + c > 0 ? 0 : d;
            } else {
                share /= a + b + c + d;
            }
            to_above[2 * q] = a > 0 ? share : 0;
            to_above[2 * q + 1] = b > 0 ? share : 0;
            to_below[2 * q] = c > 0 ? share : 0;
            to_below[2 * q + 1] = d > 0 ? share : 0;
        }
    }
}

static void backward_planes(void *context, int64_t index, int thread)
{
    const pool_context *pool = context;
    const sdlf_window2d *window = &pool->window;
    bool tiles = true;
    (void)thread;
    for (int i = 0; i < 2; i++) {
        tiles = tiles && window->size[i] == 2 && window->stride[i] == 2 && window->dilation[i] == 1 &&
                window->padding_before[i] == 0 && window->padding_after[i] == 0;
    }
    int64_t last = cpu_min((index + 1) * pool->planes_per_task, pool->planes);
    for (int64_t plane = index * pool->planes_per_task; plane < last; plane++) {
        int64_t in = plane * pool->h * pool->w, out = plane * pool->p * pool->q;
        (tiles ? backward_plane_2x2 : backward_plane)(pool->out + in, pool->x + in, pool->y + out, pool->dy + out,
                                                      pool);
    }
}

sdlf_status max_pool2d_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_tensor_count(&operation->in[0]) == 0) return SDLF_OK;
    if (sdlf_operation_is_channels_last(operation)) {
        max_pool_nhwc_backward_cpu(cpu_from(calculator), operation);
        return SDLF_OK;
    }
    pool_context pool = context_of(operation, &operation->in[1]);
    pool.y = input(operation, 1);
    pool.dy = input(operation, 2);
    cpu_parallel(cpu_from(calculator), cpu_divide_up(pool.planes, pool.planes_per_task), pool.planes * pool.h * pool.w,
                 backward_planes, &pool);
    return SDLF_OK;
}
