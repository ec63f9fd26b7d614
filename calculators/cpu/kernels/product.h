/* SPDX-License-Identifier: MIT */
/* A matrix product on the calling thread: c (m,n) = [c +] alpha a b. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_PRODUCT_H
#define SDLF_CALCULATORS_CPU_KERNELS_PRODUCT_H

#include "calculators/cpu/kernels/micro.h"

/* Transposition is a matter of strides: a[i, p] lies at a[i a_row + p a_step], b[p, j] at b[p b_step + j b_column], and of
 * each pair one stride is 1. c's rows are c_row apart. */
typedef struct product {
    int64_t m, n, k;
    element alpha;
    bool accumulate;
    /* b is read where it lies, and b and c have room for n rounded up to LANES columns. */
    bool padded;
    /* a was packed by product_pack_a_cpu: a[i, p] lies at a[(i - r) a_row + p TILE_ROWS + r], r = i % TILE_ROWS. */
    bool blocked;
    const element *a, *b;
    const element *from; /* what is accumulated to, laid out as c; NULL: c */
    element *c;
    int64_t a_row, a_step, b_step, b_column, c_row;
    const element *panels; /* of all columns, by product_pack_panels_cpu; then b is not read. NULL: none */
    int64_t panels_columns, first_column; /* of all; of c among them, a multiple of TILE_COLUMNS */
} product;

/* Columns and inner elements that product_compute_cpu works on at a time, and the scratch space that it needs, in elements:
 * a piece of b in panels of TILE_COLUMNS columns, and one tile of c. A caller that cuts c into pieces of
 * PRODUCT_COLUMNS columns has every element of b packed once. */
enum {
    PRODUCT_COLUMNS = 768 / sizeof(element),
    PRODUCT_INNER = 512,
    PRODUCT_EDGE = TILE_ROWS * TILE_COLUMNS, /* all that it needs where b is in panels */
    PRODUCT_SCRATCH = PRODUCT_COLUMNS * PRODUCT_INNER + PRODUCT_EDGE,
};

void product_compute_cpu(const product *all, element *scratch);

/* Columns [first, last) of b, from `first`, a multiple of TILE_COLUMNS, on, to their place among the panels of all of b, for which there is
 * room for k rows of n rounded up to LANES columns. */
void product_pack_panels_cpu(element *packed, const product *all, int64_t first, int64_t last);

/* One tile of at most TILE_ROWS rows and TILE_VECTORS vectors. */
void product_tile_cpu(int64_t rows, int64_t vectors, const micro_step *step);

/* Columns p of a transposed a (a_row is 1), p in [0, k), rows [0, rows): into blocks of TILE_ROWS rows, `block_step` elements
 * apart, k TILE_ROWS of each are written. */
void product_pack_a_cpu(element *packed, int64_t block_step, const element *a, int64_t a_step, int64_t k, int64_t rows);

/* Copy columns [0, columns) of b, k rows, into a panel whose rows are `width` wide, zeros behind the last column. */
void product_pack_cpu(element *panel, int64_t width, const element *b, int64_t b_step, int64_t b_column, int64_t k,
                      int64_t columns);

#endif
