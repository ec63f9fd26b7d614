/* SPDX-License-Identifier: MIT */
/* gemm: c = act(alpha op(a) op(b) + bias + residual). Contract: <sdlf/operation.h>.
 *
 * A tall a with a narrow b has a dedicated kernel, gemm_tall_skinny.c, and so has an a of few rows, gemm_skinny.c.
 * Otherwise c is partitioned into tiles whose size follows from its shape; a task computes one tile over the whole k
 * dimension, and its epilogue (bias, activation) while the tile is in the cache. There are two paths:
 * - straight: tiles of at most TILE_M rows. If several tiles share columns, b is packed first, once for all tasks; otherwise each task packs
 *   the columns that it needs. An a that is stored transposed (a fully connected layer's weight gradient) is packed first, too.
 * - transposed (gemm_transposed.c), for few rows and a b that is stored transposed (a fully connected layer's forward pass): packing b, the
 *   weights, would cost as much as using them. It computes c^T = b^T a^T: the weights are read once, in place, and a, which is small, is
 *   packed first, once for all tasks.
 * If b is constant, inference packs all of it once (prepared). Tiles with a packed b may be as small as load balance
 * requires. 2 m n k FLOPs; bytes: a, b and c once each. At m = 16 the time for the weights' bandwidth is about that of
 * the arithmetic; above, only arithmetic counts. docs/notebook/gemm.md has the measurements. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/gemm_context.h"
#include "calculators/cpu/kernels/gemm_skinny.h"
#include "calculators/cpu/kernels/gemm_tall_skinny.h"
#include "calculators/cpu/kernels/gemm_weight_only.h"
#include "calculators/matmul.h"

bool gemm_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_gemm_library *library = cpu_from_const(calculator)->library;
    if (sdlf_gemm_is_weight_only(operation)) return IS_FLOAT && operation->algorithm == AUTO;
    if (operation->algorithm == IN_LIBRARY)
        return library && (IS_FLOAT ? library->float32 : library->float64) && (!library->load || library->load());
    return operation->algorithm != TALL_SKINNY || gemm_tall_skinny_fits_cpu(operation);
}

static bool is_tall_skinny(const sdlf_operation *operation)
{
    return operation->algorithm == TALL_SKINNY ||
           (operation->algorithm == AUTO && gemm_tall_skinny_pays_cpu(operation));
}

static bool is_skinny(const sdlf_operation *operation)
{
    return operation->algorithm == AUTO && gemm_skinny_takes_cpu(operation);
}

bool gemm_takes_alone_cpu(const sdlf_operation *operation)
{
    return is_tall_skinny(operation) || is_skinny(operation);
}

int64_t gemm_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (sdlf_gemm_is_weight_only(operation)) return gemm_weight_only_workspace_cpu(operation);
    const cpu_calculator *cpu = cpu_from_const(calculator);
    if (is_tall_skinny(operation)) return gemm_tall_skinny_workspace_cpu(calculator, operation);
    if (is_skinny(operation)) return 0;
    gemm_context gemm = gemm_context_of_cpu(cpu, operation, 1);
    return gemm_context_size_cpu(cpu, &gemm) * (int64_t)sizeof(element);
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

/* Moves the operands from the first matrix of the batch to matrix `matrix`. */
static void move_to_matrix(product *part, const sdlf_operation *matmul, int64_t matrix)
{
    part->a += sdlf_matrix_offset(&matmul->in[0], matrix);
    part->b += sdlf_matrix_offset(&matmul->in[1], matrix);
    part->c += sdlf_matrix_offset(&matmul->out[0], matrix);
}

void gemm_straight_tile_cpu(void *context, int64_t index, int thread)
{
    gemm_context *gemm = context;
    int64_t row, column;
    product part = gemm_straight_part_cpu(gemm, index, &row, &column);
    if (gemm->matrices > 1) move_to_matrix(&part, gemm->operation, index / (gemm->row_tiles * gemm->column_tiles));
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

int64_t gemm_prepared_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (operation->algorithm == IN_LIBRARY || sdlf_gemm_is_weight_only(operation) || gemm_takes_alone_cpu(operation))
        return 0;
    gemm_context gemm = gemm_context_of_cpu(cpu_from_const(calculator), operation, 1);
    return gemm_panels_size_cpu(&gemm.all) * (int64_t)sizeof(element);
}

sdlf_status gemm_prepare_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    gemm_context gemm = gemm_context_of_cpu(cpu, operation, 1);
    gemm.panels = operation->prepared.data;
    gemm_pack_panels_cpu(cpu, &gemm);
    return SDLF_OK;
}

sdlf_status gemm_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    if (sdlf_gemm_is_weight_only(operation)) return gemm_weight_only_cpu(calculator, operation);
    if (is_tall_skinny(operation)) return gemm_tall_skinny_cpu(calculator, operation);
    if (is_skinny(operation)) return gemm_skinny_cpu(calculator, operation);
    gemm_context gemm = gemm_context_of_cpu(cpu, operation, 1);
    const product *all = &gemm.all;
    if (all->m == 0 || all->n == 0) return SDLF_OK;
    int64_t time =
        cpu_max(cpu_time_of_flops(2 * all->m * all->n * cpu_max(all->k, 8)), cpu_time_of_elements(all->n * all->k));
    if (gemm.way == TRANSPOSED) {
        gemm_transposed_cpu(cpu, &gemm, time);
    } else {
        gemm_pack_shared_cpu(cpu, &gemm);
        cpu_parallel_static(cpu, gemm.column_tiles * gemm.row_tiles, time, gemm_straight_tile_cpu, &gemm);
    }
    if (atomic_load(&gemm.blas_failed)) return sdlf_fail(SDLF_ERROR_MEMORY, "the GEMM library is out of memory");
    return SDLF_OK;
}
