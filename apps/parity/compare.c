/* SPDX-License-Identifier: MIT */
/* The difference between two tensors. */
#include "apps/parity/compare.h"

#include <math.h>

static double element(sdlf_dtype dtype, const void *values, int64_t index)
{
    return dtype == SDLF_FLOAT64 ? ((const double *)values)[index] : (double)((const float *)values)[index];
}

parity_error parity_compare(sdlf_dtype dtype, const void *a, const void *b, int64_t count, double least_scale)
{
    parity_error error = {.element = -1, .scale = least_scale};
    double sum = 0, most = -1;
    for (int64_t i = 0; i < count; i++) {
        double x = element(dtype, a, i), y = element(dtype, b, i), distance = fabs(x - y);
        if (!isfinite(x) || !isfinite(y))
            return (parity_error){
                .largest = INFINITY, .mean = INFINITY, .scale = INFINITY, .element = i, .a = x, .b = y};
        error.scale = fmax(error.scale, fmax(fabs(x), fabs(y)));
        sum += distance;
        if (distance <= most) continue;
        most = distance;
        error.element = i;
        error.a = x;
        error.b = y;
    }
    if (error.scale == 0) return error;
    error.largest = most / error.scale;
    error.mean = sum / (double)count / error.scale;
    return error;
}
