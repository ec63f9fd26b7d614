/* SPDX-License-Identifier: MIT */
/* Functions of two 64-bit integers that the machine has not, or not for all of them; the same on every calculator. */
#ifndef SDLF_CALCULATORS_INTEGER_FUNCTIONS_H
#define SDLF_CALCULATORS_INTEGER_FUNCTIONS_H

#include "calculators/integer_power.h"

/* What a / b, cut off toward zero, leaves; nothing where there is no quotient. */
SDLF_INLINE int64_t sdlf_integer_remainder(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

/* What a / b, rounded down, leaves: it has b's sign. */
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
