/* SPDX-License-Identifier: MIT */
/* Putting numbers in order: times of repeated runs have their median in the middle then. */
#ifndef SDLF_FRAMEWORK_SORT_H
#define SDLF_FRAMEWORK_SORT_H

#include <stdlib.h>

static inline int sdlf_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest first. None is NaN. */
static inline void sdlf_sort_doubles(double *values, size_t count)
{
    qsort(values, count, sizeof *values, sdlf_compare_doubles);
}

#endif
