/* SPDX-License-Identifier: MIT */
/* Partial vectors for the tail of a run of elements, with fewer elements than lanes. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_LANES_H
#define SDLF_CALCULATORS_CPU_KERNELS_LANES_H

#include "calculators/cpu/kernels/element.h"

/* The first `lanes` >= 1 elements, followed by zeros; a whole vector for lanes >= LANES. Two overlapping loads. */
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

/* Stores the first `lanes` lanes, at most all of them: two overlapping stores. */
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
