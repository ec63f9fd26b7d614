/* SPDX-License-Identifier: MIT */
/* How long a training step takes on a number of ranks, and of what that is made. */
#ifndef SDLF_APPS_BENCH_SCALING_MEASURE_H
#define SDLF_APPS_BENCH_SCALING_MEASURE_H

#include <sdlf/sdlf.h>

#include "apps/system/machine.h"

typedef struct scaling_point {
    int ranks;
    int64_t batch;  /* of all ranks; 0: not measured */
    double seconds; /* a step */
    double compute; /* the same steps with nothing added over the ranks */
    double sums;    /* what is added in a step, by itself */
    int64_t bytes;  /* of gradients that a step adds */
    int buckets;    /* sums of them */
} scaling_point;

typedef struct scaling_work {
    sdlf_communicator *ranks;
    const machine *machine;
    sdlf_model *model;
    sdlf_plan_options plan; /* except for the batch and what is about ranks */
    int64_t steps, repeats;
} scaling_work;

/* Every rank of work->ranks measures, and has the figures of the slowest: medians of `repeats` times of `steps` steps.
 * point->ranks and ->batch are set before. Errors are all ranks' (sdlf_communicator_agree). */
sdlf_status scaling_measure(scaling_point *point, const scaling_work *work);

/* Seconds of one sum over all ranks of that many bytes of the calculator's memory. */
sdlf_status scaling_measure_sum(double *seconds, int64_t bytes, sdlf_calculator *calculator, const scaling_work *work);

/* The least bytes that each of n ranks sends to add `bytes` over all of them: 2 (n - 1) / n times as many. */
double scaling_sent(int ranks, int64_t bytes);

#endif
