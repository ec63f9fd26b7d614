/* SPDX-License-Identifier: MIT */
/* One tile of an implicit product: some pixels of the output times a panel of filters.
 *
 *     y[i, :] = f(bias + residual[i, :] + sum over runs r and t of at[r][i][t] w[r, t, :])
 *
 * With 6 pixels x 4 vectors a step does 24 multiply-adds for 4 loads of weights and 6 broadcasts: bound by arithmetic. There are
 * tiles of fewer pixels, so that what does not divide evenly costs little: each sum is the same whatever tile it is part of. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_TILE_H
#define SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_TILE_H

#include "calculators/cpu/kernels/micro.h"

/* Vectors of a panel at most; and the pixels of a tile for each number of vectors: accumulators, one row of weights and one
 * broadcast fill the machine's vector registers. */
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
enum { PANEL_VECTORS = 4, PIXELS_1 = 8, PIXELS_2 = 8, PIXELS_3 = 8, PIXELS_4 = 6 };
#else
enum { PANEL_VECTORS = 3, PIXELS_1 = 8, PIXELS_2 = 6, PIXELS_3 = 4 };
#endif
enum { MOST_PIXELS = 8 };

typedef struct implicit_tile {
    const element *(*at)[MOST_PIXELS]; /* of each run and pixel, where it begins; NULL: at x + i x_step, one run */
    const element *x;
    int64_t x_step;
    int64_t run_count, run; /* runs, and the elements of each */
    const unsigned char
        *runs;     /* those that are not zero for all pixels, run_count of them; NULL: all of at's, in their order */
    int64_t ahead; /* from what is read to what is fetched for the next tile, in elements; 0: nothing */
    const element *w, *bias; /* the panel's; of all its vectors */
    const element *fetch;    /* weights that will be needed: a row of the panel is fetched at each step, */
    int64_t fetch_step;      /* elements from the beginning of one step to that of the next */
    element *y;              /* where the results of the first pixel go */
    const element *residual; /* of the first pixel; NULL: there is none */
    int64_t step;            /* from one pixel to the next, in y and residual */
    int64_t pixels;
    int64_t filters; /* fewer than the vectors hold: the last one ends with them, and overlaps its neighbour */
    const sdlf_activation *activation;
} implicit_tile;

/* The most pixels of a tile of `vectors` vectors. */
static inline int implicit_tile_pixels(int vectors)
{
    static const int pixels[] = {
        0,
        PIXELS_1,
        PIXELS_2,
        PIXELS_3,
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
        PIXELS_4,
#endif
    };
    return pixels[vectors];
}

/* The first filter of vector `index` of a panel of `filters`. A single vector of fewer than LANES filters leaves lanes unused. */
static inline int64_t implicit_vector_start(int64_t index, int64_t filters)
{
    return cpu_max(0, cpu_min(index * LANES, filters - LANES));
}

/* Fetches the weights that come soon. */
static inline void implicit_tile_fetch_near(implicit_tile *t, int vectors)
{
    t->fetch_step = vectors * LANES;
    t->fetch = t->w + PREFETCH_STEPS * t->fetch_step;
}

void implicit_tile_cpu(int vectors, const implicit_tile *tile);

#endif
