/* SPDX-License-Identifier: MIT */
/* a^b of 64-bit integers, wrapping around as products do; the same on every calculator. */
#ifndef SDLF_CALCULATORS_INTEGER_POWER_H
#define SDLF_CALCULATORS_INTEGER_POWER_H

#include <sdlf/random.h>

#include <stdint.h>

/* A negative power of anything but 1 and -1 is truncated to 0, like a quotient, and so is a negative power of 0. */
SDLF_INLINE int64_t sdlf_integer_power(int64_t a, int64_t b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    uint64_t power = 1, square = (uint64_t)a;
    for (; b > 0; b /= 2, square *= square) {
        if (b % 2 == 1) power *= square;
    }
    return (int64_t)power;
}

#endif
