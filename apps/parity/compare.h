/* SPDX-License-Identifier: MIT */
/* The difference between two tensors that should be equal except for rounding.
 *
 * The scale is the larger of the largest magnitude in either tensor and the given least scale. The error of an
 * element is |a - b| / scale, relative to the tensor's largest magnitude, so that elements near zero, where sums
 * cancel, do not dominate. Two tensors of zeros have error 0; if either holds an infinity or NaN the error is
 * infinite. */
#ifndef SDLF_APPS_PARITY_COMPARE_H
#define SDLF_APPS_PARITY_COMPARE_H

#include <sdlf/dtype.h>

typedef struct parity_error {
    double largest, mean; /* over all elements */
    double scale;
    int64_t element; /* where the error is largest, in row-major order */
    double a, b;     /* the values there */
} parity_error;

/* Both have `count` elements of dtype float32 or float64, in host memory. */
parity_error parity_compare(sdlf_dtype dtype, const void *a, const void *b, int64_t count, double least_scale);

#endif
