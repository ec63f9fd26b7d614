/* SPDX-License-Identifier: MIT */
/* What a calculator can do at most, measured: arithmetic by a large matrix product, memory by a large copy. From these
 * follows the floor of any operation: it cannot take less time than its FLOPs at the one rate or its bytes at the
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

/* The best of several runs each, about a second together; products of matrices of `dtype`. Takes 2 copy_bytes of memory
 * meanwhile. */
sdlf_status ceilings_measure(ceilings *ceilings, sdlf_calculator *calculator, sdlf_dtype dtype, int64_t copy_bytes);

/* The least seconds that work of this cost takes. */
double ceilings_floor(const ceilings *ceilings, sdlf_cost cost);

#endif
