/* SPDX-License-Identifier: MIT */
/* GEMM algorithms besides cuBLAS, for problems on which it is slow (float32), and the choice among all of them. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_H
#define SDLF_CALCULATORS_CUDA_GEMM_H

#include "lab/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices into gemm_algorithms_cuda. */
enum {
    GEMM_AUTO = 0,
    GEMM_CUBLAS,
    GEMM_LAB, /* the first of lab/gemm.h */
    GEMM_TALL_SKINNY =
        GEMM_LAB + LAB_GEMM_ALGORITHMS, /* rows of a by cp.async in 16-byte chunks, 4x4 accumulators a thread */
    GEMM_REGISTER_STATIONARY, /* b in registers; rows of a by bulk copies, evicted first from L2; float64 on Tensor Cores */
    GEMM_SKINNY_M,
    GEMM_SKINNY_N,
    GEMM_GEMV,
    GEMM_STORED, /* for rows in 16-bit storage whose result is, too: gemm/stored.c */
    GEMM_ALGORITHMS
};

enum { SKINNY_M = 128, SKINNY_N = 16, GEMV_ROWS = 4 };

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

/* gemm/automatic.c: true if the algorithm supports the GEMM, regardless of its addresses; the algorithm that "auto" chooses, `ready` if b
 * is constant and will be prepacked; true if operands are rounded before they are passed to cuBLAS. */
bool cuda_gemm_takes(const cuda_calculator *calculator, const sdlf_operation *op, int algorithm);
int cuda_gemm_choose(const cuda_calculator *calculator, const sdlf_operation *op, bool ready);
bool cuda_gemm_rounds(const cuda_calculator *calculator, const sdlf_operation *op);
/* skinny-m and gemv load 16 bytes at a time. If operands are not aligned to that, which plans ensure, another algorithm is used. */
bool cuda_gemm_lies_aligned(const sdlf_operation *op);

/* a (m,k) times b (n,k) transposed in fp32, m up to SKINNY_M; k a multiple of 4, a and b at multiples of 16 bytes. */
sdlf_status cuda_gemm_skinny_m(sdlf_calculator *base, const sdlf_operation *op);

/* The same operands, n up to SKINNY_N, any m and k. */
sdlf_status cuda_gemm_skinny_n(sdlf_calculator *base, const sdlf_operation *op);

/* The same operands, m up to GEMV_ROWS; k a multiple of 8, a and b at multiples of 16 bytes. b may be prepacked in tf32, fp16 and
 * bf16. */
sdlf_status cuda_gemm_gemv(sdlf_calculator *base, const sdlf_operation *op);

/* c = act(a b + bias + residual) for rows in 16-bit storage, c too: a 1x1 convolution by the engine. b is float32, (n,k) or (k,n), prepacked in 16
 * bits: once if it is constant, else into the workspace. n and k are multiples of 8. */
bool gemm_stored_takes(const cuda_calculator *calculator, const sdlf_operation *operation);
int64_t gemm_stored_workspace(const sdlf_operation *operation);
int64_t gemm_stored_prepared(const sdlf_operation *operation);
sdlf_status gemm_stored_prepare(const cuda_calculator *calculator, const sdlf_operation *operation, void *to);
sdlf_status gemm_stored_cuda(sdlf_calculator *calculator, const sdlf_operation *operation);
/* The same with c in float32, by cuBLAS, which reads a in place, and b if it is in storage, too, as in the gradient of weights. A float32 b is
 * rounded, prepacked or into the workspace, which requires the math mode of a's type. Any transposes, alpha, bias and activation; no residual.
 * The rows in memory of operands in storage have a multiple of 8 elements. */
bool gemm_stored_takes_cublas(const cuda_calculator *calculator, const sdlf_operation *operation);
/* The math mode whose 16-bit operands have the storage type `dtype`. */
static inline sdlf_math cuda_math_of_storage(sdlf_dtype dtype)
{
    return dtype == SDLF_FLOAT16 ? SDLF_MATH_FP16 : SDLF_MATH_BF16;
}

/* Tall and narrow GEMMs c (m,n) = alpha a (m,k) b (k,n), m large, n and k small: the dense half of a graph convolution. */
sdlf_status gemm_tall_skinny_cuda(sdlf_calculator *calculator, const sdlf_operation *operation);
bool gemm_tall_skinny_fits(const cuda_calculator *calculator, const sdlf_operation *operation);
sdlf_status gemm_register_stationary_cuda(sdlf_calculator *calculator, const sdlf_operation *operation);
bool gemm_register_stationary_fits(const cuda_calculator *calculator, const sdlf_operation *operation);
sdlf_status gemm_register_stationary64_cuda(sdlf_calculator *calculator, const sdlf_operation *operation);
bool gemm_register_stationary64_fits(const cuda_calculator *calculator, const sdlf_operation *operation);
/* True if rows of a are aligned for bulk copies. Otherwise `tall-skinny` is used instead. */
bool gemm_register_stationary_aligned(const sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
