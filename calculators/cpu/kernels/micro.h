/* SPDX-License-Identifier: MIT */
/* The GEMM microkernel: a register tile of c, one multiply-add for each vector and k.
 *
 *     c[i, :] = (accumulate ? from[i, :] : 0) + alpha sum over p of a[i, p] b[p, :]      i < rows, `vectors` vectors of columns
 *
 * a is read element by element and broadcast, b in vectors; neither needs packing: a's rows are `a_row` apart and its
 * columns `a_step` (one of the two is 1), b's rows are `b_step` apart. With 8 rows of 3 vectors of 16 floats a k-step
 * does 24 multiply-adds on 24 accumulators for 3 + 8 loads: compute-bound, at 0.9 to 1.0 of peak. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_MICRO_H
#define SDLF_CALCULATORS_CPU_KERNELS_MICRO_H

#include "calculators/cpu/kernels/element.h"

/* The register tile for 32 vector registers, and for 16. */
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
enum { TILE_ROWS = 8, TILE_VECTORS = 3 };
#elif SDLF_VECTOR_BYTES == 32
enum { TILE_ROWS = 4, TILE_VECTORS = 3 };
#else
enum { TILE_ROWS = 4, TILE_VECTORS = 2 };
#endif
enum { TILE_COLUMNS = TILE_VECTORS * LANES };

/* The prefetch distance of b: its rows may lie on separate pages, which the hardware prefetcher does not follow. */
enum { PREFETCH_STEPS = 16 };

typedef struct micro_step {
    int64_t k;
    element alpha;
    bool accumulate;
    const element *a, *b;
    const element *from; /* initial value of the accumulation, laid out as c; NULL: c */
    element *c;
    int64_t a_row, a_step, b_step, c_row;
} micro_step;

/* rows, vectors and a_rows_apart (a_step is 1, else a_row is 1) are compile-time constants at every call. */
static inline __attribute__((always_inline)) void micro_tile(const int rows, const int vectors, const bool a_rows_apart,
                                                             const micro_step *s)
{
    vector sum[8][3];
    const element *a[8], *b = s->b;
    for (int i = 0; i < rows; i++) {
        a[i] = s->a + i * (a_rows_apart ? s->a_row : 1);
        for (int j = 0; j < vectors; j++) sum[i][j] = (vector){0};
    }
    const element *column = s->a;
    int64_t k = s->k, a_step = s->a_step, b_step = s->b_step;
    for (int64_t p = 0; p < k; p++) {
        vector row[3];
        for (int j = 0; j < vectors; j++) {
            row[j] = load(b + j * LANES);
            __builtin_prefetch(b + PREFETCH_STEPS * b_step + j * LANES);
        }
        for (int i = 0; i < rows; i++) {
            element x = a_rows_apart ? a[i][p] : column[i];
            for (int j = 0; j < vectors; j++) sum[i][j] += x * row[j];
        }
        column += a_step;
        b += b_step;
    }
    const element *from = s->from ? s->from : s->c;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < vectors; j++) {
            int64_t at = i * s->c_row + j * LANES;
            vector result = s->alpha * sum[i][j];
            store(s->c + at, s->accumulate ? load(from + at) + result : result);
        }
    }
}

static inline __attribute__((always_inline)) void micro_rows(const int rows, int vectors, const micro_step *s)
{
    if (s->a_step == 1) {
        switch (vectors) {
        case 1: micro_tile(rows, 1, true, s); break;
        case 2: micro_tile(rows, 2, true, s); break;
        default: micro_tile(rows, 3, true, s); break;
        }
    } else {
        switch (vectors) {
        case 1: micro_tile(rows, 1, false, s); break;
        case 2: micro_tile(rows, 2, false, s); break;
        default: micro_tile(rows, 3, false, s); break;
        }
    }
}

#endif
