/* SPDX-License-Identifier: MIT */
/* avg_pool2d_forward of small planes with a stride of 1. A plane is copied with its padding, as zeros, so that all
 * windows are alike, and is then summed along columns and rows as if it were one long row: vectors are full however
 * short its rows are, and sums that cross a row's end are not stored. Floor: bytes over bandwidth; here, 3 passes over
 * a plane in the first-level cache. */
#include "calculators/cpu/kernels/avg_pool_padded.h"

#include <string.h>

#include "calculators/cpu/kernels/pool_nhwc.h"

enum { MOST_WIDTH = 64, MOST_HEIGHT = 256 }; /* of a padded plane */

typedef struct padded_context {
    const element *x;
    element *y, *counts, *scratch; /* counts: elements of each window, laid out as the sums */
    int64_t planes, planes_per_task, h, w, p, q;
    int64_t height, pitch, sums; /* of a padded plane; sums of a plane, with those that cross a row's end */
    sdlf_window2d window;
} padded_context;

static padded_context context_of(const sdlf_operation *operation)
{
    const int64_t *x = operation->in[0].shape.dim, *y = operation->out[0].shape.dim;
    padded_context pool = {.x = input(operation, 0),
                           .y = output(operation, 0),
                           .counts = operation->workspace.data,
                           .planes = x[0] * x[1],
                           .h = x[2],
                           .w = x[3],
                           .p = y[2],
                           .q = y[3],
                           .window = operation->pool2d.window};
    const sdlf_window2d *w = &pool.window;
    pool.height = cpu_max(pool.h + w->padding_before[0], pool.p + (w->size[0] - 1) * (int64_t)w->dilation[0]);
    pool.pitch = cpu_max(pool.w + w->padding_before[1], pool.q + (w->size[1] - 1) * (int64_t)w->dilation[1]);
    pool.sums = pool.p * pool.pitch;
    return pool;
}

/* Elements of a thread: the padded plane, its sums along columns, and along both. */
static int64_t thread_elements(const padded_context *pool)
{
    return pool->height * pool->pitch + 2 * pool->sums;
}

int64_t avg_pool_padded_space_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    const padded_context pool = context_of(operation);
    const sdlf_window2d *w = &pool.window;
    if (w->stride[0] != 1 || w->stride[1] != 1 || pool.pitch > MOST_WIDTH || pool.height > MOST_HEIGHT) return 0;
    return (pool.sums + cpu->threads * thread_elements(&pool)) * (int64_t)sizeof(element);
}

/* Sums of `terms` elements that are `step` apart; terms is a constant where this is inlined. */
static inline __attribute__((always_inline)) void sum_terms(element *restrict to, const element *restrict from,
                                                            int64_t count, const int terms, int64_t step)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        element sum = from[i];
        for (int k = 1; k < terms; k++) sum += from[i + k * step];
        to[i] = sum;
    }
}

static void sum_apart(element *restrict to, const element *restrict from, int64_t count, int terms, int64_t step)
{
    if (terms == 3) {
        sum_terms(to, from, count, 3, step);
        return;
    }
    memcpy(to, from, (size_t)count * sizeof *to);
    for (int k = 1; k < terms; k++) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) to[i] += from[i + k * step];
    }
}

static void pool_planes(void *context, int64_t index, int thread)
{
    const padded_context *pool = context;
    const sdlf_window2d *w = &pool->window;
    const int64_t last = cpu_min((index + 1) * pool->planes_per_task, pool->planes), all = pool->height * pool->pitch;
    const int64_t across = pool->sums - (pool->pitch - pool->q); /* up to the last row's last window */
    element *padded = pool->scratch + thread * thread_elements(pool), *columns = padded + all,
            *sums = columns + pool->sums;
    const element *counts = pool->counts;
    memset(padded, 0, (size_t)all * sizeof *padded);
    for (int64_t plane = index * pool->planes_per_task; plane < last; plane++) {
        const element *x = pool->x + plane * pool->h * pool->w;
        element *y = pool->y + plane * pool->p * pool->q;
        element *inside = padded + w->padding_before[0] * pool->pitch + w->padding_before[1];
        for (int64_t r = 0; r < pool->h; r++)
            memcpy(inside + r * pool->pitch, x + r * pool->w, (size_t)pool->w * sizeof *x);
        sum_apart(columns, padded, pool->sums, w->size[0], w->dilation[0] * pool->pitch);
        sum_apart(sums, columns, across, w->size[1], w->dilation[1]);
#pragma omp simd
        for (int64_t i = 0; i < across; i++) sums[i] /= counts[i];
        for (int64_t p = 0; p < pool->p; p++)
            memcpy(y + p * pool->q, sums + p * pool->pitch, (size_t)pool->q * sizeof *y);
    }
}

static void count_elements(const padded_context *pool, bool count_padding)
{
    const sdlf_window2d *w = &pool->window;
    for (int64_t p = 0; p < pool->p; p++) {
        const span rows = window_span(w, 0, p, pool->h);
        for (int64_t q = 0; q < pool->pitch; q++) {
            const span columns = window_span(w, 1, q, pool->w);
            const int64_t inside = (rows.last - rows.first) * (columns.last - columns.first);
            const int64_t count = count_padding ? (int64_t)w->size[0] * w->size[1] : inside;
            pool->counts[p * pool->pitch + q] = (element)(q < pool->q ? count : 1);
        }
    }
}

void avg_pool_padded_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    padded_context pool = context_of(operation);
    pool.scratch = pool.counts + pool.sums;
    pool.planes_per_task = cpu_max(1, TASK_ELEMENTS / cpu_max(1, pool.h * pool.w));
    if (pool.planes * pool.p * pool.q == 0) return;
    count_elements(&pool, operation->pool2d.count_padding);
    cpu_parallel(cpu, cpu_divide_up(pool.planes, pool.planes_per_task), pool.planes * pool.h * pool.w, pool_planes,
                 &pool);
}
