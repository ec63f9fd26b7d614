/* From the words of Philox (see <sdlf/random.h>) to the numbers of dropout, random_uniform and random_normal: the same
 * on every calculator. */
#ifndef SDLF_CALCULATORS_DRAWS_H
#define SDLF_CALCULATORS_DRAWS_H

#include <sdlf/random.h>

#include "calculators/exact.h"

#include <math.h>
#include <stdbool.h>

/* Dropout drops an element where its uniform number u < p. As u is a multiple of 2^-24, that is the same as comparing
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

/* Two normal numbers from words (w0, w1): Box and Muller's transform. */
SDLF_INLINE void sdlf_random_normal_pair(uint32_t w0, uint32_t w1, double mean, double deviation, double value[2])
{
    SDLF_EXACT
    double u1 = ((double)w0 + 1) * 0x1p-32, u2 = (double)w1 * 0x1p-32;
    double radius = deviation * sqrt(-2 * log(u1)), angle = 0x1.921fb54442d18p+2 * u2; /* 2 pi */
    value[0] = mean + radius * cos(angle);
    value[1] = mean + radius * sin(angle);
}

#endif
