/* SPDX-License-Identifier: MIT */
/* gemm: c = act(alpha op(a) op(b) + bias + residual). Contract: <sdlf/operation.h>.
 *
 * A tall a and a narrow b have a kernel of their own, gemm_tall.c, and so have few rows, gemm_skinny.c. Else c is cut into tiles whose size
 * follows from its shape; a task computes one, all of the inner dimension, and finishes it (bias, activation) while it lies in the cache.
 * Two ways to a tile:
 * - straight: tiles of TILE_M rows; the columns of b that a tile needs are packed by its task. An a that is stored transposed
 *   (a fully connected layer's gradient) is packed beforehand, once for all tasks.
 * - transposed (gemm_transposed.c), for few rows and a b that is stored transposed (a fully connected layer's forward pass): packing b, the weights,
 *   would cost as much as using them. There c^T = b^T a^T is computed: the weights are read where they lie, once, and a, which
 *   is small, is packed once for all tasks beforehand.
 * Where b is constant, inference packs all of it once (prepared); then tiles may be as small as sharing them evenly wants.
 * 2 m n k FLOPs; bytes: a, b and c once each. At m = 16 the weights' bandwidth and the arithmetic weigh about the same;
 * above, arithmetic alone counts. docs/notebook/gemm.md has the measurements. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/gemm_context.h"
#include "calculators/cpu/kernels/gemm_packed.h"
#include "calculators/cpu/kernels/gemm_skinny.h"
#include "calculators/cpu/kernels/gemm_tall.h"
#include "calculators/matmul.h"

enum {
    TILE_M = 256,
    TRANSPOSED_ROWS_MAXIMUM = 256, /* of c: beyond, packing b is cheap against using it */
    TRANSPOSED_TILE = 64,          /* columns of c, at most */
    TASKS_OF_THREAD = 4,           /* at least, where b is packed already; */
    TASKS_OF_FEW_ROWS = 16,        /* the same where there are no rows to cut */
};

/* Indices of the algorithms that cpu.c names. */
enum { AUTO, BUILT_IN, IN_LIBRARY, TALL_ALGORITHM };

bool gemm_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_gemm_library *library = cpu_from_const(calculator)->library;
    if (sdlf_gemm_is_packed(operation)) return IS_FLOAT && operation->algorithm == AUTO;
    if (operation->algorithm == IN_LIBRARY)
        return library && (IS_FLOAT ? library->float32 : library->float64) && (!library->load || library->load());
    return operation->algorithm != TALL_ALGORITHM || gemm_tall_fits_cpu(operation);
}

static bool is_tall(const sdlf_operation *operation)
{
    return operation->algorithm == TALL_ALGORITHM || (operation->algorithm == AUTO && gemm_tall_pays_cpu(operation));
}

static bool is_skinny(const sdlf_operation *operation)
{
    return operation->algorithm == AUTO && gemm_skinny_takes_cpu(operation);
}

bool gemm_takes_alone_cpu(const sdlf_operation *operation)
{
    return is_tall(operation) || is_skinny(operation);
}

/* The panels of a constant b. */
static int64_t panels_size(const product *all)
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

/* Tiles: of a size that suits the caches, and more of them where that costs nothing, so that threads end together. */
static void cut(gemm_context *gemm, int threads)
{
    const product *all = &gemm->all;
    const bool prepared = sdlf_tensor_present(&gemm->operation->prepared);
    int64_t most = cpu_max(1, all->m / (2 * TILE_ROWS)), least = cpu_divide_up(all->m, TILE_M);
    int64_t wanted = prepared             ? (most > 1 ? TASKS_OF_THREAD : TASKS_OF_FEW_ROWS) * threads
                     : gemm->matrices > 1 ? threads
                                          : 1;
    if (prepared) {
        int64_t panels = cpu_divide_up(cpu_divide_up(all->n, TILE_COLUMNS), cpu_divide_up(wanted, most));
        gemm->tile_columns = cpu_min(gemm->tile_columns, cpu_max(1, panels) * TILE_COLUMNS);
    }
    gemm->column_tiles = cpu_divide_up(all->n, gemm->tile_columns);
    int64_t parts = cpu_divide_up(wanted, cpu_max(1, gemm->column_tiles * gemm->matrices));
    parts = cpu_max(least, cpu_min(parts, most));
    gemm->tile_rows = cpu_max(TILE_ROWS, cpu_round_up(cpu_divide_up(all->m, cpu_max(1, parts)), TILE_ROWS));
    gemm->row_tiles = cpu_divide_up(all->m, gemm->tile_rows);
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
        bool pack_a = gemm.way == STRAIGHT && transpose_a && m > 1 && n > TILE_COLUMNS && matrices == 1;
        gemm.packed_size = pack_a ? cpu_round_up(m, TILE_ROWS) * k : 0;
        gemm.tile_columns = PRODUCT_COLUMNS;
        gemm.scratch_size = gemm.way == LIBRARY                         ? 0
                            : sdlf_tensor_present(&operation->prepared) ? PRODUCT_EDGE
                                                                        : PRODUCT_SCRATCH;
        cut(&gemm, cpu->threads);
        if (pack_a) {
            gemm.all.a = gemm.packed;
            gemm.all.a_row = k;
            gemm.all.a_step = TILE_ROWS;
            gemm.all.blocked = true;
        }
    }
    gemm.packed_size = cpu_round_up(gemm.packed_size, LANES);
    if (gemm.packed) gemm.scratch = gemm.packed + gemm.packed_size;
    return gemm;
}

int64_t gemm_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_gemm_is_packed(operation)) return gemm_packed_workspace_cpu(operation);
    const cpu_calculator *cpu = cpu_from_const(calculator);
    if (is_tall(operation)) return gemm_tall_workspace_cpu(calculator, operation);
    if (is_skinny(operation)) return 0;
    gemm_context gemm = gemm_context_of_cpu(cpu, operation, 1);
    return (gemm.packed_size + cpu->threads * gemm.scratch_size) * (int64_t)sizeof(element);
}

void gemm_finish_tile_cpu(const gemm_context *gemm, const product *part, int64_t first_column)
{
    const element *bias = gemm->bias ? gemm->bias + first_column : NULL;
    if (!bias && gemm->activation.function == SDLF_IDENTITY) return;
    for (int64_t i = 0; i < part->m; i++) {
        element *c = part->c + i * part->c_row;
        if (bias) {
#pragma omp simd
            for (int64_t j = 0; j < part->n; j++) c[j] += bias[j];
        }
        activate_cpu(c, c, part->n, &gemm->activation);
    }
}

/* ---- straight ---- */

static void call_library(gemm_context *gemm, const product *part)
{
    cpu_gemm_arguments arguments = {.transpose_a = gemm->operation->gemm.transpose_a,
                                    .transpose_b = gemm->operation->gemm.transpose_b,
                                    .m = part->m,
                                    .n = part->n,
                                    .k = part->k,
                                    .alpha = (double)part->alpha,
                                    .beta = part->accumulate,
                                    .a = part->a,
                                    .b = part->b,
                                    .c = part->c,
                                    .lda = gemm->operation->gemm.transpose_a ? part->a_step : part->a_row,
                                    .ldb = gemm->operation->gemm.transpose_b ? part->b_column : part->b_step,
                                    .ldc = part->c_row};
    if (!(IS_FLOAT ? gemm->backend->float32 : gemm->backend->float64)(&arguments))
        atomic_store(&gemm->blas_failed, true);
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

/* The operands of a matrix of the batch in place of the first one's. */
static void move_to_matrix(product *part, const sdlf_operation *matmul, int64_t matrix)
{
    part->a += sdlf_matrix_offset(&matmul->in[0], matrix);
    part->b += sdlf_matrix_offset(&matmul->in[1], matrix);
    part->c += sdlf_matrix_offset(&matmul->out[0], matrix);
}

void gemm_straight_tile_cpu(void *context, int64_t index, int thread)
{
    gemm_context *gemm = context;
    int64_t matrix = index / (gemm->row_tiles * gemm->column_tiles);
    int64_t row = index % gemm->row_tiles * gemm->tile_rows;
    int64_t column = index / gemm->row_tiles % gemm->column_tiles * gemm->tile_columns;
    product part = gemm->all;
    if (gemm->matrices > 1) move_to_matrix(&part, gemm->operation, matrix);
    part.m = cpu_min(gemm->tile_rows, gemm->all.m - row);
    part.n = cpu_min(gemm->tile_columns, gemm->all.n - column);
    part.a += row * part.a_row;
    part.first_column = column;
    if (!part.panels) part.b += column * part.b_column;
    part.c += row * part.c_row + column;
    if (gemm->residual) part.from = gemm->residual + row * part.c_row + column;
    if (part.from && part.from != part.c && (gemm->way == LIBRARY || part.k == 0)) {
        for (int64_t i = 0; i < part.m; i++) {
            memcpy(part.c + i * part.c_row, part.from + i * part.c_row, (size_t)part.n * sizeof *part.c);
        }
    }
    if (gemm->way == LIBRARY && part.k > 0) {
        call_library(gemm, &part);
    } else {
        product_compute_cpu(&part, gemm->scratch ? gemm->scratch + thread * gemm->scratch_size : NULL);
    }
    gemm_finish_tile_cpu(gemm, &part, column);
}

static void prepare_columns(void *context, int64_t index, int thread)
{
    const gemm_context *gemm = context;
    int64_t first = index * PRODUCT_COLUMNS;
    (void)thread;
    product_pack_panels_cpu(gemm->packed, &gemm->all, first, cpu_min(first + PRODUCT_COLUMNS, gemm->all.n));
}

int64_t gemm_prepared_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (operation->algorithm == IN_LIBRARY || sdlf_gemm_is_packed(operation) || gemm_takes_alone_cpu(operation))
        return 0;
    gemm_context gemm = gemm_context_of_cpu(cpu_from_const(calculator), operation, 1);
    return panels_size(&gemm.all) * (int64_t)sizeof(element);
}

sdlf_status gemm_prepare_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    gemm_context gemm = gemm_context_of_cpu(cpu, operation, 1);
    gemm.packed = operation->prepared.data;
    cpu_parallel(cpu, cpu_divide_up(gemm.all.n, PRODUCT_COLUMNS), cpu_time_of_elements(panels_size(&gemm.all)),
                 prepare_columns, &gemm);
    return SDLF_OK;
}

sdlf_status gemm_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    if (sdlf_gemm_is_packed(operation)) return gemm_packed_cpu(calculator, operation);
    if (is_tall(operation)) return gemm_tall_cpu(calculator, operation);
    if (is_skinny(operation)) return gemm_skinny_cpu(calculator, operation);
    gemm_context gemm = gemm_context_of_cpu(cpu, operation, 1);
    const product *all = &gemm.all;
    if (all->m == 0 || all->n == 0) return SDLF_OK;
    int64_t time =
        cpu_max(cpu_time_of_flops(2 * all->m * all->n * cpu_max(all->k, 8)), cpu_time_of_elements(all->n * all->k));
    if (gemm.way == TRANSPOSED) {
        gemm_transposed_cpu(cpu, &gemm, time);
    } else {
        if (all->blocked)
            cpu_parallel(cpu, cpu_divide_up(all->k, PRODUCT_INNER), all->m * all->k / 2, pack_blocks, &gemm);
        cpu_parallel_near(cpu, gemm.column_tiles * gemm.row_tiles, time, gemm_straight_tile_cpu, &gemm);
    }
    if (atomic_load(&gemm.blas_failed)) return sdlf_fail(SDLF_ERROR_MEMORY, "the library for products has no memory");
    return SDLF_OK;
}
