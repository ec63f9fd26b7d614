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
    atomic_bool library_failed;
} gemm_context;

/* Bias and activation of a tile of c whose first column that is. */
void gemm_finish_tile_cpu(const gemm_context *gemm, const product *part, int64_t first_column);

/* c^T = b^T a^T, in tiles of columns of c; the time is one thread's, in nanoseconds. */
void gemm_transposed_cpu(const cpu_calculator *cpu, gemm_context *gemm, int64_t time);

#endif
