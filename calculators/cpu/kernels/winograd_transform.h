/* Winograd's transforms along one axis, on vectors; `m` is a constant where they are used. See winograd.h.
 *
 * Points of F(2,3): 0, 1, -1, infinity; of F(4,3): 0, 1, -1, 2, -2, infinity. A transform of two axes is one of them applied
 * to the columns of a patch and then to its rows. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_TRANSFORM_H
#define SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_TRANSFORM_H

#include "calculators/cpu/kernels/interleave.h"

enum { WINOGRAD_SIDE = 6, WINOGRAD_OUTPUTS = 4 }; /* at most: m + 2, and m */

/* to = B^T d: m + 2 numbers of the image. */
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

/* to = G g: three numbers of a filter become m + 2. */
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

/* to = A^T d: m outputs of m + 2 products. */
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

static inline vector unzip_even(vector a, vector b)
{
#if SDLF_LANES == 16
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif SDLF_LANES == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#elif SDLF_LANES == 4
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#else
    return __builtin_shufflevector(a, b, 0, 2);
#endif
}

static inline vector unzip_odd(vector a, vector b)
{
#if SDLF_LANES == 16
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif SDLF_LANES == 8
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#elif SDLF_LANES == 4
    return __builtin_shufflevector(a, b, 1, 3, 5, 7);
#else
    return __builtin_shufflevector(a, b, 1, 3);
#endif
}

/* m vectors of a line, element after element, become m vectors of every m-th element: to[i] has elements i, i + m, i + 2m ... */
static inline __attribute__((always_inline)) void winograd_deal(const int m, vector *to, const element *line)
{
    vector v[WINOGRAD_OUTPUTS];
    for (int i = 0; i < m; i++) v[i] = load(line + i * LANES);
    vector even = unzip_even(v[0], v[1]), odd = unzip_odd(v[0], v[1]);
    if (m == 2) {
        to[0] = even;
        to[1] = odd;
        return;
    }
    vector more_even = unzip_even(v[2], v[3]), more_odd = unzip_odd(v[2], v[3]);
    to[0] = unzip_even(even, more_even);
    to[1] = unzip_even(odd, more_odd);
    to[2] = unzip_odd(even, more_even);
    to[3] = unzip_odd(odd, more_odd);
}

/* The way back: m vectors of every m-th element become a line. */
static inline __attribute__((always_inline)) void winograd_collect(const int m, element *line, const vector *from)
{
    if (m == 2) {
        store(line, zip_low(from[0], from[1]));
        store(line + LANES, zip_high(from[0], from[1]));
        return;
    }
    vector even_low = zip_low(from[0], from[2]), even_high = zip_high(from[0], from[2]);
    vector odd_low = zip_low(from[1], from[3]), odd_high = zip_high(from[1], from[3]);
    store(line, zip_low(even_low, odd_low));
    store(line + LANES, zip_high(even_low, odd_low));
    store(line + 2 * LANES, zip_low(even_high, odd_high));
    store(line + 3 * LANES, zip_high(even_high, odd_high));
}

#endif
