/* SPDX-License-Identifier: MIT */
/* Products through cuBLASLt: c = [ReLU](alpha op(a) op(b) + bias + beta residual), matrices row-major. */
#ifndef SDLF_CALCULATORS_CUDA_BLAS_PRODUCT_H
#define SDLF_CALCULATORS_CUDA_BLAS_PRODUCT_H

#include "calculators/cuda/cuda.h"

/* op(a) (m,k), op(b) (k,n), c and residual (m,n), bias (n). Nothing is empty. */
typedef struct cuda_blas_product {
    int64_t m, n, k;
    sdlf_dtype dtype; /* of all five; in float64 without bias and ReLU, which cuBLASLt does not have there */
    sdlf_math math;
    bool rounded; /* a and b are in the mode's 16 bits, as cuda_round_factors leaves them; math is fp16 or bf16 */
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
