/* SPDX-License-Identifier: MIT */
/* Seconds on the monotonic clock. */
#include "apps/timing/clock.h"

#include <time.h>

double clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
