/* SPDX-License-Identifier: MIT */
/* A clock for measuring durations. */
#ifndef SDLF_FRAMEWORK_CLOCK_H
#define SDLF_FRAMEWORK_CLOCK_H

#include <time.h>

/* Seconds since a fixed moment; monotonic. */
static inline double sdlf_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
