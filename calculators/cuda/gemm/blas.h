/* SPDX-License-Identifier: MIT */
/* cuBLAS and cuBLASLt, loaded when the first CUDA calculator is opened and not before: they are hundreds of megabytes, and a
 * program that uses no GPU should not spend its first tenth of a second on them, nor need them to be installed. And products through cuBLASLt:
 * c = [ReLU](alpha op(a) op(b) + bias + beta residual), matrices row-major. */
#ifndef SDLF_CALCULATORS_CUDA_BLAS_H
#define SDLF_CALCULATORS_CUDA_BLAS_H

#include <cublas_v2.h>
#include <cublasLt.h>

#include "calculators/cuda/cuda.h"
#include <sdlf/status.h>

/* The functions we call, under their own names without the prefix. */
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

/* Fill the table; the libraries then stay loaded until the process ends, as their own threads and memory want it. Errors:
 * SDLF_ERROR_UNSUPPORTED with the loader's words. */
sdlf_status cuda_blas_load(cuda_blas_library *library);

/* op(a) (m,k), op(b) (k,n), c and residual (m,n), bias (n). Nothing is empty. */
typedef struct cuda_blas_product {
    int64_t m, n, k;
    sdlf_dtype dtype; /* of all five; in float64 without bias and ReLU, which cuBLASLt does not have there */
    sdlf_math math;
    bool rounded; /* a and b are in the mode's 16 bits, as cuda_convert_operands leaves them; math is fp16 or bf16 */
    bool transpose_a, transpose_b, relu;
    const void *a, *b, *bias, *residual; /* bias and residual may be NULL; residual may be c */
    void *c;
    float alpha, beta;
} cuda_blas_product;

/* The descriptors and the algorithm of a shape are asked for once and kept: they would cost more than small products. */
sdlf_status cuda_blas_multiply(cuda_calculator *calculator, const cuda_blas_product *product);
/* The first rows of a product in float32, a not transposed; the product becomes what is left of it. */
sdlf_status cuda_blas_multiply_first(cuda_calculator *calculator, cuda_blas_product *product, int64_t rows);

#endif
