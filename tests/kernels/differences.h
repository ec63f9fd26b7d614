/* SPDX-License-Identifier: MIT */
/* A backward kind of reference against finite differences of its forward kind, in float64.
 *
 * With a random dy, the loss is L = sum y dy. Its derivative with respect to an input is (L(x + h) - L(x - h)) / 2h,
 * which the backward kind must compute. Random inputs avoid ties and kinks, where the two would differ. */
#ifndef SDLF_TESTS_KERNEL_DIFFERENCES_H
#define SDLF_TESTS_KERNEL_DIFFERENCES_H

#include "testing.h"

#include <math.h>
#include <stdlib.h>

#include <sdlf/calculator.h>
#include <sdlf/random.h>

enum { POOL = 16384 };

/* Storage for all operands of one test, handed out sequentially. */
static struct {
    sdlf_calculator *reference;
    double *number;
    int64_t used;
    uint64_t seed;
} test;

/* A float64 tensor of random numbers in [-1, 1). */
static inline sdlf_tensor make(sdlf_shape shape)
{
    int64_t count = sdlf_shape_count(shape);
    if (!CHECK(test.used + count <= POOL)) exit(1);
    double *data = test.number + test.used;
    for (int64_t i = 0; i < count; i++) {
        sdlf_philox group = sdlf_philox4x32(test.seed, (uint64_t)(test.used + i), 0, 0);
        data[i] = 2 * (double)group.word[0] * 0x1p-32 - 1;
    }
    test.used += count;
    return sdlf_tensor_view(SDLF_FLOAT64, shape, data);
}

static inline void start(uint64_t seed)
{
    test.used = 0;
    test.seed = seed;
}

static inline void compute(const sdlf_operation *operation)
{
    CHECK_OK(sdlf_calculator_run(test.reference, operation));
}

static inline double loss(const sdlf_operation *forward, sdlf_tensor dy)
{
    compute(forward);
    const double *y = forward->out[0].data, *weight = dy.data;
    double sum = 0;
    for (int64_t e = 0; e < sdlf_tensor_count(&dy); e++) sum += y[e] * weight[e];
    return sum;
}

/* Check that `gradient` (already computed by the backward kind) is the derivative of the loss with respect to `varied`,
 * an input of forward. */
static inline void check_gradient(const char *name, const sdlf_operation *forward, sdlf_tensor dy, sdlf_tensor varied,
                                  sdlf_tensor gradient)
{
    const double h = 1e-6, tolerance = 1e-7;
    double *x = varied.data, *found = gradient.data;
    int64_t count = sdlf_tensor_count(&varied), wrong = 0;
    for (int64_t e = 0; e < count; e++) {
        double kept = x[e];
        x[e] = kept + h;
        double above = loss(forward, dy);
        x[e] = kept - h;
        double below = loss(forward, dy);
        x[e] = kept;
        double expected = (above - below) / (2 * h);
        if (fabs(found[e] - expected) <= tolerance * fmax(1, fabs(expected))) continue;
        if (wrong++ == 0) test_check_close(found[e], expected, tolerance, __FILE__, __LINE__, name);
    }
    CHECK_EQUAL(wrong, 0);
}

#endif
