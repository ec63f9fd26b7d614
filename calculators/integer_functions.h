/* SPDX-License-Identifier: MIT */
/* Functions of two 64-bit integers that C lacks or leaves undefined for some operands; the same on every calculator. */
#ifndef SDLF_CALCULATORS_INTEGER_FUNCTIONS_H
#define SDLF_CALCULATORS_INTEGER_FUNCTIONS_H

#include "calculators/integer_power.h"

/* The remainder of a / b, truncated toward zero; 0 if there is no quotient. */
SDLF_INLINE int64_t sdlf_integer_remainder(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

/* The remainder of a / b, rounded down: it has the sign of b. */
SDLF_INLINE int64_t sdlf_integer_modulo(int64_t a, int64_t b)
{
    const int64_t rest = sdlf_integer_remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

SDLF_INLINE int64_t sdlf_integer_shift_left(int64_t a, int64_t b)
{
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

SDLF_INLINE int64_t sdlf_integer_shift_right(int64_t a, int64_t b)
{
    return a >> (b < 0 || b > 63 ? 63 : b);
}

#endif
