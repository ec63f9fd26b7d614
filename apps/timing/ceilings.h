/* SPDX-License-Identifier: MIT */
/* The measured peak rates of a calculator: arithmetic by a large matrix product, memory by a large copy. They give
 * a lower bound on the time of any operation: the larger of its FLOPs at the one rate and its bytes at the
 * other. */
#ifndef SDLF_APPS_TIMING_CEILINGS_H
#define SDLF_APPS_TIMING_CEILINGS_H

#include <sdlf/calculator.h>

typedef struct ceilings {
    const char *calculator;
    double flops;       /* a second */
    double bytes;       /* a second, read and written */
    int64_t side;       /* of the square matrices that reached `flops` */
    int64_t copy_bytes; /* of the array that was copied */
} ceilings;

/* Measure both, each the best of several runs, about a second in total; matrix products in `dtype`. Uses 2 copy_bytes
 * of memory meanwhile. */
sdlf_status ceilings_measure(ceilings *ceilings, sdlf_calculator *calculator, sdlf_dtype dtype, int64_t copy_bytes);

/* The lower bound, in seconds, for work of this cost. */
double ceilings_floor(const ceilings *ceilings, sdlf_cost cost);

#endif
