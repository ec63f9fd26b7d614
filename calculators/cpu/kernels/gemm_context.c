/* SPDX-License-Identifier: MIT */
/* The partition of a gemm's output into tiles, and which operands are packed for all of them. See gemm.c. */
#include "calculators/cpu/kernels/gemm_context.h"

enum {
    TILE_M = 256,
    TRANSPOSED_ROWS_MAXIMUM = 256, /* of c: beyond, packing b is cheap relative to its use */
    TRANSPOSED_TILE = 64,          /* maximum columns of c */
    TASKS_OF_THREAD = 4,           /* minimum, if b is packed already; */
    TASKS_OF_FEW_ROWS = 16,        /* the same if the rows cannot be partitioned */
    TASKS_THAT_PACK = 2,           /* the same if each task packs its part of b, */
    ROWS_THAT_PACK = 32,           /* which requires enough rows to reuse it */
    SHARED_PANELS = 1 << 23,       /* maximum elements of b that are packed for a single gemm */
};

int64_t gemm_panels_size_cpu(const product *all)
{
    return cpu_round_up(all->n, LANES) * all->k;
}

static gemm_way choose_way(const sdlf_operation *operation, const product *all, int64_t matrices)
{
    if (operation->algorithm == IN_LIBRARY) return LIBRARY;
    if (sdlf_tensor_present(&operation->prepared) || matrices > 1) return STRAIGHT;
    bool transposed = operation->gemm.transpose_b && !sdlf_tensor_present(&operation->in[3]) && all->k > 0 &&
                      all->m <= TRANSPOSED_ROWS_MAXIMUM && all->m <= 4 * all->n;
    return transposed ? TRANSPOSED : STRAIGHT;
}

static bool has_panels(const gemm_context *gemm)
{
    return sdlf_tensor_present(&gemm->operation->prepared) || gemm->panels_size > 0;
}

/* Chooses tiles: a size that suits the caches, but more of them where that is cheap, for load balance. */
static void cut(gemm_context *gemm, int threads)
{
    const product *all = &gemm->all;
    const bool is_packed = has_panels(gemm), one = gemm->matrices == 1;
    int64_t most = cpu_max(1, all->m / (is_packed || !one ? 2 * TILE_ROWS : ROWS_THAT_PACK));
    int64_t least = cpu_max(1, cpu_divide_up(all->m, TILE_M));
    int64_t wanted = is_packed ? (most > 1 ? TASKS_OF_THREAD : TASKS_OF_FEW_ROWS) * threads : !one ? threads : 1;
    /* a library's results depend on its tiles, so these do not depend on the number of threads */
    if (!is_packed && one && threads > 1 && gemm->way == STRAIGHT) wanted = TASKS_THAT_PACK * threads;
    if (is_packed || one) {
        int64_t panels =
            cpu_divide_up(cpu_divide_up(all->n, TILE_COLUMNS), cpu_divide_up(wanted, is_packed ? most : least));
        gemm->tile_columns = cpu_min(gemm->tile_columns, cpu_max(1, panels) * TILE_COLUMNS);
    }
    gemm->column_tiles = cpu_divide_up(all->n, gemm->tile_columns);
    int64_t parts = cpu_divide_up(wanted, cpu_max(1, gemm->column_tiles * gemm->matrices));
    parts = cpu_max(least, cpu_min(parts, most));
    gemm->tile_rows = cpu_max(TILE_ROWS, cpu_round_up(cpu_divide_up(all->m, cpu_max(1, parts)), TILE_ROWS));
    gemm->row_tiles = cpu_divide_up(all->m, gemm->tile_rows);
}

/* True if this gemm packs b, once for several rows of tiles. */
static bool shares_panels(const gemm_context *gemm)
{
    const product *all = &gemm->all;
    return gemm->way == STRAIGHT && gemm->matrices == 1 && !sdlf_tensor_present(&gemm->operation->prepared) &&
           all->m > TILE_M && gemm_panels_size_cpu(all) <= SHARED_PANELS;
}

static void choose_tiles(const cpu_calculator *cpu, gemm_context *gemm)
{
    const product *all = &gemm->all;
    bool pack_a = gemm->way == STRAIGHT && gemm->operation->gemm.transpose_a && all->m > 1 && all->n > TILE_COLUMNS &&
                  gemm->matrices == 1;
    gemm->packed_size = pack_a ? cpu_round_up(all->m, TILE_ROWS) * all->k : 0;
    gemm->panels_size = shares_panels(gemm) ? gemm_panels_size_cpu(all) : 0;
    gemm->tile_columns = PRODUCT_COLUMNS;
    gemm->scratch_size = gemm->way == LIBRARY ? 0 : has_panels(gemm) ? PRODUCT_EDGE : PRODUCT_SCRATCH;
    cut(gemm, cpu->threads);
    if (!pack_a) return;
    gemm->all.a = gemm->packed;
    gemm->all.a_row = all->k;
    gemm->all.a_step = TILE_ROWS;
    gemm->all.blocked = true;
}

gemm_context gemm_context_of_cpu(const cpu_calculator *cpu, const sdlf_operation *operation, int64_t matrices)
{
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *c = &operation->out[0];
    bool transpose_a = operation->gemm.transpose_a, transpose_b = operation->gemm.transpose_b;
    int64_t m = c->shape.dim[0], n = c->shape.dim[1], k = a->shape.dim[transpose_a ? 0 : 1];
    gemm_context gemm = {.all = {.m = m,
                                 .n = n,
                                 .k = k,
                                 .alpha = (element)operation->gemm.alpha,
                                 .accumulate = sdlf_tensor_present(&operation->in[3]),
                                 .a = a->data,
                                 .b = b->data,
                                 .c = c->data,
                                 .a_row = transpose_a ? 1 : k,
                                 .a_step = transpose_a ? m : 1,
                                 .b_step = transpose_b ? 1 : n,
                                 .b_column = transpose_b ? k : 1,
                                 .c_row = n},
                         .bias = input(operation, 2),
                         .residual = input(operation, 3),
                         .activation = operation->gemm.activation,
                         .backend = cpu->library,
                         .operation = operation,
                         .matrices = matrices};
    gemm.all.panels = operation->prepared.data;
    gemm.all.panels_columns = cpu_round_up(n, LANES);
    gemm.way = choose_way(operation, &gemm.all, matrices);
    gemm.packed = operation->workspace.data;
    if (gemm.way == TRANSPOSED) {
        gemm.padded_rows = cpu_round_up(m, LANES);
        gemm.packed_size = gemm.padded_rows * k;
        gemm.tile_columns = cpu_max(TILE_ROWS, cpu_min(TRANSPOSED_TILE, cpu_round_up(n / 16, TILE_ROWS)));
        gemm.scratch_size = gemm.tile_columns * gemm.padded_rows;
        gemm.column_tiles = cpu_divide_up(n, gemm.tile_columns);
    } else {
        choose_tiles(cpu, &gemm);
    }
    gemm.packed_size = cpu_round_up(gemm.packed_size, LANES);
    if (!gemm.packed) return gemm;
    gemm.scratch = gemm.packed + gemm.packed_size + gemm.panels_size;
    if (gemm.panels_size > 0) gemm.all.panels = gemm.panels = gemm.packed + gemm.packed_size;
    return gemm;
}

int64_t gemm_context_size_cpu(const cpu_calculator *cpu, const gemm_context *gemm)
{
    return gemm->packed_size + gemm->panels_size + cpu->threads * gemm->scratch_size;
}

/* A task packs PRODUCT_INNER columns of a transposed a. */
static void pack_blocks(void *context, int64_t index, int thread)
{
    const gemm_context *gemm = context;
    const product *all = &gemm->all;
    int64_t p = index * PRODUCT_INNER;
    (void)thread;
    product_pack_a_cpu(gemm->packed + p * TILE_ROWS, all->k * TILE_ROWS, input(gemm->operation, 0) + p * all->m, all->m,
                       cpu_min(PRODUCT_INNER, all->k - p), all->m);
}

static void pack_panel(void *context, int64_t index, int thread)
{
    const gemm_context *gemm = context;
    int64_t first = index * TILE_COLUMNS;
    (void)thread;
    product_pack_panels_cpu(gemm->panels, &gemm->all, first, cpu_min(first + TILE_COLUMNS, gemm->all.n));
}

void gemm_pack_panels_cpu(const cpu_calculator *cpu, gemm_context *gemm)
{
    cpu_parallel(cpu, cpu_divide_up(gemm->all.n, TILE_COLUMNS), cpu_time_of_elements(gemm_panels_size_cpu(&gemm->all)),
                 pack_panel, gemm);
}

void gemm_pack_shared_cpu(const cpu_calculator *cpu, gemm_context *gemm)
{
    const product *all = &gemm->all;
    if (all->blocked) cpu_parallel(cpu, cpu_divide_up(all->k, PRODUCT_INNER), all->m * all->k / 2, pack_blocks, gemm);
    if (gemm->panels_size > 0) gemm_pack_panels_cpu(cpu, gemm);
}

product gemm_straight_part_cpu(const gemm_context *gemm, int64_t index, int64_t *row, int64_t *column)
{
    product part = gemm->all;
    *row = index % gemm->row_tiles * gemm->tile_rows;
    *column = index / gemm->row_tiles % gemm->column_tiles * gemm->tile_columns;
    part.m = cpu_min(gemm->tile_rows, gemm->all.m - *row);
    part.n = cpu_min(gemm->tile_columns, gemm->all.n - *column);
    part.a += *row * part.a_row;
    part.first_column = *column;
    if (!part.panels) part.b += *column * part.b_column;
    part.c += *row * part.c_row + *column;
    return part;
}
