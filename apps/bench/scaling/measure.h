/* SPDX-License-Identifier: MIT */
/* The time of a training step on a number of ranks, and its parts. */
#ifndef SDLF_APPS_BENCH_SCALING_MEASURE_H
#define SDLF_APPS_BENCH_SCALING_MEASURE_H

#include <sdlf/sdlf.h>

#include "apps/system/machine.h"

typedef struct scaling_point {
    int ranks;
    int64_t batch;  /* of all ranks; 0: not measured */
    double seconds; /* a step */
    double compute; /* the same steps without all-reduce */
    double sums;    /* the all-reduces of a step alone */
    int64_t bytes;  /* of gradients that a step reduces */
    int buckets;    /* all-reduces of them */
} scaling_point;

typedef struct scaling_work {
    sdlf_communicator *ranks;
    const machine *machine;
    sdlf_model *model;
    sdlf_plan_options plan; /* except for the batch and the options on ranks */
    int64_t steps, repeats;
} scaling_work;

/* Measure on every rank of work->ranks; all get the figures of the slowest: medians of `repeats` times of `steps`
 * steps. point->ranks and ->batch are set before. All ranks return the same error (sdlf_communicator_agree). */
sdlf_status scaling_measure(scaling_point *point, const scaling_work *work);

/* Measure the seconds of one all-reduce of that many bytes in the calculator's memory. */
sdlf_status scaling_measure_sum(double *seconds, int64_t bytes, sdlf_calculator *calculator, const scaling_work *work);

/* The minimum bytes that each of n ranks sends to all-reduce `bytes`: 2 (n - 1) / n times as many. */
double scaling_sent(int ranks, int64_t bytes);

#endif
