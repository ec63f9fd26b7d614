/* SPDX-License-Identifier: MIT */
/* gemm for few rows and a b that is stored transposed: c^T = b^T a^T, so that b is read once, in place. See gemm.c. */
#include "calculators/cpu/kernels/gemm_context.h"
#include "calculators/cpu/kernels/interleave.h"

/* A panel of a^T, `rows` of a wide, is at packed + first row * k; a task packs a piece of it along k. */
static void pack_rows(void *context, int64_t index, int thread)
{
    const gemm_context *gemm = context;
    const product *all = &gemm->all;
    int64_t pieces = cpu_divide_up(all->k, PRODUCT_INNER), first = index / pieces * TILE_COLUMNS;
    int64_t p = index % pieces * PRODUCT_INNER, rows = cpu_min(TILE_COLUMNS, all->m - first);
    int64_t width = cpu_round_up(rows, LANES);
    (void)thread;
    product_pack_cpu(gemm->packed + first * all->k + p * width, width, all->a + first * all->a_row + p * all->a_step,
                     all->a_step, all->a_row, cpu_min(PRODUCT_INNER, all->k - p), rows);
}

static void transposed_tile(void *context, int64_t index, int thread)
{
    const gemm_context *gemm = context;
    const product *all = &gemm->all;
    int64_t column = index * gemm->tile_columns, columns = cpu_min(gemm->tile_columns, all->n - column);
    element *transposed = gemm->scratch + thread * gemm->scratch_size; /* (columns, padded_rows) */
    for (int64_t p = 0; p < all->k; p += PRODUCT_INNER) {
        for (int64_t row = 0; row < all->m; row += TILE_COLUMNS) {
            int64_t width = cpu_min(TILE_COLUMNS, gemm->padded_rows - row);
            product part = {.m = columns,
                            .n = width,
                            .k = cpu_min(PRODUCT_INNER, all->k - p),
                            .alpha = all->alpha,
                            .accumulate = p > 0,
                            .padded = true,
                            .a = all->b + column * all->b_column + p,
                            .a_row = all->b_column,
                            .a_step = 1,
                            .b = gemm->packed + row * all->k + p * width,
                            .b_step = width,
                            .b_column = 1,
                            .c = transposed + row,
                            .c_row = gemm->padded_rows};
            product_compute_cpu(&part, NULL);
        }
    }
    product part = *all;
    part.n = columns;
    part.c += column;
    transpose(part.c, part.c_row, transposed, gemm->padded_rows, columns, all->m);
    gemm_finish_tile_cpu(gemm, &part, column);
}

void gemm_transposed_cpu(const cpu_calculator *cpu, gemm_context *gemm, int64_t time)
{
    const product *all = &gemm->all;
    int64_t panels = cpu_divide_up(all->m, TILE_COLUMNS), pieces = cpu_divide_up(all->k, PRODUCT_INNER);
    cpu_parallel(cpu, panels * pieces, all->m * all->k / 2, pack_rows, gemm);
    cpu_parallel(cpu, gemm->column_tiles, time, transposed_tile, gemm);
}
