/* SPDX-License-Identifier: MIT */
/* The recurrent microkernel: states times packed panels. With 6 rows of 4 vectors a k-step does 24 multiply-adds and 10 loads;
 * with one row it does as many loads as multiply-adds, and two panels provide enough independent chains to hide their latency. */
#include "calculators/cpu/kernels/recurrent.h"

/* rows and vectors are compile-time constants at every call. */
static inline __attribute__((always_inline)) void multiply(const int rows, const int vectors, element *sums,
                                                           const recurrent_tile *tile)
{
    vector sum[RECURRENT_ROWS][RECURRENT_VECTORS];
    const element *panel = tile->panel, *x = tile->x, *ahead = tile->ahead;
    int64_t depth = tile->depth, x_row = tile->x_row;
    UNROLLED
    for (int i = 0; i < rows; i++) {
        UNROLLED
        for (int j = 0; j < vectors; j++) sum[i][j] = (vector){0};
    }
    for (int64_t p = 0; p < depth; p++) {
        vector column[RECURRENT_VECTORS];
        UNROLLED
        for (int j = 0; j < vectors; j++) column[j] = load(panel + j * LANES);
        if (rows > 1) __builtin_prefetch(ahead + p * LANES);
        UNROLLED
        for (int i = 0; i < rows; i++) {
            element factor = x[i * x_row + p];
            UNROLLED
            for (int j = 0; j < vectors; j++) sum[i][j] += factor * column[j];
        }
        panel += vectors * LANES;
    }
    UNROLLED
    for (int i = 0; i < rows; i++) {
        UNROLLED
        for (int j = 0; j < vectors; j++) store(sums + (i * vectors + j) * LANES, sum[i][j]);
    }
}

static inline __attribute__((always_inline)) void multiply_rows(const int vectors, element *sums,
                                                                const recurrent_tile *tile)
{
    switch (tile->rows) {
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
    case 6: multiply(6, vectors, sums, tile); break;
    case 5: multiply(5, vectors, sums, tile); break;
    case 4: multiply(4, vectors, sums, tile); break;
    case 3: multiply(3, vectors, sums, tile); break;
#endif
    case 2: multiply(2, vectors, sums, tile); break;
    default: multiply(1, vectors, sums, tile); break;
    }
}

void recurrent_product_cpu(element *sums, const recurrent_tile *tile)
{
    switch (tile->vectors) {
    case 4: multiply_rows(4, sums, tile); break;
    case 3: multiply_rows(3, sums, tile); break;
    case 2: multiply_rows(2, sums, tile); break;
    default: multiply_rows(1, sums, tile); break;
    }
}

static inline __attribute__((always_inline)) void multiply_two(const int vectors, element *sums,
                                                               const recurrent_tile *tile)
{
    const element *panel = tile->panel, *second = panel + tile->depth * vectors * LANES;
    vector sum[2][RECURRENT_VECTORS];
    UNROLLED
    for (int j = 0; j < vectors; j++) sum[0][j] = sum[1][j] = (vector){0};
    for (int64_t p = 0; p < tile->depth; p++) {
        element factor = tile->x[p];
        UNROLLED
        for (int j = 0; j < vectors; j++) {
            sum[0][j] += factor * load(panel + (p * vectors + j) * LANES);
            sum[1][j] += factor * load(second + (p * vectors + j) * LANES);
        }
    }
    UNROLLED
    for (int j = 0; j < vectors; j++) {
        store(sums + j * LANES, sum[0][j]);
        store(sums + (vectors + j) * LANES, sum[1][j]);
    }
}

void recurrent_product_of_two_cpu(element *sums, const recurrent_tile *tile)
{
    switch (tile->vectors) {
    case 4: multiply_two(4, sums, tile); break;
    case 3: multiply_two(3, sums, tile); break;
    case 2: multiply_two(2, sums, tile); break;
    default: multiply_two(1, sums, tile); break;
    }
}
