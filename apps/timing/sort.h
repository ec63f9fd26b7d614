/* SPDX-License-Identifier: MIT */
/* Putting numbers in order: times of repeated runs have their median in the middle then. */
#ifndef SDLF_APPS_TIMING_SORT_H
#define SDLF_APPS_TIMING_SORT_H

#include <stddef.h>

/* The smallest first. None is NaN. */
void sort_doubles(double *values, size_t count);

#endif
