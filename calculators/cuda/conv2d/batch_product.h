/* SPDX-License-Identifier: MIT */
/* Products of many matrices in a strided batch, by cuBLAS: one for each image and group of a convolution. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_BATCH_PRODUCT_H
#define SDLF_CALCULATORS_CUDA_CONV2D_BATCH_PRODUCT_H

#include "calculators/cuda/cuda.h"

/* A row-major matrix among `images` x `groups` of them; strides in elements. */
typedef struct cuda_matrix {
    const void *data;
    bool rounded; /* in 16 bits */
    int64_t line; /* from one row to the next: cuBLAS's leading dimension */
    int64_t group_stride, image_stride;
    bool transposed;
} cuda_matrix;

/* c (m,n) = op(a) (m,k) op(b) (k,n) for every image and group, or c + that; a and b are both rounded, or neither, and c is of `dtype`.
 * Sizes fit an int. Errors: what cuBLAS says, as cuda_check_blas does. */
sdlf_status cuda_batch_product(sdlf_calculator *calculator, sdlf_dtype dtype, int64_t m, int64_t n, int64_t k,
                               cuda_matrix a, cuda_matrix b, cuda_matrix c, int64_t images, int64_t groups,
                               bool accumulate);

#endif
