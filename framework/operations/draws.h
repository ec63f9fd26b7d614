/* SPDX-License-Identifier: MIT */
/* Conversion of Philox words (see <sdlf/random.h>) to the random numbers of dropout, random_uniform and random_normal,
 * the same on every calculator. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_DRAWS_H
#define SDLF_FRAMEWORK_OPERATIONS_DRAWS_H

#include <sdlf/random.h>

#include "framework/operations/exact.h"
#include "framework/operations/normal.h"

#include <math.h>
#include <stdbool.h>

/* Dropout drops an element if its uniform number u < p. As u is a multiple of 2^-24, this is equivalent to comparing
 * the 24 bits of u with ceil(p 2^24). */
SDLF_INLINE uint32_t sdlf_dropout_threshold(float probability)
{
    return (uint32_t)ceil((double)probability * 0x1p24);
}

SDLF_INLINE bool sdlf_dropout_keeps(uint32_t word, uint32_t threshold)
{
    return word >> 8 >= threshold;
}

SDLF_INLINE float sdlf_random_uniform_value(uint32_t word, float low, float high)
{
    SDLF_EXACT
    return low + (high - low) * sdlf_uniform_from_word(word);
}

#endif
