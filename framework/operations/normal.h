/* SPDX-License-Identifier: MIT */
/* Normally distributed random numbers with the same bits on every calculator: Box-Muller transform of two Philox words.
 *
 * Logarithm, sine and cosine are series implemented here, since mathematical libraries differ in the last bit. They use
 * only operations that IEEE 754 rounds correctly (+ - * / sqrt), on doubles, in a fixed order; none may be contracted
 * (framework/operations/exact.h). Arguments are reduced in integers, without error, and the truncation error of the
 * series is far below the last bit: log, sine and cosine are within 1.2 ulp. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_NORMAL_H
#define SDLF_FRAMEWORK_OPERATIONS_NORMAL_H

#include <sdlf/random.h>

#include "framework/operations/exact.h"

#include <math.h>

/* The logarithm of n 2^-32, for 1 <= n <= 2^32. With n = m 2^e, 1/sqrt 2 <= m <=
 * sqrt 2, and s = (m - 1) / (m + 1), |s| < 0.172: ln m = 2 (s + s^3 / 3 + s^5 / 5 +
 * ...). */
SDLF_INLINE double sdlf_log_of_fraction(uint64_t n)
{
    SDLF_EXACT
    int exponent = 0;
    for (int step = 32; step > 0; step /= 2) { /* the highest bit of n */
        if (n >> (exponent + step) != 0) exponent += step;
    }
    double m = (double)n / (double)((uint64_t)1 << exponent); /* in [1, 2), exact */
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1) / (m + 1), z = s * s, sum = z * (1.0 / 21);
    sum = (sum + 1.0 / 19) * z;
    sum = (sum + 1.0 / 17) * z;
    sum = (sum + 1.0 / 15) * z;
    sum = (sum + 1.0 / 13) * z;
    sum = (sum + 1.0 / 11) * z;
    sum = (sum + 1.0 / 9) * z;
    sum = (sum + 1.0 / 7) * z;
    sum = (sum + 1.0 / 5) * z;
    sum = (sum + 1.0 / 3) * z;
    /* ln 2 in two parts, the first with so few bits that its products with exponents are exact */
    double e = (double)(exponent - 32), high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b39p-40;
    return e * high + (e * low + 2 * (s + s * sum));
}

/* Sine and cosine of 2 pi w 2^-32: w is a number of right angles and a remainder of at most half of one, for which the
 * series go up to x^17. */
SDLF_INLINE void sdlf_sine_and_cosine(uint32_t w, double *sine, double *cosine)
{
    SDLF_EXACT
    const uint32_t middle = UINT32_C(1) << 29, shifted = w + middle, right_angles = shifted >> 30;
    double rest = (double)((int32_t)(shifted & (2 * middle - 1)) - (int32_t)middle);
    double x = rest * 0x1.921fb54442d18p-30, z = x * x; /* 2 pi 2^-32 */
    double s = z * (1.0 / 355687428096000);
    s = (s - 1.0 / 1307674368000) * z;
    s = (s + 1.0 / 6227020800) * z;
    s = (s - 1.0 / 39916800) * z;
    s = (s + 1.0 / 362880) * z;
    s = (s - 1.0 / 5040) * z;
    s = (s + 1.0 / 120) * z;
    s = (s - 1.0 / 6) * z;
    s = x + x * s;
    double c = z * (1.0 / 20922789888000);
    c = (c - 1.0 / 87178291200) * z;
    c = (c + 1.0 / 479001600) * z;
    c = (c - 1.0 / 3628800) * z;
    c = (c + 1.0 / 40320) * z;
    c = (c - 1.0 / 720) * z;
    c = (c + 1.0 / 24) * z;
    c = (c - 0.5) * z;
    c = 1 + c;
    double first = right_angles % 2 == 0 ? s : c, second = right_angles % 2 == 0 ? c : s;
    *sine = right_angles < 2 ? first : -first;
    *cosine = right_angles == 0 || right_angles == 3 ? second : -second;
}

/* mean + deviation sqrt(-2 ln u1) (cos, sin)(2 pi u2), with u1 = (w0 + 1) 2^-32 and u2 = w1 2^-32. */
SDLF_INLINE void sdlf_random_normal_pair(uint32_t w0, uint32_t w1, double mean, double deviation, double value[2])
{
    SDLF_EXACT
    double radius = deviation * sqrt(-2 * sdlf_log_of_fraction((uint64_t)w0 + 1)), sine, cosine;
    sdlf_sine_and_cosine(w1, &sine, &cosine);
    value[0] = mean + radius * cosine;
    value[1] = mean + radius * sine;
}

#endif
