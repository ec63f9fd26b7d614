/* SPDX-License-Identifier: MIT */
/* What the ways to a gemm share: its operands as a product, and its tiles. See gemm.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_CONTEXT_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_CONTEXT_H

#include <stdatomic.h>

#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/product.h"

/* Indices of the algorithms that cpu.c names. */
enum { AUTO, BUILT_IN, IN_LIBRARY, TALL_SKINNY };

typedef enum gemm_way { STRAIGHT, TRANSPOSED, LIBRARY } gemm_way;

typedef struct gemm_context {
    gemm_way way;
    product all;
    const element *bias, *residual;
    sdlf_activation activation;
    const cpu_gemm_library *backend; /* of the algorithm `library` */
    const sdlf_operation *operation;
    int64_t matrices, row_tiles, column_tiles, tile_rows, tile_columns;
    element *packed, *panels, *scratch; /* a or rows of it; b's panels; scratch_size elements for each thread */
    int64_t packed_size, panels_size, scratch_size, padded_rows;
    atomic_bool blas_failed;
} gemm_context;

/* Of a gemm, or of the first of `matrices` products of a matmul; then the operation is the matmul from there on. */
gemm_context gemm_context_of_cpu(const cpu_calculator *cpu, const sdlf_operation *operation, int64_t matrices);

/* Elements of workspace that it needs. */
int64_t gemm_context_size_cpu(const cpu_calculator *cpu, const gemm_context *gemm);

/* Elements of all of b's panels; and pack them, to gemm->panels. */
int64_t gemm_panels_size_cpu(const product *all);
void gemm_pack_panels_cpu(const cpu_calculator *cpu, gemm_context *gemm);

/* The straight way: pack what all tiles share; then one tile of c, of row_tiles x column_tiles, whose first element that is. */
void gemm_pack_shared_cpu(const cpu_calculator *cpu, gemm_context *gemm);
product gemm_straight_part_cpu(const gemm_context *gemm, int64_t index, int64_t *row, int64_t *column);

/* Is it a product that has a kernel of its own, which knows of no batches? */
bool gemm_takes_alone_cpu(const sdlf_operation *operation);

/* A task of cpu_parallel: one tile of c, of row_tiles x column_tiles of each matrix. */
void gemm_straight_tile_cpu(void *context, int64_t index, int thread);

/* Bias and activation of a tile of c whose first column that is. */
void gemm_finish_tile_cpu(const gemm_context *gemm, const product *part, int64_t first_column);

/* c^T = b^T a^T, in tiles of columns of c; the time is one thread's, in nanoseconds. */
void gemm_transposed_cpu(const cpu_calculator *cpu, gemm_context *gemm, int64_t time);

#endif
