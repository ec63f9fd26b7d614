/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the reference calculator: small examples whose results were worked out by hand. */
#ifndef SDLF_TESTS_KERNEL_BY_HAND_H
#define SDLF_TESTS_KERNEL_BY_HAND_H

#include "testing.h"

#include <sdlf/calculator.h>

static sdlf_calculator *reference;

static inline sdlf_tensor d(sdlf_shape shape, double *data)
{
    return sdlf_tensor_view(SDLF_FLOAT64, shape, data);
}

static inline sdlf_tensor of(sdlf_dtype dtype, sdlf_shape shape, void *data)
{
    return sdlf_tensor_view(dtype, shape, data);
}

static inline void compute(sdlf_operation operation)
{
    CHECK_OK(sdlf_calculator_run(reference, &operation));
}

/* Checks that the values at `found` are these, within `tolerance`. */
#define BY_HAND(tolerance, found, ...)                                                                                 \
    check_values((found), (double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),            \
                 (tolerance), __FILE__, __LINE__)

static inline void check_values(const double *found, const double *expected, int count, double tolerance,
                                const char *file, int line)
{
    for (int i = 0; i < count; i++) test_check_close(found[i], expected[i], tolerance, file, line, "an element");
}

#endif
