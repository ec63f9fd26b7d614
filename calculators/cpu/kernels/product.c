/* SPDX-License-Identifier: MIT */
/* Single-threaded GEMM, for every transposition and any size. See product.h and micro.h.
 *
 * Cache blocking: k is partitioned into blocks of PRODUCT_INNER, the columns into blocks of PRODUCT_COLUMNS; such a
 * block of b is packed into panels (or read in place if it would be used only once or twice), which stay in the
 * second-level cache (0.4 MB) while the rows of a stream through. 2 m n k FLOPs; packing adds one vector load and store
 * for each vector of b, against 2 m FLOPs for each element. */
#include "calculators/cpu/kernels/product.h"
#include "calculators/cpu/kernels/interleave.h"

void product_tile_cpu(int64_t rows, int64_t vectors, const micro_step *step)
{
    if (TILE_ROWS == 8 && rows == 8) {
        micro_rows(8, (int)vectors, step);
    } else if (rows == 4) {
        micro_rows(4, (int)vectors, step);
    } else if (rows == 2) {
        micro_rows(2, (int)vectors, step);
    } else {
        micro_rows(1, (int)vectors, step);
    }
}

void product_pack_a_cpu(element *packed, int64_t block_step, const element *a, int64_t a_step, int64_t k, int64_t rows)
{
    for (int64_t p = 0; p < k; p++, a += a_step, packed += TILE_ROWS) {
        int64_t i = 0;
        for (; i + TILE_ROWS <= rows; i += TILE_ROWS) {
            memcpy(packed + i / TILE_ROWS * block_step, a + i, TILE_ROWS * sizeof *packed);
        }
        for (int64_t r = i; r < rows; r++) packed[i / TILE_ROWS * block_step + r - i] = a[r];
    }
}

void product_pack_cpu(element *panel, int64_t width, const element *b, int64_t b_step, int64_t b_column, int64_t k,
                      int64_t columns)
{
    if (columns < width) memset(panel, 0, (size_t)(k * width) * sizeof *panel);
    if (b_column != 1) {
        transpose(panel, width, b, b_column, columns, k);
    } else if (columns == width) {
        for (int64_t p = 0; p < k; p++) {
            for (int64_t j = 0; j < width; j += LANES) {
                store(panel + p * width + j, load(b + p * b_step + j));
                __builtin_prefetch(b + (p + PREFETCH_STEPS) * b_step + j);
            }
        }
    } else {
        for (int64_t p = 0; p < k; p++) memcpy(panel + p * width, b + p * b_step, (size_t)columns * sizeof *panel);
    }
}

/* A block of b, divided into panels. */
typedef struct panels {
    const element *b; /* panel i starts at b + i panel_step */
    int64_t panel_step, b_step;
    bool packed;
} panels;

static int64_t panel_width(int64_t columns)
{
    return cpu_min(TILE_COLUMNS, cpu_round_up(columns, LANES));
}

static void pack_panels(element *packed, const product *part)
{
    for (int64_t j = 0; j < part->n; j += TILE_COLUMNS) {
        product_pack_cpu(packed + j * part->k, panel_width(part->n - j), part->b + j * part->b_column, part->b_step,
                         part->b_column, part->k, cpu_min(TILE_COLUMNS, part->n - j));
    }
}

static panels make_panels(const product *part, element *packed)
{
    if (part->panels) return (panels){.b = part->panels, .panel_step = TILE_COLUMNS * part->k, .packed = true};
    bool few_uses = part->m <= 2 * TILE_ROWS && part->n % LANES == 0;
    if (part->b_column == 1 && (part->padded || few_uses)) {
        return (panels){.b = part->b, .panel_step = TILE_COLUMNS, .b_step = part->b_step};
    }
    pack_panels(packed, part);
    return (panels){.b = packed, .panel_step = TILE_COLUMNS * part->k, .packed = true};
}

/* Rows of c of the next tile: TILE_ROWS, or the largest power of two that remains. */
static int64_t next_rows(int64_t left)
{
    int64_t rows = TILE_ROWS;
    while (rows > left) rows /= 2;
    return rows;
}

/* A tile whose last vector extends past c's edge is computed in a buffer. */
static void edge_tile(int64_t rows, int64_t columns, const micro_step *step, element *tile)
{
    micro_step aside = *step;
    aside.c = tile;
    aside.c_row = TILE_COLUMNS;
    aside.accumulate = false;
    product_tile_cpu(rows, cpu_divide_up(columns, LANES), &aside);
    for (int64_t i = 0; i < rows; i++) {
        element *c = step->c + i * step->c_row;
        const element *from = tile + i * TILE_COLUMNS;
        const element *old = (step->from ? step->from : step->c) + i * step->c_row;
        for (int64_t j = 0; j < columns; j++) c[j] = step->accumulate ? old[j] + from[j] : from[j];
    }
}

/* One cache block of k and columns, all rows. */
static void compute_piece(const product *part, element *scratch)
{
    panels b = make_panels(part, scratch);
    for (int64_t i = 0, rows; i < part->m; i += rows) {
        rows = next_rows(part->m - i);
        int64_t within = part->blocked ? i % TILE_ROWS : 0;
        micro_step step = {.k = part->k,
                           .alpha = part->alpha,
                           .accumulate = part->accumulate,
                           .a = part->a + (i - within) * part->a_row + within,
                           .a_row = part->a_row,
                           .a_step = part->a_step,
                           .c_row = part->c_row};
        for (int64_t j = 0; j < part->n; j += TILE_COLUMNS) {
            int64_t columns = cpu_min(TILE_COLUMNS, part->n - j);
            step.b = b.b + j / TILE_COLUMNS * b.panel_step;
            step.b_step = b.packed ? panel_width(columns) : b.b_step;
            step.c = part->c + i * part->c_row + j;
            step.from = part->from ? part->from + i * part->c_row + j : NULL;
            if (columns % LANES == 0 || part->padded) {
                product_tile_cpu(rows, cpu_divide_up(columns, LANES), &step);
            } else {
                edge_tile(rows, columns, &step, part->panels ? scratch : scratch + PRODUCT_COLUMNS * PRODUCT_INNER);
            }
        }
    }
}

void product_compute_cpu(const product *all, element *scratch)
{
    if (all->k == 0 && !all->accumulate) {
        for (int64_t i = 0; i < all->m; i++) memset(all->c + i * all->c_row, 0, (size_t)all->n * sizeof *all->c);
    }
    for (int64_t j = 0; j < all->n; j += PRODUCT_COLUMNS) {
        for (int64_t p = 0; p < all->k; p += PRODUCT_INNER) {
            product part = *all;
            part.n = cpu_min(PRODUCT_COLUMNS, all->n - j);
            part.k = cpu_min(PRODUCT_INNER, all->k - p);
            part.a += p * all->a_step;
            if (all->panels)
                part.panels += p * all->panels_columns + (all->first_column + j) * part.k;
            else
                part.b += p * all->b_step + j * all->b_column;
            part.c += j;
            part.from = all->from && p == 0 ? all->from + j : NULL;
            part.accumulate = all->accumulate || p > 0;
            compute_piece(&part, scratch);
        }
    }
}

void product_pack_panels_cpu(element *packed, const product *all, int64_t first, int64_t last)
{
    for (int64_t p = 0; p < all->k; p += PRODUCT_INNER) {
        product part = *all;
        part.n = last - first;
        part.k = cpu_min(PRODUCT_INNER, all->k - p);
        part.b += p * all->b_step + first * all->b_column;
        pack_panels(packed + p * cpu_round_up(all->n, LANES) + first * part.k, &part);
    }
}
