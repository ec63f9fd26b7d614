/* SPDX-License-Identifier: MIT */
/* The implicit GEMM microkernel. See implicit_tile.h. */
#include "calculators/cpu/kernels/implicit_tile.h"

#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/lanes.h"

typedef vector tile_sums[MOST_PIXELS][PANEL_VECTORS];

/* Stores a single partial vector. */
static void finish_part(const implicit_tile *t, int64_t i, vector sum, vector low, vector high, bool clamped)
{
    element *y = t->y + i * t->step;
    if (t->residual) sum += load_some(t->residual + i * t->step, t->filters);
    store_some(y, clamped ? clamp_lanes(sum, low, high) : sum, t->filters);
}

/* All vectors of a pixel are added before the first is stored: y may alias the residual, and the last two may share filters. */
static inline __attribute__((always_inline)) void finish_pixel(const int vectors, const implicit_tile *t, int64_t i,
                                                               vector *sum, vector low, vector high, bool clamped)
{
    const element *residual = t->residual ? t->residual + i * t->step : NULL;
    element *y = t->y + i * t->step;
    int64_t last = implicit_vector_start(vectors - 1, t->filters);
    UNROLLED
    for (int j = 0; j < PANEL_VECTORS; j++) {
        if (j >= vectors) continue;
        if (t->residual) sum[j] += load(residual + (j < vectors - 1 ? j * LANES : last));
        if (clamped) sum[j] = clamp_lanes(sum[j], low, high);
    }
    UNROLLED
    for (int j = 0; j < PANEL_VECTORS; j++) {
        if (j < vectors) store(y + (j < vectors - 1 ? j * LANES : last), sum[j]);
    }
}

/* pixels and vectors are compile-time constants at every call. Missing pixels are computed as copies of the first.
 *
 * The loops over accumulators have constant bounds and skip what exceeds `pixels` and `vectors`: so every compiler
 * unrolls them, even one that does so before it inlines the two constants, and the accumulators stay in registers. */
static inline __attribute__((always_inline)) void compute_tile(const int pixels, const int vectors,
                                                               const implicit_tile *t)
{
    tile_sums sum;
    const element *w = t->w, *fetch = t->fetch;
    int64_t run = t->run, count = t->pixels, fetch_step = t->fetch_step;
    for (int i = 0; i < pixels; i++) { /* prefetch the next tile's outputs */
        for (int j = 0; j < vectors; j++) __builtin_prefetch(t->y + (count + i) * t->step + j * LANES, 1);
    }
    UNROLLED
    for (int j = 0; j < PANEL_VECTORS; j++) {
        if (j >= vectors) continue;
        vector start = load(t->bias + j * LANES);
        UNROLLED
        for (int i = 0; i < MOST_PIXELS; i++) {
            if (i < pixels) sum[i][j] = start;
        }
    }
    for (int64_t n = 0; n < t->run_count; n++) {
        __asm__ volatile("" : : : "memory"); /* reload *t, so that it takes no register from the accumulators */
        const element *x[MOST_PIXELS];
        int64_t r = n;
        if (t->runs != NULL) {
            r = t->runs[n];
            w = t->w + r * run * vectors * LANES;
        }
        UNROLLED
        for (int i = 0; i < MOST_PIXELS; i++) {
            int pixel = i < count ? i : 0;
            x[i] = t->at ? t->at[r][pixel] : t->x + pixel * t->x_step;
        }
        for (int64_t c = 0; c < run;) { /* few accumulators: a step is so short that pixels must be prefetched */
            bool fetches = vectors <= 2 && t->ahead > 0;
            int64_t stop = fetches ? cpu_min(c + LANES, run) : run;
            for (int i = 0; i < pixels && fetches; i++) __builtin_prefetch(x[i] + c + t->ahead);
            for (; c < stop; c++, w += vectors * LANES, fetch += fetch_step) {
                vector row[PANEL_VECTORS];
                UNROLLED
                for (int j = 0; j < PANEL_VECTORS; j++) {
                    if (j >= vectors) continue;
                    row[j] = load(w + j * LANES);
                    __builtin_prefetch(fetch + j * LANES);
                }
                UNROLLED
                for (int i = 0; i < MOST_PIXELS; i++) {
                    if (i >= pixels) continue;
                    UNROLLED
                    for (int j = 0; j < PANEL_VECTORS; j++) {
                        if (j < vectors) sum[i][j] += x[i][c] * row[j];
                    }
                }
            }
        }
    }
    element low, high;
    bool clamped = activation_clamps(t->activation, &low, &high);
    bool wants_clamp = clamped && t->activation->function != SDLF_IDENTITY;
    if (vectors == 1 && t->filters < LANES) {
        element part[MOST_PIXELS * LANES];
        UNROLLED
        for (int i = 0; i < MOST_PIXELS; i++) {
            if (i < pixels) store(part + i * LANES, sum[i][0]);
        }
        for (int i = 0; i < count; i++)
            finish_part(t, i, load(part + i * LANES), broadcast(low), broadcast(high), wants_clamp);
    } else {
        UNROLLED
        for (int i = 0; i < MOST_PIXELS; i++) {
            if (i < pixels && i < count)
                finish_pixel(vectors, t, i, sum[i], broadcast(low), broadcast(high), wants_clamp);
        }
    }
    for (int i = 0; i < count && !clamped; i++)
        activate_cpu(t->y + i * t->step, t->y + i * t->step, t->filters, t->activation);
}

/* Selects the smallest tile that holds the pixels. */
static inline __attribute__((always_inline)) void compute_some(const int most, const int vectors,
                                                               const implicit_tile *t)
{
    if (t->pixels == most)
        compute_tile(most, vectors, t);
    else if (t->pixels == most - 1)
        compute_tile(most - 1, vectors, t);
    else if (t->pixels > most / 2)
        compute_tile(most - 2, vectors, t);
    else if (t->pixels > 1)
        compute_tile(most / 2, vectors, t);
    else
        compute_tile(1, vectors, t);
}

/* Separate functions, so that each has all registers. */
static __attribute__((noinline)) void compute_1(const implicit_tile *t)
{
    compute_some(PIXELS_1, 1, t);
}

static __attribute__((noinline)) void compute_2(const implicit_tile *t)
{
    compute_some(PIXELS_2, 2, t);
}

static __attribute__((noinline)) void compute_3(const implicit_tile *t)
{
    compute_some(PIXELS_3, 3, t);
}

#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
static __attribute__((noinline)) void compute_4(const implicit_tile *t)
{
    compute_some(PIXELS_4, 4, t);
}
#endif

void implicit_tile_cpu(int vectors, const implicit_tile *tile)
{
    switch (vectors) {
    case 1: compute_1(tile); break;
    case 2: compute_2(tile); break;
    case 3: compute_3(tile); break;
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
    default: compute_4(tile); break;
#endif
    }
}
