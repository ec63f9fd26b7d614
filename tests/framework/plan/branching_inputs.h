/* SPDX-License-Identifier: MIT */
/* Inputs of the branching network (networks.h). */
#ifndef SDLF_TESTS_FRAMEWORK_PLAN_BRANCHING_INPUTS_H
#define SDLF_TESTS_FRAMEWORK_PLAN_BRANCHING_INPUTS_H

#include <sdlf/sdlf.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 3, A = BATCH * 50, B = BATCH * 25 };

static const int32_t labels[BATCH] = {2, 0, 1};

/* Write the inputs that the plan reads both in training and in inference. */
static inline void write_images(sdlf_plan *plan, sdlf_dtype dtype)
{
    float a[A], b[B];
    double a64[A], b64[B];
    fill_random(a, A, 11);
    fill_random(b, B, 12);
    for (int i = 0; i < A; i++) a64[i] = a[i];
    for (int i = 0; i < B; i++) b64[i] = b[i];
    CHECK_OK(test_plan_write(plan, "a", dtype == SDLF_FLOAT32 ? (void *)a : (void *)a64));
    CHECK_OK(test_plan_write(plan, "b", dtype == SDLF_FLOAT32 ? (void *)b : (void *)b64));
}

/* Write all inputs of training. */
static inline void write_inputs(sdlf_plan *plan, sdlf_dtype dtype)
{
    write_images(plan, dtype);
    CHECK_OK(test_plan_write(plan, "labels", labels));
}

#endif
