/* SPDX-License-Identifier: MIT */
/* Winograd's one-dimensional transforms, on vectors; `m` is a compile-time constant at every call. See winograd.h.
 *
 * Points of F(2,3): 0, 1, -1, infinity; of F(4,3): 0, 1, -1, 2, -2, infinity. A two-dimensional transform applies one
 * of them to the columns of a tile and then to its rows. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_TRANSFORM_H
#define SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_TRANSFORM_H

#include "calculators/cpu/kernels/interleave.h"

enum { WINOGRAD_SIDE = 6, WINOGRAD_OUTPUTS = 4 }; /* at most: m + 2, and m */

/* to = B^T d: m + 2 input elements. */
static inline __attribute__((always_inline)) void winograd_input(const int m, vector *to, const vector *d)
{
    if (m == 2) {
        to[0] = d[0] - d[2];
        to[1] = d[1] + d[2];
        to[2] = d[2] - d[1];
        to[3] = d[1] - d[3];
        return;
    }
    vector a = d[4] - 4 * d[2], b = d[3] - 4 * d[1], c = d[4] - d[2], e = 2 * (d[3] - d[1]);
    to[0] = 4 * d[0] - 5 * d[2] + d[4];
    to[1] = a + b;
    to[2] = a - b;
    to[3] = c + e;
    to[4] = c - e;
    to[5] = 4 * d[1] - 5 * d[3] + d[5];
}

/* to = G g: three filter taps become m + 2 values. */
static inline __attribute__((always_inline)) void winograd_filter(const int m, vector *to, const vector *g)
{
    if (m == 2) {
        vector outer = (element)0.5 * (g[0] + g[2]), inner = (element)0.5 * g[1];
        to[0] = g[0];
        to[1] = outer + inner;
        to[2] = outer - inner;
        to[3] = g[2];
        return;
    }
    vector a = (element)(-1.0 / 6) * (g[0] + g[2]), b = (element)(1.0 / 6) * g[1];
    vector c = (element)(1.0 / 24) * g[0] + (element)(1.0 / 6) * g[2], e = (element)(1.0 / 12) * g[1];
    to[0] = (element)0.25 * g[0];
    to[1] = a - b;
    to[2] = a + b;
    to[3] = c + e;
    to[4] = c - e;
    to[5] = g[2];
}

/* G g G^T for a vector of filters or channels: reads taps[i], 9 of them, and writes point t at to + t * step. */
static inline __attribute__((always_inline)) void winograd_transform_filter(const int m, element *to, int64_t step,
                                                                            element taps[9][LANES])
{
    vector half[WINOGRAD_SIDE][3];
    for (int s = 0; s < 3; s++) {
        vector g[3], column[WINOGRAD_SIDE];
        for (int r = 0; r < 3; r++) g[r] = load(taps[3 * r + s]);
        winograd_filter(m, column, g);
        for (int i = 0; i < m + 2; i++) half[i][s] = column[i];
    }
    for (int i = 0; i < m + 2; i++) {
        vector line[WINOGRAD_SIDE];
        winograd_filter(m, line, half[i]);
        for (int j = 0; j < m + 2; j++) store(to + (i * (m + 2) + j) * step, line[j]);
    }
}

/* to = A^T d: m outputs from m + 2 products. */
static inline __attribute__((always_inline)) void winograd_output(const int m, vector *to, const vector *d)
{
    if (m == 2) {
        to[0] = d[0] + d[1] + d[2];
        to[1] = d[1] - d[2] - d[3];
        return;
    }
    vector a = d[1] + d[2], b = d[1] - d[2], c = d[3] + d[4], e = d[3] - d[4];
    to[0] = d[0] + a + c;
    to[1] = b + 2 * e;
    to[2] = a + 4 * c;
    to[3] = b + 8 * e + d[5];
}

#endif
