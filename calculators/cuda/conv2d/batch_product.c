/* SPDX-License-Identifier: MIT */
/* See batch_product.h. */
#include "calculators/cuda/conv2d/batch_product.h"

#include "calculators/cuda/gemm/blas_library.h"

static const char *at(const cuda_matrix *m, int64_t group, sdlf_dtype dtype)
{
    return (const char *)m->data + (size_t)(group * m->group_stride) * (m->rounded ? 2 : sdlf_dtype_size(dtype));
}

static cudaDataType_t type_of(const cuda_matrix *m, sdlf_dtype dtype, sdlf_math math)
{
    if (m->rounded) return math == SDLF_MATH_FP16 ? CUDA_R_16F : CUDA_R_16BF;
    return dtype == SDLF_FLOAT64 ? CUDA_R_64F : CUDA_R_32F;
}

/* cuBLAS, column-major, is asked for c^T = op(b)^T op(a)^T. */
sdlf_status cuda_batch_product(sdlf_calculator *base, sdlf_dtype dtype, int64_t m, int64_t n, int64_t k, cuda_matrix a,
                               cuda_matrix b, cuda_matrix c, int64_t images, int64_t groups, bool accumulate)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    bool wide = dtype == SDLF_FLOAT64;
    const float one32 = 1, kept32 = accumulate ? 1 : 0;
    const double one64 = 1, kept64 = accumulate ? 1 : 0;
    sdlf_math math = calculator->math;
    for (int64_t group = 0; group < groups; group++) {
        cublasStatus_t status = calculator->library->gemm_strided_batched(
            calculator->blas, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
            (int)n, (int)m, (int)k, wide ? (const void *)&one64 : &one32, at(&b, group, dtype),
            type_of(&b, dtype, math), (int)b.line, b.image_stride, at(&a, group, dtype), type_of(&a, dtype, math),
            (int)a.line, a.image_stride, wide ? (const void *)&kept64 : &kept32, (void *)at(&c, group, dtype),
            type_of(&c, dtype, math), (int)c.line, c.image_stride, (int)images,
            wide ? CUBLAS_COMPUTE_64F : cuda_compute_type(math), CUBLAS_GEMM_DEFAULT);
        if (status != CUBLAS_STATUS_SUCCESS) return cuda_check_blas(status, "conv2d, two-step product");
    }
    return SDLF_OK;
}
