/* SPDX-License-Identifier: MIT */
/* The weights of a tf32 product in 20 bits: sign, 8 bits of exponent and 11 of mantissa, one more than tf32 has. Where a product is bound by the
 * way of its weights through memory, as with one row, it takes five eighths of the time that float32 takes.
 *
 * A line has the upper 16 bits of all its numbers, which are a bfloat16 each, and behind them the other 4 bits, of eight neighbours in a word,
 * the first lowest. Columns are a multiple of 8. */
#ifndef SDLF_CALCULATORS_CUDA_PACKED_H
#define SDLF_CALCULATORS_CUDA_PACKED_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes from one line to the next, a multiple of 16, and of a matrix. */
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
sdlf_status cuda_pack_factor(sdlf_calculator *calculator, const void *from, void *to, int64_t rows, int64_t columns);

#ifdef __cplusplus
}
#endif
#endif
