/* SPDX-License-Identifier: MIT */
/* Transposition of small blocks in registers.
 *
 * zip_low(a, b) = a0 b0 a1 b1 ..., zip_high continues with the upper halves. Applied to the vectors i and i + rows / 2
 * of a block, log2(rows) times, they produce the block in column order: the first `rows` elements are column 0, and so
 * on, through all `rows` vectors. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_INTERLEAVE_H
#define SDLF_CALCULATORS_CPU_KERNELS_INTERLEAVE_H

#include "calculators/cpu/kernels/element.h"

static inline vector zip_low(vector a, vector b)
{
#if SDLF_LANES == 16
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif SDLF_LANES == 8
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#elif SDLF_LANES == 4
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#else
    return __builtin_shufflevector(a, b, 0, 2);
#endif
}

static inline vector zip_high(vector a, vector b)
{
#if SDLF_LANES == 16
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif SDLF_LANES == 8
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#elif SDLF_LANES == 4
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#else
    return __builtin_shufflevector(a, b, 1, 3);
#endif
}

/* `rows` is a compile-time constant at every call: a power of two, at most LANES. */
static inline __attribute__((always_inline)) void interleave(vector *block, const int rows)
{
    for (int step = 1; step < rows; step *= 2) {
        vector next[LANES];
        for (int i = 0; i < rows / 2; i++) {
            next[2 * i] = zip_low(block[i], block[i + rows / 2]);
            next[2 * i + 1] = zip_high(block[i], block[i + rows / 2]);
        }
        for (int i = 0; i < rows; i++) block[i] = next[i];
    }
}

/* to[j * to_row + i] = from[i * from_row + j] for i < LANES, j < LANES */
static inline void transpose_block(element *to, int64_t to_row, const element *from, int64_t from_row)
{
    vector block[LANES];
    for (int i = 0; i < LANES; i++) block[i] = load(from + i * from_row);
    interleave(block, LANES);
    for (int i = 0; i < LANES; i++) store(to + i * to_row, block[i]);
}

/* The same for any number of rows i and columns j. */
static inline void transpose(element *to, int64_t to_row, const element *from, int64_t from_row, int64_t rows,
                             int64_t columns)
{
    int64_t whole_rows = rows / LANES * LANES, whole_columns = columns / LANES * LANES;
    for (int64_t i = 0; i < whole_rows; i += LANES) {
        for (int64_t j = 0; j < whole_columns; j += LANES) {
            transpose_block(to + j * to_row + i, to_row, from + i * from_row + j, from_row);
        }
        for (int64_t j = whole_columns; j < columns; j++) {
            for (int64_t k = i; k < i + LANES; k++) to[j * to_row + k] = from[k * from_row + j];
        }
    }
    for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = whole_rows; i < rows; i++) to[j * to_row + i] = from[i * from_row + j];
    }
}

#endif
