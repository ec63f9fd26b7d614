/* SPDX-License-Identifier: MIT */
/* Vectors at the end of a run of elements, of which fewer are there than a vector has lanes. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_LANES_H
#define SDLF_CALCULATORS_CPU_KERNELS_LANES_H

#include "calculators/cpu/kernels/element.h"

/* The first `lanes` elements, of 1 or more, and zeros behind them; any number from LANES on: a whole vector. Two loads, which overlap. */
static inline vector load_some(const element *from, int64_t lanes)
{
    if (lanes >= LANES) return load(from);
    element part[LANES] = {0};
    for (int64_t half = LANES / 2; half > 0; half /= 2) {
        if (lanes < half) continue;
        memcpy(part, from, (size_t)half * sizeof *part);
        memcpy(part + lanes - half, from + lanes - half, (size_t)half * sizeof *part);
        break;
    }
    return load(part);
}

/* The first `lanes` lanes, up to all of them: two stores, which overlap. */
static inline void store_some(element *to, vector x, int64_t lanes)
{
    if (lanes >= LANES) {
        store(to, x);
        return;
    }
    element part[LANES];
    store(part, x);
    for (int64_t half = LANES / 2; half > 0; half /= 2) {
        if (lanes < half) continue;
        memcpy(to, part, (size_t)half * sizeof *to);
        memcpy(to + lanes - half, part + lanes - half, (size_t)half * sizeof *to);
        return;
    }
}

#endif
