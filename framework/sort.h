/* SPDX-License-Identifier: MIT */
/* Sorting of doubles, for instance of the times of repeated runs, to find the median. */
#ifndef SDLF_FRAMEWORK_SORT_H
#define SDLF_FRAMEWORK_SORT_H

#include <stdlib.h>

static inline int sdlf_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ascending. No value may be NaN. */
static inline void sdlf_sort_doubles(double *values, size_t count)
{
    qsort(values, count, sizeof *values, sdlf_compare_doubles);
}

#endif
