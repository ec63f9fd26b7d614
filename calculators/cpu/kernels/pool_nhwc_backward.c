/* SPDX-License-Identifier: MIT */
/* The gradients of NHWC pooling. Contracts: <sdlf/operation.h>.
 *
 * Vectors run over channels. A task processes an image, or some of its channels if there are few images, since windows may
 * overlap: it clears dx and adds the contribution of each window's output. Floor: x, y, dy read and dx written once. */
#include "calculators/cpu/kernels/lanes.h"
#include "calculators/cpu/kernels/pool_nhwc.h"

enum { LEAST_TASKS = 16 };

typedef struct context {
    const element *x, *y, *dy;
    element *dx;
    int64_t n, channels, h, w, p, q, blocks; /* blocks of channels, whole vectors except for the last */
    const sdlf_window2d *window;
    bool first_only, count_padding;
} context;

static context context_of(const sdlf_operation *operation, const sdlf_tensor *dy)
{
    const int64_t *dx = operation->out[0].shape.dim;
    context all = {.dy = dy->data,
                   .dx = output(operation, 0),
                   .n = dx[0],
                   .channels = dx[1],
                   .h = dx[2],
                   .w = dx[3],
                   .p = dy->shape.dim[2],
                   .q = dy->shape.dim[3],
                   .window = &operation->pool2d.window,
                   .first_only = operation->pool2d.ties == SDLF_TIES_FIRST,
                   .count_padding = operation->pool2d.count_padding};
    int64_t wanted = cpu_divide_up(LEAST_TASKS, cpu_max(1, all.n));
    all.blocks = cpu_max(1, cpu_min(wanted, all.channels / LANES));
    return all;
}

/* A window's offsets, for channels [c, c + lanes). */
typedef struct window_place {
    int64_t out, in; /* in y and dy; of the first position inside the image, in x and dx */
    int64_t rows, columns, down, right;
    int64_t lanes;
} window_place;

static inline void add_some(element *to, vector value, int64_t lanes)
{
    element part[LANES];
    if (lanes >= LANES) {
        store(to, load(to) + value);
        return;
    }
    store(part, value);
    for (int64_t i = 0; i < lanes; i++) to[i] += part[i];
}

static inline lanes_mask attains(vector x, vector best)
{
    return (x == best) | ((x != x) & (best != best));
}

typedef void window_gradient(const context *all, const window_place *at);

/* Positions that attain the maximum share its gradient, or the first gets all of it; NaN attains NaN. */
static void max_window(const context *all, const window_place *at)
{
    vector best = load_some(all->y + at->out, at->lanes), share = load_some(all->dy + at->out, at->lanes);
    vector one = broadcast(1), none = {0}, count = none;
    const element *x = all->x + at->in;
    for (int64_t r = 0; r < at->rows && !all->first_only; r++) {
        for (int64_t s = 0; s < at->columns; s++)
            count += choose(attains(load_some(x + r * at->down + s * at->right, at->lanes), best), one, none);
    }
    if (!all->first_only) share /= choose(count > none, count, one);
    lanes_mask left = {0};
    left = ~left;
    for (int64_t r = 0; r < at->rows; r++) {
        for (int64_t s = 0; s < at->columns; s++) {
            int64_t place = r * at->down + s * at->right;
            lanes_mask attained = attains(load_some(x + place, at->lanes), best) & left;
            if (all->first_only) left &= ~attained;
            add_some(all->dx + at->in + place, choose(attained, share, none), at->lanes);
        }
    }
}

static void avg_window(const context *all, const window_place *at)
{
    int64_t size = (int64_t)all->window->size[0] * all->window->size[1];
    element count = (element)(all->count_padding ? size : at->rows * at->columns);
    vector share = load_some(all->dy + at->out, at->lanes) / broadcast(count);
    for (int64_t r = 0; r < at->rows; r++) {
        for (int64_t s = 0; s < at->columns; s++)
            add_some(all->dx + at->in + r * at->down + s * at->right, share, at->lanes);
    }
}

static inline void add_windows(const context *all, int64_t index, window_gradient *gradient)
{
    int64_t n = index / all->blocks, block = index % all->blocks, whole = all->channels / LANES;
    int64_t first = block * whole / all->blocks * LANES, last = (block + 1) * whole / all->blocks * LANES;
    if (block == all->blocks - 1) last = all->channels;
    for (int64_t i = 0; i < all->h * all->w; i++)
        memset(all->dx + (n * all->h * all->w + i) * all->channels + first, 0,
               (size_t)(last - first) * sizeof *all->dx);
    window_place at = {.down = all->window->dilation[0] * all->w * all->channels,
                       .right = all->window->dilation[1] * all->channels};
    for (int64_t p = 0; p < all->p; p++) {
        span rows = window_span(all->window, 0, p, all->h);
        for (int64_t q = 0; q < all->q; q++) {
            span columns = window_span(all->window, 1, q, all->w);
            int64_t top = n * all->h + rows.start + rows.first * all->window->dilation[0];
            int64_t left = columns.start + columns.first * all->window->dilation[1];
            at.rows = rows.last - rows.first;
            at.columns = columns.last - columns.first;
            for (int64_t c = first; c < last; c += LANES) {
                at.out = ((n * all->p + p) * all->q + q) * all->channels + c;
                at.in = (top * all->w + left) * all->channels + c;
                at.lanes = cpu_min(LANES, last - c);
                gradient(all, &at);
            }
        }
    }
}

static void max_windows(void *argument, int64_t index, int thread)
{
    (void)thread;
    add_windows(argument, index, max_window);
}

static void avg_windows(void *argument, int64_t index, int thread)
{
    (void)thread;
    add_windows(argument, index, avg_window);
}

static void run(const cpu_calculator *cpu, const context *all, cpu_task *task)
{
    int64_t window = (int64_t)all->window->size[0] * all->window->size[1];
    context copy = *all;
    cpu_parallel_static(cpu, all->n * all->blocks,
                        cpu_time_of_elements(all->n * all->channels * (all->h * all->w + 2 * all->p * all->q * window)),
                        task, &copy);
}

void max_pool_nhwc_backward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    context all = context_of(operation, &operation->in[2]);
    all.x = input(operation, 0);
    all.y = input(operation, 1);
    run(cpu, &all, max_windows);
}

void avg_pool_nhwc_backward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    context all = context_of(operation, &operation->in[0]);
    run(cpu, &all, avg_windows);
}

/* Every pixel of an image gets the same gradient. */
static void spread_mean(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    int64_t area = all->h * all->w;
    const element *dy = all->dy + index * all->channels;
    (void)thread;
    for (int64_t i = 0; i < area; i++) {
        element *dx = all->dx + (index * area + i) * all->channels;
#pragma omp simd
        for (int64_t c = 0; c < all->channels; c++) dx[c] = dy[c] / (element)area;
    }
}

void global_avg_pool_nhwc_backward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    context all = context_of(operation, &operation->in[0]);
    cpu_parallel_static(cpu, all.n, cpu_time_of_elements(all.n * all.channels * all.h * all.w), spread_mean, &all);
}
