/* SPDX-License-Identifier: MIT */
/* The cosine and sine of an angle, with the same bits everywhere. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_SINCOS_H
#define SDLF_FRAMEWORK_OPERATIONS_SINCOS_H

#include <sdlf/random.h>

#include "framework/operations/exact.h"

/* cos and sin of an angle of at most a full turn, with additions and multiplications only, so that mathematical
 * libraries cannot differ: Taylor series of an eighth of the angle, then three doublings. Error below 1e-14. */
SDLF_INLINE void sdlf_cos_sin(double angle, double *cosine, double *sine)
{
    SDLF_EXACT
    double x = angle * 0.125, square = x * x, c = 0, s = 0;
    for (int n = 9; n >= 1; n--) {
        c = (1 + c) * -square / (double)((2 * n - 1) * (2 * n));
        s = (1 + s) * -square / (double)(2 * n * (2 * n + 1));
    }
    c = 1 + c;
    s = x * (1 + s);
    for (int i = 0; i < 3; i++) {
        double doubled = 2 * s * c;
        c = 1 - 2 * s * s;
        s = doubled;
    }
    *cosine = c;
    *sine = s;
}

#endif
