/* SPDX-License-Identifier: MIT */
/* What the gemm algorithms share: the operands as a `product`, and the tiles. See gemm.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_CONTEXT_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_CONTEXT_H

#include <stdatomic.h>

#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/product.h"

/* Indices of the algorithms, in the order of their names in cpu.c. */
enum { AUTO, BUILT_IN, IN_LIBRARY, TALL_SKINNY };

typedef enum gemm_way { STRAIGHT, TRANSPOSED, LIBRARY } gemm_way;

typedef struct gemm_context {
    gemm_way way;
    product all;
    const element *bias, *residual;
    sdlf_activation activation;
    const cpu_gemm_library *backend; /* for the algorithm `library` */
    const sdlf_operation *operation;
    int64_t matrices, row_tiles, column_tiles, tile_rows, tile_columns;
    element *packed, *panels, *scratch; /* packed a, or rows of it; packed b; scratch_size elements for each thread */
    int64_t packed_size, panels_size, scratch_size, padded_rows;
    atomic_bool blas_failed;
} gemm_context;

/* For a gemm, or for the first of the `matrices` products of a matmul; then the operation is the matmul. */
gemm_context gemm_context_of_cpu(const cpu_calculator *cpu, const sdlf_operation *operation, int64_t matrices);

/* Elements of workspace that it needs. */
int64_t gemm_context_size_cpu(const cpu_calculator *cpu, const gemm_context *gemm);

/* Elements of all packed panels of b; and packing them, to gemm->panels. */
int64_t gemm_panels_size_cpu(const product *all);
void gemm_pack_panels_cpu(const cpu_calculator *cpu, gemm_context *gemm);

/* The straight path: packs what all tiles share; then the operands of tile `index` of c, and its first element. */
void gemm_pack_shared_cpu(const cpu_calculator *cpu, gemm_context *gemm);
product gemm_straight_part_cpu(const gemm_context *gemm, int64_t index, int64_t *row, int64_t *column);

/* True for a product that has a dedicated kernel, which does not support batches. */
bool gemm_takes_alone_cpu(const sdlf_operation *operation);

/* A task of cpu_parallel: one tile of c, of the row_tiles x column_tiles tiles of each matrix. */
void gemm_straight_tile_cpu(void *context, int64_t index, int thread);

/* The epilogue, bias and activation, of a tile of c that starts at `first_column`. */
void gemm_finish_tile_cpu(const gemm_context *gemm, const product *part, int64_t first_column);

/* Computes c^T = b^T a^T, in tiles of columns of c; `time` is the single-thread time in nanoseconds. */
void gemm_transposed_cpu(const cpu_calculator *cpu, gemm_context *gemm, int64_t time);

#endif
