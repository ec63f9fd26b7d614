/* SPDX-License-Identifier: MIT */
/* Putting numbers in order. */
#include "apps/timing/sort.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_doubles(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
}
