/* SPDX-License-Identifier: MIT */
/* Ways of gemm beside cuBLAS's, for products that it is slow at (float32), and the choice between all. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_H
#define SDLF_CALCULATORS_CUDA_GEMM_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FEW_ROWS = 128, FEW_COLUMNS = 16, SWEEP_ROWS = 4 };

typedef struct cuda_gemm_sizes {
    int64_t m, n, k;
} cuda_gemm_sizes;

static inline cuda_gemm_sizes cuda_gemm_sizes_of(const sdlf_operation *op)
{
    const int64_t *a = op->in[0].shape.dim, *c = op->out[0].shape.dim;
    cuda_gemm_sizes sizes;
    sizes.m = c[0];
    sizes.n = c[1];
    sizes.k = a[op->gemm.transpose_a ? 0 : 1];
    return sizes;
}

/* gemm/automatic.c: does that way take the product, wherever it lies? Which one does "auto" take, if b is, or is not, constant and will be
 * made ready? Are factors rounded before cuBLAS sees them? */
bool cuda_gemm_takes(const cuda_calculator *calculator, const sdlf_operation *op, int algorithm);
int cuda_gemm_choose(const cuda_calculator *calculator, const sdlf_operation *op, bool ready);
bool cuda_gemm_rounds(const cuda_calculator *calculator, const sdlf_operation *op);
/* The copies of few-rows and sweep are of 16 bytes. Where operands do not lie so, which plans see to, another way is taken. */
bool cuda_gemm_lies_aligned(const sdlf_operation *op);

/* a (m,k) times b (n,k) transposed in fp32, m up to FEW_ROWS; k a multiple of 4, a and b at multiples of 16 bytes. */
sdlf_status cuda_gemm_few_rows(sdlf_calculator *base, const sdlf_operation *op);

/* The same factors, n up to FEW_COLUMNS, any m and k. */
sdlf_status cuda_gemm_few_columns(sdlf_calculator *base, const sdlf_operation *op);

/* The same factors, m up to SWEEP_ROWS; k a multiple of 8, a and b at multiples of 16 bytes. b may have been made ready in fp16 and
 * bf16. */
sdlf_status cuda_gemm_sweep(sdlf_calculator *base, const sdlf_operation *op);

#ifdef __cplusplus
}
#endif
#endif
