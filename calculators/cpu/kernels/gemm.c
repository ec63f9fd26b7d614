/* SPDX-License-Identifier: MIT */
/* gemm: c = act(alpha op(a) op(b) + bias + residual). Contract: <sdlf/operation.h>.
 *
 * A tall a and a narrow b have a kernel of their own, gemm_tall.c, and so have few rows, gemm_skinny.c. Else c is cut into tiles whose size
 * follows from its shape; a task computes one, all of the inner dimension, and finishes it (bias, activation) while it lies in the cache.
 * Two ways to a tile:
 * - straight: tiles of TILE_M rows; the columns of b that a tile needs are packed by its task. An a that is stored transposed
 *   (a fully connected layer's gradient) is packed beforehand, once for all tasks.
 * - turned, for few rows and a b that is stored transposed (a fully connected layer's forward pass): packing b, the weights,
 *   would cost as much as using them. There c^T = b^T a^T is computed: the weights are read where they lie, once, and a, which
 *   is small, is packed once for all tasks beforehand.
 * 2 m n k FLOPs; bytes: a, b and c once each. At m = 16 the weights' bandwidth and the arithmetic weigh about the same;
 * above, arithmetic alone counts. docs/notebook/gemm.md has the measurements. */
#include <stdatomic.h>

#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/gemm_packed.h"
#include "calculators/cpu/kernels/gemm_skinny.h"
#include "calculators/cpu/kernels/gemm_tall.h"
#include "calculators/cpu/kernels/interleave.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/product.h"

enum {
    TILE_M = 256,
    TURNED_ROWS_MAXIMUM = 256, /* of c: beyond, packing b is cheap against using it */
    TURNED_TILE = 64,          /* columns of c, at most */
};

typedef enum gemm_way { STRAIGHT, TURNED, LIBRARY } gemm_way;

typedef struct gemm_context {
    gemm_way way;
    product all;
    const element *bias, *residual;
    sdlf_activation activation;
    const cpu_gemm_library *backend; /* of the algorithm `library` */
    const sdlf_operation *operation;
    int64_t row_tiles, tile_columns;
    element *packed, *scratch; /* scratch: scratch_size elements for each thread */
    int64_t packed_size, scratch_size, padded_rows;
    atomic_bool library_failed;
} gemm_context;

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

static gemm_way choose_way(const sdlf_operation *operation, const product *all)
{
    if (operation->algorithm == IN_LIBRARY) return LIBRARY;
    bool turned = operation->gemm.transpose_b && !sdlf_tensor_present(&operation->in[3]) && all->k > 0 &&
                  all->m <= TURNED_ROWS_MAXIMUM && all->m <= 4 * all->n;
    return turned ? TURNED : STRAIGHT;
}

static gemm_context context_of(const cpu_calculator *cpu, const sdlf_operation *operation)
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
                         .operation = operation};
    gemm.way = choose_way(operation, &gemm.all);
    gemm.packed = operation->workspace.data;
    if (gemm.way == TURNED) {
        gemm.padded_rows = cpu_round_up(m, LANES);
        gemm.packed_size = gemm.padded_rows * k;
        gemm.tile_columns = cpu_max(TILE_ROWS, cpu_min(TURNED_TILE, cpu_round_up(n / 16, TILE_ROWS)));
        gemm.scratch_size = gemm.tile_columns * gemm.padded_rows;
        gemm.row_tiles = 1;
    } else {
        bool pack_a = gemm.way == STRAIGHT && transpose_a && m > 1 && n > TILE_COLUMNS;
        gemm.packed_size = pack_a ? cpu_round_up(m, TILE_ROWS) * k : 0;
        gemm.tile_columns = PRODUCT_COLUMNS;
        gemm.scratch_size = gemm.way == LIBRARY ? 0 : PRODUCT_SCRATCH;
        gemm.row_tiles = cpu_divide_up(m, TILE_M);
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
    gemm_context gemm = context_of(cpu, operation);
    return (gemm.packed_size + cpu->threads * gemm.scratch_size) * (int64_t)sizeof(element);
}

/* Bias and activation of a tile of c. */
static void finish_tile(const gemm_context *gemm, const product *part, int64_t first_column)
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
        atomic_store(&gemm->library_failed, true);
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

static void straight_tile(void *context, int64_t index, int thread)
{
    gemm_context *gemm = context;
    int64_t row = index % gemm->row_tiles * TILE_M, column = index / gemm->row_tiles * gemm->tile_columns;
    product part = gemm->all;
    part.m = cpu_min(TILE_M, gemm->all.m - row);
    part.n = cpu_min(gemm->tile_columns, gemm->all.n - column);
    part.a += row * part.a_row;
    part.b += column * part.b_column;
    part.c += row * part.c_row + column;
    if (gemm->residual && gemm->residual != gemm->all.c) {
        const element *residual = gemm->residual + row * part.c_row + column;
        for (int64_t i = 0; i < part.m; i++) {
            memcpy(part.c + i * part.c_row, residual + i * part.c_row, (size_t)part.n * sizeof *part.c);
        }
    }
    if (gemm->way == LIBRARY && part.k > 0) {
        call_library(gemm, &part);
    } else {
        product_compute_cpu(&part, gemm->scratch ? gemm->scratch + thread * gemm->scratch_size : NULL);
    }
    finish_tile(gemm, &part, column);
}

/* ---- turned ---- */

/* A panel of a^T, `rows` of a wide, lies at packed + first row * k; a task packs a piece of it along k. */
static void pack_turned(void *context, int64_t index, int thread)
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

static void turned_tile(void *context, int64_t index, int thread)
{
    const gemm_context *gemm = context;
    const product *all = &gemm->all;
    int64_t column = index * gemm->tile_columns, columns = cpu_min(gemm->tile_columns, all->n - column);
    element *turned = gemm->scratch + thread * gemm->scratch_size; /* (columns, padded_rows) */
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
                            .c = turned + row,
                            .c_row = gemm->padded_rows};
            product_compute_cpu(&part, NULL);
        }
    }
    product part = *all;
    part.n = columns;
    part.c += column;
    transpose(part.c, part.c_row, turned, gemm->padded_rows, columns, all->m);
    finish_tile(gemm, &part, column);
}

sdlf_status gemm_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    if (sdlf_gemm_is_packed(operation)) return gemm_packed_cpu(calculator, operation);
    if (is_tall(operation)) return gemm_tall_cpu(calculator, operation);
    if (is_skinny(operation)) return gemm_skinny_cpu(calculator, operation);
    gemm_context gemm = context_of(cpu, operation);
    const product *all = &gemm.all;
    if (all->m == 0 || all->n == 0) return SDLF_OK;
    int64_t column_tiles = cpu_divide_up(all->n, gemm.tile_columns);
    int64_t time = cpu_time_of_flops(2 * all->m * all->n * cpu_max(all->k, 8));
    if (gemm.way == TURNED) {
        int64_t panels = cpu_divide_up(all->m, TILE_COLUMNS), pieces = cpu_divide_up(all->k, PRODUCT_INNER);
        cpu_parallel(cpu, panels * pieces, all->m * all->k / 2, pack_turned, &gemm);
        cpu_parallel(cpu, column_tiles, time, turned_tile, &gemm);
    } else {
        if (all->blocked)
            cpu_parallel(cpu, cpu_divide_up(all->k, PRODUCT_INNER), all->m * all->k / 2, pack_blocks, &gemm);
        cpu_parallel(cpu, column_tiles * gemm.row_tiles, time, straight_tile, &gemm);
    }
    if (atomic_load(&gemm.library_failed))
        return sdlf_fail(SDLF_ERROR_MEMORY, "the library for products has no memory");
    return SDLF_OK;
}
