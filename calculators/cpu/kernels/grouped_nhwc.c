/* SPDX-License-Identifier: MIT */
/* Grouped convolution with few channels in a group, NHWC. See grouped.h.
 *
 * A strip is up to STRIP neighbouring pixels of a row and one vector of filters, with its accumulators in registers. Each step does as
 * many multiply-adds as the strip has pixels, for one load of weights and a rotation or a broadcast for each pixel. Window positions
 * outside of the image read a row of zeros. 2 N C/G K P Q R S FLOPs; floor: x and y moved once, as rows stay in the caches. */
#include "calculators/cpu/kernels/grouped.h"

#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/lanes.h"

enum {
    STRIP = SDLF_VECTOR_BYTES == 64 ? 8 : 6,
    MOST_CHANNELS = 8, /* of a group; 16 are faster by Winograd or implicit GEMM */
    MOST_COLUMNS = 16, /* of a window */
    MOST_LANES = 16,
    LEAST_TASKS = 32,
};

bool grouped_takes_cpu(const convolution *v)
{
    if (v->groups < 2 || v->k < 1 || v->c < 2 || v->c > MOST_CHANNELS || v->s > MOST_COLUMNS) return false;
    bool rotates = v->k == v->c && v->c < LANES && LANES % v->c == 0 && v->groups * v->c >= LANES;
    return rotates || v->k == LANES;
}

/* The number of vectors of all filters. With rotation, the last starts LANES before the end and may overlap the one before. */
static int64_t vectors_of(const convolution *v)
{
    return cpu_divide_up(v->groups * v->k, LANES);
}

static int64_t first_filter(const convolution *v, int64_t index)
{
    return cpu_min(index * LANES, v->groups * v->k - LANES);
}

int64_t grouped_packed_size_cpu(const convolution *v)
{
    return vectors_of(v) * v->taps * LANES;
}

void grouped_pack_cpu(element *packed, const convolution *v, const implicit_weights *w)
{
    const bool rotates = v->k < LANES;
    for (int64_t i = 0; i < vectors_of(v); i++) {
        for (int64_t position = 0; position < v->r_s; position++) {
            for (int64_t step = 0; step < v->c; step++) {
                for (int64_t lane = 0; lane < LANES; lane++) {
                    int64_t filter = first_filter(v, i) + lane;
                    int64_t channel = rotates ? (filter + step) % v->c : step;
                    *packed++ = w->w[filter / v->k * w->group + filter % v->k * w->filter + channel * w->channel +
                                     position / v->s * w->row + position % v->s * w->column];
                }
            }
        }
    }
}

typedef struct context {
    const convolution_forward *forward;
    const element *packed;
    int64_t parts; /* tasks of an output row, each with some vectors of filters */
} context;

/* Up to STRIP neighbouring outputs of a row, one vector of filters. */
typedef struct strip {
    const convolution *v;
    const element *start;                       /* input of the window's first position for the first pixel */
    int64_t columns[MOST_COLUMNS];              /* offset in elements of each window column from there */
    bool inside[MOST_COLUMNS];                  /* true if it is inside the image for all STRIP pixels */
    unsigned char outside[MOST_COLUMNS][STRIP]; /* otherwise: the pixels not inside, or past the last */
    const element *w, *bias, *residual;         /* of the vector; of the first pixel */
    element *y;
    int64_t channel;              /* the first of the vector */
    int64_t top, bottom;          /* rows of the window that lie inside the image */
    int64_t row_step, pixel_step; /* elements to the window's next row, and to the next pixel's window */
    int64_t pixels, step;
    int64_t skip; /* leading lanes that belong to the vector before */
    element low, high;
} strip;

_Static_assert((int)LANES <= (int)MOST_LANES && (int)MOST_CHANNELS <= (int)MOST_LANES,
               "zeros are for a vector, or a group");
static const element zeros[MOST_LANES] = {0};

/* Rotates each group of `c` lanes by one: its first lane moves behind its last. */
static inline __attribute__((always_inline)) vector rotate(const int c, vector x)
{
    if (c == 2) {
#if SDLF_LANES == 16
        return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#elif SDLF_LANES == 8
        return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
#elif SDLF_LANES == 4
        return __builtin_shufflevector(x, x, 1, 0, 3, 2);
#endif
    }
#if SDLF_LANES == 16
    if (c == 4) return __builtin_shufflevector(x, x, 1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12);
    if (c == 8) return __builtin_shufflevector(x, x, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11, 12, 13, 14, 15, 8);
#elif SDLF_LANES == 8
    if (c == 4) return __builtin_shufflevector(x, x, 1, 2, 3, 0, 5, 6, 7, 4);
#endif
    return x;
}

static inline __attribute__((always_inline)) void finish(const int pixels, const strip *t, const vector *sum)
{
    UNROLLED
    for (int i = 0; i < STRIP; i++) {
        if (i >= pixels || i >= t->pixels) continue;
        const element *residual = t->residual ? t->residual + i * t->step : NULL;
        element *y = t->y + i * t->step;
        if (t->skip == 0) {
            vector all = residual ? sum[i] + load(residual) : sum[i];
            store(y, clamp_lanes(all, broadcast(t->low), broadcast(t->high)));
        } else { /* the leading lanes may belong to another task */
            element part[LANES];
            store(part, sum[i]);
            for (int64_t j = t->skip; j < LANES && residual; j++) part[j] += residual[j];
            store(part, clamp_lanes(load(part), broadcast(t->low), broadcast(t->high)));
            memcpy(y + t->skip, part + t->skip, (size_t)(LANES - t->skip) * sizeof *part);
        }
    }
}

/* `pixels` and `c` are constants at every call; c: channels of a group that are rotated; 0: each is broadcast. */
static inline __attribute__((always_inline)) void compute_strip(const int pixels, const int c, const strip *t)
{
    const convolution *v = t->v;
    vector sum[STRIP], start = t->bias ? load(t->bias) : (vector){0};
    UNROLLED
    for (int i = 0; i < STRIP; i++) sum[i] = start;
    for (int64_t r = t->top; r < t->bottom; r++) {
        const element *w = t->w + r * v->s * v->c * LANES, *row = t->start + r * t->row_step + t->channel;
        for (int64_t s = 0; s < v->s; s++) {
            const element *x[STRIP];
            UNROLLED
            for (int i = 0; i < STRIP; i++) x[i] = row + t->columns[s] + i * t->pixel_step;
            if (!t->inside[s]) {
                UNROLLED
                for (int i = 0; i < STRIP; i++) x[i] = t->outside[s][i] ? zeros : x[i];
            }
            vector lanes[STRIP], weight = load(w);
            UNROLLED
            for (int i = 0; i < STRIP; i++) {
                if (i >= pixels) continue;
                lanes[i] = c > 0 ? load(x[i]) : broadcast(x[i][0]);
                sum[i] += lanes[i] * weight;
            }
            for (int64_t step = 1; step < v->c; step++) { /* not unrolled: that would keep all rotations live at once */
                weight = load(w + step * LANES);
                UNROLLED
                for (int i = 0; i < STRIP; i++) {
                    if (i >= pixels) continue;
                    lanes[i] = c > 0 ? rotate(c, lanes[i]) : broadcast(x[i][step]);
                    sum[i] += lanes[i] * weight;
                }
            }
            w += v->c * LANES;
        }
    }
    finish(pixels, t, sum);
}

static inline __attribute__((always_inline)) void compute_some(const int c, const strip *t)
{
    if (t->pixels > STRIP - 2)
        compute_strip(STRIP, c, t);
    else if (t->pixels > 2)
        compute_strip(STRIP - 2, c, t);
    else
        compute_strip(2, c, t);
}

/* Separate functions, so that each has all registers. */
static __attribute__((noinline)) void compute_pairs(const strip *t)
{
    compute_some(2, t);
}

#if SDLF_LANES >= 8
static __attribute__((noinline)) void compute_fours(const strip *t)
{
    compute_some(4, t);
}
#endif

#if SDLF_LANES >= 16
static __attribute__((noinline)) void compute_eights(const strip *t)
{
    compute_some(8, t);
}
#endif

static __attribute__((noinline)) void compute_wide(const strip *t)
{
    compute_some(0, t);
}

static void compute(const strip *t)
{
    const convolution *v = t->v;
    if (v->k == LANES) compute_wide(t);
#if SDLF_LANES >= 16
    else if (v->c == 8)
        compute_eights(t);
#endif
#if SDLF_LANES >= 8
    else if (v->c == 4)
        compute_fours(t);
#endif
    else
        compute_pairs(t);
}

/* Finds the inputs of the pixels from q on; a window's first row is row `top` of the image. */
static void find_columns(strip *t, const element *image, int64_t top, int64_t q)
{
    const convolution *v = t->v;
    const int64_t left = q * v->stride[1] - v->before[1], pixel = v->groups * v->c;
    t->start = image + (top * v->w + left) * pixel;
    for (int64_t s = 0; s < v->s; s++) {
        const int64_t first = left + s * v->dilation[1];
        t->columns[s] = s * v->dilation[1] * pixel;
        t->inside[s] = first >= 0 && first + (STRIP - 1) * v->stride[1] < v->w;
        for (int64_t i = 0; i < STRIP; i++) {
            const int64_t column = first + i * v->stride[1];
            t->outside[s][i] = i >= t->pixels || column < 0 || column >= v->w;
        }
    }
}

/* Some vectors of filters of an output row. */
static void compute_row(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    const convolution_forward *forward = all->forward;
    const convolution *v = &forward->v;
    const int64_t part = index % all->parts, row = index / all->parts, n = row / v->p, p = row % v->p;
    const int64_t vectors = vectors_of(v), first = part * vectors / all->parts;
    const int64_t last = (part + 1) * vectors / all->parts, filters = v->groups * v->k;
    const int64_t top = p * v->stride[0] - v->before[0], strips = cpu_divide_up(v->q, STRIP);
    const element *image = forward->x + n * v->h * v->w * v->groups * v->c;
    strip t = {.v = v,
               .step = filters,
               .row_step = v->dilation[0] * v->w * v->groups * v->c,
               .pixel_step = v->stride[1] * v->groups * v->c};
    const bool clamps = activation_clamps(&forward->activation, &t.low, &t.high);
    (void)thread;
    t.top = top >= 0 ? 0 : cpu_min(v->r, cpu_divide_up(-top, v->dilation[0]));
    t.bottom = top >= v->h ? t.top : cpu_max(t.top, cpu_min(v->r, cpu_divide_up(v->h - top, v->dilation[0])));
    for (int64_t j = 0; j < strips; j++) {
        const int64_t q = j * v->q / strips;
        t.pixels = (j + 1) * v->q / strips - q;
        find_columns(&t, image, top, q);
        for (int64_t i = first; i < last; i++) {
            const int64_t filter = first_filter(v, i), place = (row * v->q + q) * filters + filter;
            t.skip = i * LANES - filter;
            t.channel = v->k < LANES ? filter : filter / v->k * v->c;
            t.w = all->packed + i * v->taps * LANES;
            t.bias = forward->bias ? forward->bias + filter : NULL;
            t.y = forward->y + place;
            t.residual = forward->residual ? forward->residual + place : NULL;
            compute(&t);
        }
    }
    const int64_t begin = cpu_min(first * LANES, filters), end = cpu_min(last * LANES, filters);
    for (int64_t q = 0; q < v->q && !clamps; q++) {
        element *y = forward->y + (row * v->q + q) * filters + begin;
        activate_cpu(y, y, end - begin, &forward->activation);
    }
}

void grouped_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed)
{
    const convolution *v = &forward->v;
    context all = {.forward = forward, .packed = packed, .parts = 1};
    int64_t rows = v->n * v->p;
    if (rows * v->q == 0) return;
    if (rows < LEAST_TASKS) all.parts = cpu_min(cpu_divide_up(LEAST_TASKS, rows), vectors_of(v));
    cpu_parallel_static(cpu, rows * all.parts, convolution_time(v), compute_row, &all);
}
