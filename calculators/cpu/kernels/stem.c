/* SPDX-License-Identifier: MIT */
/* Stem convolution. See stem.h.
 *
 * A task computes some output rows. It copies the lines of x that these read, with their padding, channel by channel, and
 * accumulates a register tile of neighbouring pixels of a row times a panel of filters: for each position of the window it loads
 * one row of weights and broadcasts input elements that are one or two apart. Floor: 2 N K P Q C R S FLOPs at the peak rate. */
#include "calculators/cpu/kernels/stem.h"

#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/implicit_panels.h"

/* The register tile for each number of vectors: accumulators, a row of weights and one broadcast fill the registers. */
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
enum { TILE_1 = 8, TILE_2 = 8, TILE_3 = 8, TILE_4 = 6, MOST_TILE = 8 };
#else
enum { TILE_1 = 8, TILE_2 = 6, TILE_3 = 4, TILE_4 = 1, MOST_TILE = 8 };
#endif
enum { FEW_CHANNELS = 4, TASKS = 16 }; /* tasks of an image */

typedef struct stem {
    const convolution_forward *forward;
    const element *packed;
    element *scratch;
    implicit_panels panels;
    int64_t tasks; /* of an image */
    int64_t width; /* of a line of a task's copy */
} stem;

bool stem_takes_cpu(const convolution *v)
{
    return v->groups == 1 && v->c <= FEW_CHANNELS && v->k >= LANES && v->stride[1] <= 2 && v->dilation[1] == 1;
}

static int64_t tasks_of(const convolution *v)
{
    return cpu_max(1, cpu_min(v->p, TASKS));
}

static int64_t lines_of(const convolution *v, int64_t rows)
{
    return (rows - 1) * v->stride[0] + (v->r - 1) * v->dilation[0] + 1;
}

/* The padded width, with space for a tile that begins with the last pixel. */
static int64_t width_of(const convolution *v)
{
    return (v->q + MOST_TILE - 2) * v->stride[1] + v->s;
}

int64_t stem_scratch_size_cpu(const convolution *v)
{
    return cpu_round_up(v->c * lines_of(v, cpu_divide_up(v->p, tasks_of(v))) * width_of(v), LANES);
}

/* [panel][c][r][s][filter of the panel] */
void stem_pack_cpu(element *packed, const convolution *v, const element *w)
{
    implicit_panels p = implicit_panels_of(v);
    for (int64_t panel = 0; panel < p.count; panel++) {
        int64_t start = implicit_panel_start(&p, panel), vectors = implicit_panel_start(&p, panel + 1) - start;
        int64_t filters = cpu_min(vectors * LANES, v->k - start * LANES);
        for (int64_t tap = 0; tap < v->taps; tap++) {
            for (int64_t j = 0; j < vectors; j++) {
                int64_t first = start * LANES + implicit_vector_start(j, filters);
                for (int64_t i = 0; i < LANES; i++) *packed++ = w[(first + i) * v->taps + tap];
            }
        }
    }
}

/* ---- one tile ---- */

typedef struct stem_tile {
    const stem *all;
    const element *x; /* input of the window's first position for the first pixel */
    const element *w, *bias, *residual;
    element *y;
    int64_t pixels, filters, channel_step; /* pixels that are stored; elements from one channel's copy to the next's */
} stem_tile;

/* All vectors of a pixel are added before the first is stored: y may alias the residual, and the last two may share filters. */
static inline __attribute__((always_inline)) void finish_pixel(const int vectors, const stem_tile *t, int64_t i,
                                                               vector *sum, vector low, vector high)
{
    int64_t step = t->all->forward->v.k, last = implicit_vector_start(vectors - 1, t->filters);
    UNROLLED
    for (int j = 0; j < PANEL_VECTORS; j++) {
        if (j >= vectors) continue;
        if (t->residual) sum[j] += load(t->residual + i * step + (j < vectors - 1 ? j * LANES : last));
        sum[j] = clamp_lanes(sum[j], low, high);
    }
    UNROLLED
    for (int j = 0; j < PANEL_VECTORS; j++) {
        if (j < vectors) store(t->y + i * step + (j < vectors - 1 ? j * LANES : last), sum[j]);
    }
}

/* pixels, vectors and stride are compile-time constants at every call. */
static inline __attribute__((always_inline)) void compute_tile(const int pixels, const int vectors, const int stride,
                                                               const stem_tile *t)
{
    const convolution *v = &t->all->forward->v;
    const sdlf_activation *activation = &t->all->forward->activation;
    const element *w = t->w;
    vector sum[MOST_TILE][PANEL_VECTORS];
    element low, high;
    bool clamps = activation_clamps(activation, &low, &high);
    UNROLLED
    for (int j = 0; j < PANEL_VECTORS; j++) {
        if (j >= vectors) continue;
        vector start = load(t->bias + j * LANES);
        UNROLLED
        for (int i = 0; i < MOST_TILE; i++) {
            if (i < pixels) sum[i][j] = start;
        }
    }
    for (int64_t c = 0; c < v->c; c++) {
        for (int64_t r = 0; r < v->r; r++) {
            const element *x = t->x + c * t->channel_step + r * v->dilation[0] * t->all->width;
            for (int64_t s = 0; s < v->s; s++, x++, w += vectors * LANES) {
                vector row[PANEL_VECTORS];
                __asm__("" : "+r"(x)); /* or GCC keeps inputs for the next position in registers, which sums need */
                UNROLLED
                for (int j = 0; j < PANEL_VECTORS; j++) {
                    if (j < vectors) row[j] = load(w + j * LANES);
                }
                UNROLLED
                for (int i = 0; i < MOST_TILE; i++) {
                    if (i >= pixels) continue;
                    UNROLLED
                    for (int j = 0; j < PANEL_VECTORS; j++) {
                        if (j < vectors) sum[i][j] += x[i * stride] * row[j];
                    }
                }
            }
        }
    }
    UNROLLED
    for (int i = 0; i < MOST_TILE; i++) {
        if (i < pixels && i < t->pixels) finish_pixel(vectors, t, i, sum[i], broadcast(low), broadcast(high));
    }
    if (clamps) return;
    for (int i = 0; i < pixels && i < t->pixels; i++)
        activate_cpu(t->y + i * v->k, t->y + i * v->k, t->filters, activation);
}

static inline __attribute__((always_inline)) void compute_stride(const int pixels, const int vectors,
                                                                 const stem_tile *t)
{
    if (t->all->forward->v.stride[1] == 1)
        compute_tile(pixels, vectors, 1, t);
    else
        compute_tile(pixels, vectors, 2, t);
}

static __attribute__((noinline)) void compute_1(const stem_tile *t)
{
    compute_stride(TILE_1, 1, t);
}

static __attribute__((noinline)) void compute_2(const stem_tile *t)
{
    compute_stride(TILE_2, 2, t);
}

static __attribute__((noinline)) void compute_3(const stem_tile *t)
{
    compute_stride(TILE_3, 3, t);
}

static __attribute__((noinline)) void compute_4(const stem_tile *t)
{
    compute_stride(TILE_4, cpu_min(4, PANEL_VECTORS), t);
}

static int compute_some(int vectors, const stem_tile *t)
{
    switch (vectors) {
    case 1: compute_1(t); return TILE_1;
    case 2: compute_2(t); return TILE_2;
    case 3: compute_3(t); return TILE_3;
    default: compute_4(t); return TILE_4;
    }
}

/* ---- one task ---- */

/* Copies the lines of a channel from line `top` on, with zeros around them. */
static void copy_lines(const stem *all, const element *x, int64_t top, int64_t lines, element *to)
{
    const convolution *v = &all->forward->v;
    int64_t left = cpu_min(v->before[1], all->width), inside = cpu_min(v->w, all->width - left);
    for (int64_t h = top; h < top + lines; h++, to += all->width) {
        if (h < 0 || h >= v->h) {
            memset(to, 0, (size_t)all->width * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)left * sizeof *to);
        memcpy(to + left, x + h * v->w, (size_t)inside * sizeof *to);
        memset(to + left + inside, 0, (size_t)(all->width - left - inside) * sizeof *to);
    }
}

static void compute_row(const stem *all, const element *copy, int64_t lines, int64_t place)
{
    const convolution_forward *forward = all->forward;
    const convolution *v = &forward->v;
    for (int64_t panel = 0; panel < all->panels.count; panel++) {
        int64_t start = implicit_panel_start(&all->panels, panel), filter = start * LANES;
        int vectors = (int)(implicit_panel_start(&all->panels, panel + 1) - start);
        element bias[PANEL_VECTORS * LANES] = {0};
        stem_tile t = {.all = all,
                       .w = all->packed + filter * v->taps,
                       .bias = bias,
                       .filters = cpu_min(vectors * LANES, v->k - filter),
                       .channel_step = lines * all->width};
        for (int j = 0; j < vectors && forward->bias; j++) {
            int64_t from = filter + implicit_vector_start(j, t.filters);
            memcpy(bias + j * LANES, forward->bias + from, LANES * sizeof *bias);
        }
        for (int64_t q = 0; q < v->q;) {
            t.x = copy + q * v->stride[1];
            t.y = forward->y + (place + q) * v->k + filter;
            t.residual = forward->residual ? forward->residual + (place + q) * v->k + filter : NULL;
            t.pixels = v->q - q;
            q += compute_some(vectors, &t);
        }
    }
}

static void compute_rows(void *argument, int64_t index, int thread)
{
    const stem *all = argument;
    const convolution *v = &all->forward->v;
    int64_t n = index / all->tasks, task = index % all->tasks;
    int64_t first = task * v->p / all->tasks, last = (task + 1) * v->p / all->tasks, lines = lines_of(v, last - first);
    element *copy = all->scratch + thread * stem_scratch_size_cpu(v);
    for (int64_t c = 0; c < v->c; c++) {
        copy_lines(all, all->forward->x + (n * v->c + c) * v->h * v->w, first * v->stride[0] - v->before[0], lines,
                   copy + c * lines * all->width);
    }
    for (int64_t p = first; p < last; p++) {
        compute_row(all, copy + (p - first) * v->stride[0] * all->width, lines, (n * v->p + p) * v->q);
    }
}

void stem_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed,
                      element *scratch)
{
    const convolution *v = &forward->v;
    if (v->n * v->p_q == 0) return;
    stem all = {.forward = forward,
                .packed = packed,
                .scratch = scratch,
                .panels = implicit_panels_of(v),
                .tasks = tasks_of(v),
                .width = width_of(v)};
    cpu_parallel_static(cpu, v->n * all.tasks, convolution_time(v), compute_rows, &all);
}
