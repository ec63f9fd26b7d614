/* SPDX-License-Identifier: MIT */
/* 16-bit operands of float32 GEMMs, as the math modes fp16 and bf16 use them: rounded to nearest by a kernel, into matrices
 * whose rows begin at multiples of 16 bytes, whatever their length, as the fastest GEMM kernels require.
 *
 * float16 has 10 bits of mantissa between 6.1e-5 and 65504; below, down to 6e-8, it has fewer. Values smaller than half of that
 * become 0, values larger than 65520 become infinity. bfloat16 has 7 bits and float32's range. */
#ifndef SDLF_CALCULATORS_CUDA_CONVERT_OPERANDS_H
#define SDLF_CALCULATORS_CUDA_CONVERT_OPERANDS_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True if the mode's operands have 16 bits. */
static inline bool cuda_has_operands16(sdlf_math math)
{
    return math == SDLF_MATH_FP16 || math == SDLF_MATH_BF16;
}

/* The row stride in elements, and the size of a matrix in bytes. */
static inline int64_t cuda_operand16_line(int64_t columns)
{
    return (columns + 7) / 8 * 8;
}

static inline int64_t cuda_operand16_bytes(int64_t rows, int64_t columns)
{
    return (rows * cuda_operand16_line(columns) * 2 + 63) / 64 * 64;
}

/* A row-major matrix (rows, columns) of float32, and its destination: cuda_operand16_bytes at a multiple of 16. The padding
 * after a row's last element is not written. */
typedef struct cuda_operand16 {
    const void *from;
    void *to;
    int64_t rows, columns;
} cuda_operand16;

enum { CUDA_MOST_OPERANDS16 = 3 };

/* Round `count` matrices, in one launch. */
sdlf_status cuda_convert_operands(sdlf_calculator *base, const cuda_operand16 *operands, int count);

/* Weights of a tf32 GEMM in 20 bits: sign, 8 bits of exponent and 11 of mantissa, one more than tf32 has. A GEMM that is bound by the memory
 * traffic of its weights, as with one row, takes five eighths of the time that float32 weights take.
 *
 * A row holds the upper 16 bits of all its elements, each a bfloat16, followed by the other 4 bits, of eight neighbours in a word, the first
 * lowest. Columns are a multiple of 8.
 *
 * The row stride in bytes, a multiple of 16, and the size of a matrix in bytes. */
static inline int64_t cuda_packed_line(int64_t columns)
{
    return (columns / 2 * 5 + 15) / 16 * 16;
}

static inline int64_t cuda_packed_bytes(int64_t rows, int64_t columns)
{
    return (rows * cuda_packed_line(columns) + 63) / 64 * 64;
}

/* Enqueue the rounding of a row-major matrix of float32, at a multiple of 16 bytes, into `to`. The padding after a row's last element is
 * not written. */
sdlf_status cuda_pack_operand(sdlf_calculator *calculator, const void *from, void *to, int64_t rows, int64_t columns);

#ifdef __cplusplus
}
#endif

#endif
