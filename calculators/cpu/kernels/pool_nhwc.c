/* SPDX-License-Identifier: MIT */
/* Pooling of NHWC activations. Contracts: <sdlf/operation.h>.
 *
 * The channels of a pixel are contiguous, so a window is reduced position by position, all channels at once. A task computes
 * some output rows, or, for global average pooling, sums some pixels. Moves x and y once: floor, bytes over bandwidth. */
#include "calculators/cpu/kernels/pool_nhwc.h"

enum { CHANNEL_BLOCK = 64, MEAN_RUN = 64, MEAN_PARTS = 16, POOL_VECTORS = 4 };

typedef struct context {
    const element *x;
    element *y;
    int64_t n, channels, h, w, p, q, rows_per_task;
    const sdlf_window2d *window;
    bool count_padding;
    double *sums; /* of the mean: [image][part][channel] */
} context;

static context context_of(const sdlf_operation *operation)
{
    const int64_t *x = operation->in[0].shape.dim, *y = operation->out[0].shape.dim;
    context all = {.x = input(operation, 0),
                   .y = output(operation, 0),
                   .n = x[0],
                   .channels = x[1],
                   .h = x[2],
                   .w = x[3],
                   .p = y[2],
                   .q = y[3],
                   .window = &operation->pool2d.window,
                   .count_padding = operation->pool2d.count_padding};
    all.rows_per_task = cpu_max(1, TASK_ELEMENTS / cpu_max(1, all.w * all.channels * all.window->stride[0]));
    return all;
}

/* Computes one output pixel from the positions of its window. */
typedef void pool_pixel(const context *all, element *y, const element *image, span rows, span columns);

/* The maximum (NaN wins) or sum over the window for `vectors` vectors of channels, in registers; both are constants. */
static inline __attribute__((always_inline)) void pool_vectors(const bool sums, const int vectors, const context *all,
                                                               element *y, const element *x, span rows, span columns)
{
    int64_t down = all->window->dilation[0] * all->w * all->channels, right = all->window->dilation[1] * all->channels;
    vector best[POOL_VECTORS];
    x += rows.first * down + columns.first * right;
    for (int j = 0; j < vectors; j++) best[j] = sums ? (vector){0} : load(x + j * LANES);
    for (int64_t r = rows.first; r < rows.last; r++, x += down) {
        const element *at = x;
        for (int64_t s = columns.first; s < columns.last; s++, at += right) {
            for (int j = 0; j < vectors; j++) {
                vector value = load(at + j * LANES);
                best[j] = sums ? best[j] + value : choose((value > best[j]) | (value != value), value, best[j]);
            }
        }
    }
    for (int j = 0; j < vectors; j++) store(y + j * LANES, best[j]);
}

/* The tail of the channels is computed as one more whole vector, aligned to end with them. */
static inline __attribute__((always_inline)) void pool_channels(const bool sums, const context *all, element *y,
                                                                const element *image, span rows, span columns)
{
    const element *x = image + (rows.start * all->w + columns.start) * all->channels;
    int64_t c = 0, rest = all->channels - LANES;
    if (rows.first >= rows.last || columns.first >= columns.last) {
        memset(y, 0, (size_t)all->channels * sizeof *y);
        return;
    }
    for (; rest < 0 && c < all->channels; c++) { /* fewer than LANES channels */
        bool first = true;
        element best = 0;
        for (int64_t r = rows.first; r < rows.last; r++) {
            for (int64_t s = columns.first; s < columns.last; s++, first = false) {
                int64_t place = r * all->window->dilation[0] * all->w + s * all->window->dilation[1];
                element value = x[place * all->channels + c];
                best = sums ? best + value : first ? value : larger(best, value);
            }
        }
        y[c] = best;
    }
    for (; c + POOL_VECTORS * LANES <= all->channels; c += POOL_VECTORS * LANES)
        pool_vectors(sums, POOL_VECTORS, all, y + c, x + c, rows, columns);
    for (; c + LANES <= all->channels; c += LANES) pool_vectors(sums, 1, all, y + c, x + c, rows, columns);
    if (c < all->channels) pool_vectors(sums, 1, all, y + rest, x + rest, rows, columns);
}

static void max_pixel(const context *all, element *y, const element *image, span rows, span columns)
{
    pool_channels(false, all, y, image, rows, columns);
}

static void avg_pixel(const context *all, element *y, const element *image, span rows, span columns)
{
    int64_t size = (int64_t)all->window->size[0] * all->window->size[1];
    element count = (element)(all->count_padding ? size : (rows.last - rows.first) * (columns.last - columns.first));
    pool_channels(true, all, y, image, rows, columns);
#pragma omp simd
    for (int64_t c = 0; c < all->channels; c++) y[c] /= count;
}

static inline void pool_rows(const context *all, int64_t index, pool_pixel *pixel)
{
    int64_t tasks = cpu_divide_up(all->p, all->rows_per_task), n = index / tasks;
    int64_t first = index % tasks * all->rows_per_task, last = cpu_min(first + all->rows_per_task, all->p);
    const element *image = all->x + n * all->h * all->w * all->channels;
    for (int64_t p = first; p < last; p++) {
        span rows = window_span(all->window, 0, p, all->h);
        for (int64_t q = 0; q < all->q; q++) {
            element *y = all->y + ((n * all->p + p) * all->q + q) * all->channels;
            pixel(all, y, image, rows, window_span(all->window, 1, q, all->w));
        }
    }
}

static void max_rows(void *argument, int64_t index, int thread)
{
    (void)thread;
    pool_rows(argument, index, max_pixel);
}

static void avg_rows(void *argument, int64_t index, int thread)
{
    (void)thread;
    pool_rows(argument, index, avg_pixel);
}

static void run(const cpu_calculator *cpu, const sdlf_operation *operation, cpu_task *task)
{
    context all = context_of(operation);
    int64_t reads = all.n * all.p * all.q * all.channels * all.window->size[0] * all.window->size[1];
    cpu_parallel_static(cpu, all.n * cpu_divide_up(all.p, all.rows_per_task), cpu_time_of_elements(reads), task, &all);
}

void max_pool_nhwc_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    run(cpu, operation, max_rows);
}

void avg_pool_nhwc_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    run(cpu, operation, avg_rows);
}

/* ---- global average pooling ---- */

/* Pixels are partitioned so that threads find in their caches what they wrote. A single part for few pixels. */
static int64_t parts_of(const context *all)
{
    return cpu_max(1, cpu_min(MEAN_PARTS, all->h * all->w / MEAN_RUN / 2 * 2));
}

/* The sums of part `index` of an image's pixels, for all channels: pixels are added in runs, and the runs' sums in
 * double, so that large images lose no precision. */
static void sum_part(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    int64_t parts = parts_of(all), area = all->h * all->w, n = index / parts, part = index % parts;
    int64_t start = part * area / parts, last = (part + 1) * area / parts;
    (void)thread;
    for (int64_t first = 0; first < all->channels; first += CHANNEL_BLOCK) {
        int64_t count = cpu_min(CHANNEL_BLOCK, all->channels - first);
        double *sum = all->sums + index * all->channels + first;
        for (int64_t c = 0; c < count; c++) sum[c] = 0;
        for (int64_t i = start; i < last; i += MEAN_RUN) {
            element run[CHANNEL_BLOCK] = {0};
            for (int64_t j = i; j < cpu_min(i + MEAN_RUN, last); j++) {
                const element *x = all->x + (n * area + j) * all->channels + first;
#pragma omp simd
                for (int64_t c = 0; c < count; c++) run[c] += x[c];
            }
            for (int64_t c = 0; c < count; c++) sum[c] += (double)run[c];
        }
    }
}

int64_t global_avg_pool_nhwc_space_cpu(const sdlf_operation *operation)
{
    context all = context_of(operation);
    return all.n * parts_of(&all) * all.channels * (int64_t)sizeof(double);
}

void global_avg_pool_nhwc_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    context all = context_of(operation);
    int64_t parts = parts_of(&all);
    double area = (double)(all.h * all.w);
    all.sums = operation->workspace.data;
    cpu_parallel_static(cpu, all.n * parts, cpu_time_of_elements(all.n * all.h * all.w * all.channels), sum_part, &all);
    for (int64_t n = 0; n < all.n; n++) {
        double *sum = all.sums + n * parts * all.channels;
        for (int64_t part = 1; part < parts; part++) {
            for (int64_t c = 0; c < all.channels; c++) sum[c] += sum[part * all.channels + c];
        }
        for (int64_t c = 0; c < all.channels; c++) all.y[n * all.channels + c] = (element)(sum[c] / area);
    }
}
