/* SPDX-License-Identifier: MIT */
/* The implicit GEMM microkernel: some output pixels times a panel of filters.
 *
 *     y[i, :] = f(bias + residual[i, :] + sum over runs r and t of at[r][i][t] w[r, t, :])
 *
 * With 6 pixels x 4 vectors a step does 24 multiply-adds for 4 loads of weights and 6 broadcasts: compute-bound. Tiles
 * of fewer pixels make remainders cheap: no accumulator's value depends on the tile that it belongs to. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_TILE_H
#define SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_TILE_H

#include "calculators/cpu/kernels/micro.h"

/* The maximum vectors of a panel; and the pixels of a register tile for each number of vectors: accumulators, one row
 * of weights and one broadcast fill the vector registers. */
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
enum { PANEL_VECTORS = 4, PIXELS_1 = 8, PIXELS_2 = 8, PIXELS_3 = 8, PIXELS_4 = 6 };
#else
enum { PANEL_VECTORS = 3, PIXELS_1 = 8, PIXELS_2 = 6, PIXELS_3 = 4 };
#endif
enum { MOST_PIXELS = 8 };

typedef struct implicit_tile {
    const element *(*at)[MOST_PIXELS]; /* for each run and pixel, its address; NULL: one run, at x + i x_step */
    const element *x;
    int64_t x_step;
    int64_t run_count, run; /* number of runs; elements of each */
    const unsigned char
        *runs;     /* the run_count runs that are not zero for all pixels; NULL: all the runs, in the order of `at` */
    int64_t ahead; /* prefetch distance to the next tile's input, in elements; 0: no prefetch */
    const element *w, *bias; /* of the panel: its packed weights; the bias of all its vectors */
    const element *fetch;    /* weights to prefetch: one row of the panel at each step, */
    int64_t fetch_step;      /* elements from the start of one step to the next */
    element *y;              /* output of the first pixel */
    const element *residual; /* of the first pixel; NULL: none */
    int64_t step;            /* elements from one pixel to the next, in y and residual */
    int64_t pixels;
    int64_t filters; /* fewer than the vectors hold: the last vector ends with them, and overlaps its neighbour */
    const sdlf_activation *activation;
} implicit_tile;

/* The maximum pixels of a tile of `vectors` vectors. */
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

/* The first filter of vector `index` of a panel of `filters`. A single vector may have fewer filters than lanes. */
static inline int64_t implicit_vector_start(int64_t index, int64_t filters)
{
    return cpu_max(0, cpu_min(index * LANES, filters - LANES));
}

/* Prefetches the weights of the next steps. */
static inline void implicit_tile_fetch_near(implicit_tile *t, int vectors)
{
    t->fetch_step = vectors * LANES;
    t->fetch = t->w + PREFETCH_STEPS * t->fetch_step;
}

void implicit_tile_cpu(int vectors, const implicit_tile *tile);

#endif
