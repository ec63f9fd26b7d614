/* SPDX-License-Identifier: MIT */
/* cuBLAS and cuBLASLt, loaded only when the first CUDA calculator is opened: they are hundreds of megabytes, and a program that uses no GPU
 * should neither spend its first tenth of a second on them, nor need them to be installed. Also GEMMs through cuBLASLt: c = [ReLU](alpha op(a)
 * op(b) + bias + beta residual), matrices row-major. */
#ifndef SDLF_CALCULATORS_CUDA_BLAS_H
#define SDLF_CALCULATORS_CUDA_BLAS_H

#include <cublas_v2.h>
#include <cublasLt.h>

#include "calculators/cuda/cuda.h"
#include <sdlf/status.h>

/* The functions that are called, under their own names without the prefix. */
typedef struct cuda_blas_library {
    __typeof__(&cublasCreate_v2) create;
    __typeof__(&cublasDestroy_v2) destroy;
    __typeof__(&cublasSetStream_v2) set_stream;
    __typeof__(&cublasSetWorkspace_v2) set_workspace;
    __typeof__(&cublasGemmEx) gemm;
    __typeof__(&cublasGemmStridedBatchedEx) gemm_strided_batched;
    __typeof__(&cublasLtCreate) lt_create;
    __typeof__(&cublasLtDestroy) lt_destroy;
    __typeof__(&cublasLtMatmulDescCreate) lt_operation_create;
    __typeof__(&cublasLtMatmulDescDestroy) lt_operation_destroy;
    __typeof__(&cublasLtMatmulDescSetAttribute) lt_operation_set;
    __typeof__(&cublasLtMatrixLayoutCreate) lt_layout_create;
    __typeof__(&cublasLtMatrixLayoutDestroy) lt_layout_destroy;
    __typeof__(&cublasLtMatmulPreferenceCreate) lt_preference_create;
    __typeof__(&cublasLtMatmulPreferenceSetAttribute) lt_preference_set;
    __typeof__(&cublasLtMatmulPreferenceDestroy) lt_preference_destroy;
    __typeof__(&cublasLtMatmulAlgoGetHeuristic) lt_choose;
    __typeof__(&cublasLtMatmul) lt_multiply;
} cuda_blas_library;

/* Fill the table. The libraries then stay loaded until the process ends, as their threads and memory require. Errors:
 * SDLF_ERROR_UNSUPPORTED with the loader's message. */
sdlf_status cuda_blas_load(cuda_blas_library *library);

/* op(a) (m,k), op(b) (k,n), c and residual (m,n), bias (n). Nothing is empty.
 *
 * All five are float32, or float64 without bias and ReLU, which cuBLASLt does not support there. Or a and b are rounded: written by
 * cuda_convert_operands, or in 16-bit storage with rows in memory of a multiple of 8 elements. Then c and residual are float32, like bias; or,
 * without bias, in the type of a and b. Sums are float32 in any case. */
typedef struct cuda_blas_product {
    int64_t m, n, k;
    sdlf_dtype dtype; /* of c and residual */
    sdlf_math math;
    bool rounded; /* a and b are in the 16-bit type of `math`, which is fp16 or bf16 */
    bool transpose_a, transpose_b, relu;
    const void *a, *b, *bias, *residual; /* bias and residual may be NULL; residual may be c */
    void *c;
    float alpha, beta;
} cuda_blas_product;

/* Descriptors and algorithm of a shape are requested once and cached: creating them would cost more than a small GEMM. */
sdlf_status cuda_blas_multiply(cuda_calculator *calculator, const cuda_blas_product *product);
/* The first `rows` rows of a GEMM in float32, a not transposed; updates `product` to the remaining rows. */
sdlf_status cuda_blas_multiply_first(cuda_calculator *calculator, cuda_blas_product *product, int64_t rows);

#endif
