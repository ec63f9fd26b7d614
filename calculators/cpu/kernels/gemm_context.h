/* SPDX-License-Identifier: MIT */
/* What the ways to a gemm share: its operands as a product, and its tiles. See gemm.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_CONTEXT_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_CONTEXT_H

#include <stdatomic.h>

#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/product.h"

typedef enum gemm_way { STRAIGHT, TRANSPOSED, LIBRARY } gemm_way;

typedef struct gemm_context {
    gemm_way way;
    product all;
    const element *bias, *residual;
    sdlf_activation activation;
    const cpu_gemm_library *backend; /* of the algorithm `library` */
    const sdlf_operation *operation;
    int64_t matrices, row_tiles, column_tiles, tile_rows, tile_columns;
    element *packed, *scratch; /* scratch: scratch_size elements for each thread */
    int64_t packed_size, scratch_size, padded_rows;
    atomic_bool blas_failed;
} gemm_context;

/* Of a gemm, or of the first of `matrices` products of a matmul; then the operation is the matmul from there on. */
gemm_context gemm_context_of_cpu(const cpu_calculator *cpu, const sdlf_operation *operation, int64_t matrices);

/* Is it a product that has a kernel of its own, which knows of no batches? */
bool gemm_takes_alone_cpu(const sdlf_operation *operation);

/* A task of cpu_parallel: one tile of c, of row_tiles x column_tiles of each matrix. */
void gemm_straight_tile_cpu(void *context, int64_t index, int thread);

/* Bias and activation of a tile of c whose first column that is. */
void gemm_finish_tile_cpu(const gemm_context *gemm, const product *part, int64_t first_column);

/* c^T = b^T a^T, in tiles of columns of c; the time is one thread's, in nanoseconds. */
void gemm_transposed_cpu(const cpu_calculator *cpu, gemm_context *gemm, int64_t time);

#endif
