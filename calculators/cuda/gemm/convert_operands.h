/* SPDX-License-Identifier: MIT */
/* Operands of float32 products in 16 bits, as the math modes fp16 and bf16 have them: rounded to nearest by a kernel of ours,
 * into matrices whose lines begin at multiples of 16 bytes, whatever their length, as the fastest products want it.
 *
 * float16 has 10 bits of mantissa between 6.1e-5 and 65504; below, down to 6e-8, it has fewer, and what is smaller than half of
 * that becomes 0, what is larger than 65520 infinity. bfloat16 has 7 bits and float32's range. */
#ifndef SDLF_CALCULATORS_CUDA_CONVERT_OPERANDS_H
#define SDLF_CALCULATORS_CUDA_CONVERT_OPERANDS_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the mode have operands of 16 bits? */
static inline bool cuda_has_operands16(sdlf_math math)
{
    return math == SDLF_MATH_FP16 || math == SDLF_MATH_BF16;
}

/* Numbers from one line to the next, and bytes of a matrix. */
static inline int64_t cuda_operand16_line(int64_t columns)
{
    return (columns + 7) / 8 * 8;
}

static inline int64_t cuda_operand16_bytes(int64_t rows, int64_t columns)
{
    return (rows * cuda_operand16_line(columns) * 2 + 63) / 64 * 64;
}

/* A row-major matrix (rows, columns) of float32, and where it goes: cuda_operand16_bytes at a multiple of 16. What stands behind
 * a line's last number is not written. */
typedef struct cuda_operand16 {
    const void *from;
    void *to;
    int64_t rows, columns;
} cuda_operand16;

enum { CUDA_MOST_OPERANDS16 = 3 };

/* Round some matrices, in one launch. */
sdlf_status cuda_convert_operands(sdlf_calculator *base, const cuda_operand16 *operands, int count);

/* The weights of a tf32 product in 20 bits: sign, 8 bits of exponent and 11 of mantissa, one more than tf32 has. Where a product is bound by the
 * way of its weights through memory, as with one row, it takes five eighths of the time that float32 takes.
 *
 * A line has the upper 16 bits of all its numbers, which are a bfloat16 each, and behind them the other 4 bits, of eight neighbours in a word,
 * the first lowest. Columns are a multiple of 8.
 *
 * Bytes from one line to the next, a multiple of 16, and of a matrix. */
static inline int64_t cuda_packed_line(int64_t columns)
{
    return (columns / 2 * 5 + 15) / 16 * 16;
}

static inline int64_t cuda_packed_bytes(int64_t rows, int64_t columns)
{
    return (rows * cuda_packed_line(columns) + 63) / 64 * 64;
}

/* Queue the rounding of a row-major matrix of float32, at a multiple of 16 bytes, into `to`. What stands behind a line's last number is not
 * written. */
sdlf_status cuda_pack_operand(sdlf_calculator *calculator, const void *from, void *to, int64_t rows, int64_t columns);

#ifdef __cplusplus
}
#endif

#endif
