/* SPDX-License-Identifier: MIT */
/* Factors of float32 products in 16 bits, as the math modes fp16 and bf16 have them: rounded to nearest by a kernel of ours,
 * into matrices whose lines begin at multiples of 16 bytes, whatever their length, as the fastest products want it.
 *
 * float16 has 10 bits of mantissa between 6.1e-5 and 65504; below, down to 6e-8, it has fewer, and what is smaller than half of
 * that becomes 0, what is larger than 65520 infinity. bfloat16 has 7 bits and float32's range. */
#ifndef SDLF_CALCULATORS_CUDA_FACTORS_H
#define SDLF_CALCULATORS_CUDA_FACTORS_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the mode have factors of 16 bits? */
static inline bool cuda_has_half_factors(sdlf_math math)
{
    return math == SDLF_MATH_FP16 || math == SDLF_MATH_BF16;
}

/* Numbers from one line to the next, and bytes of a matrix. */
static inline int64_t cuda_factor_line(int64_t columns)
{
    return (columns + 7) / 8 * 8;
}

static inline int64_t cuda_factor_bytes(int64_t rows, int64_t columns)
{
    return (rows * cuda_factor_line(columns) * 2 + 63) / 64 * 64;
}

/* A row-major matrix (rows, columns) of float32, and where it goes: cuda_factor_bytes at a multiple of 16. What stands behind
 * a line's last number is not written. */
typedef struct cuda_factor {
    const void *from;
    void *to;
    int64_t rows, columns;
} cuda_factor;

enum { CUDA_MOST_FACTORS = 3 };

/* Round some matrices, in one launch. */
sdlf_status cuda_round_factors(sdlf_calculator *base, const cuda_factor *factors, int count);

#ifdef __cplusplus
}
#endif
#endif
