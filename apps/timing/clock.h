/* SPDX-License-Identifier: MIT */
/* Seconds on the monotonic clock. */
#ifndef SDLF_APPS_TIMING_CLOCK_H
#define SDLF_APPS_TIMING_CLOCK_H

double clock_now(void);

#endif
