/* SPDX-License-Identifier: MIT */
/* Single-threaded GEMM: c (m,n) = [c +] alpha a b. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_PRODUCT_H
#define SDLF_CALCULATORS_CPU_KERNELS_PRODUCT_H

#include "calculators/cpu/kernels/micro.h"

/* Transposition is expressed by strides: a[i, p] is at a[i a_row + p a_step], b[p, j] at b[p b_step + j b_column], and
 * one stride of each pair is 1. c's rows are c_row apart. */
typedef struct product {
    int64_t m, n, k;
    element alpha;
    bool accumulate;
    /* b is read in place, and b and c have space for n rounded up to LANES columns. */
    bool padded;
    /* a was packed by product_pack_a_cpu: a[i, p] is at a[(i - r) a_row + p TILE_ROWS + r], r = i % TILE_ROWS. */
    bool blocked;
    const element *a, *b;
    const element *from; /* initial value of the accumulation, laid out as c; NULL: c */
    element *c;
    int64_t a_row, a_step, b_step, b_column, c_row;
    const element *panels; /* all columns, packed by product_pack_panels_cpu; then b is not read. NULL: none */
    int64_t panels_columns, first_column; /* total columns; position of c among them, a multiple of TILE_COLUMNS */
} product;

/* The cache block of product_compute_cpu, in columns and k, and its scratch space, in elements: a block of b in panels
 * of TILE_COLUMNS columns, and one tile of c. If the caller partitions c into blocks of PRODUCT_COLUMNS columns, every
 * element of b is packed once. */
enum {
    PRODUCT_COLUMNS = 768 / sizeof(element),
    PRODUCT_INNER = 512,
    PRODUCT_EDGE = TILE_ROWS * TILE_COLUMNS, /* all that it needs if b is packed */
    PRODUCT_SCRATCH = PRODUCT_COLUMNS * PRODUCT_INNER + PRODUCT_EDGE,
};

void product_compute_cpu(const product *all, element *scratch);

/* Packs columns [first, last) of b, `first` a multiple of TILE_COLUMNS, into their position among the panels of all of
 * b, which have space for k rows of n rounded up to LANES columns. */
void product_pack_panels_cpu(element *packed, const product *all, int64_t first, int64_t last);

/* The microkernel for a tile of at most TILE_ROWS rows and TILE_VECTORS vectors. */
void product_tile_cpu(int64_t rows, int64_t vectors, const micro_step *step);

/* Packs columns p of a transposed a (a_row is 1), p in [0, k), rows [0, rows), into blocks of TILE_ROWS rows,
 * `block_step` elements apart; k TILE_ROWS elements of each are written. */
void product_pack_a_cpu(element *packed, int64_t block_step, const element *a, int64_t a_step, int64_t k, int64_t rows);

/* Copies columns [0, columns) of b, k rows, into a panel with rows of `width` elements; pads with zeros. */
void product_pack_cpu(element *panel, int64_t width, const element *b, int64_t b_step, int64_t b_column, int64_t k,
                      int64_t columns);

#endif
