/* SPDX-License-Identifier: MIT */
/* An option that a sweep varies: "--try batch=32,64" has values, "--try learning-rate=log:1e-3..1e-1" a range to draw
 * from. */
#ifndef SDLF_APPS_SWEEP_AXIS_H
#define SDLF_APPS_SWEEP_AXIS_H

#include <stdbool.h>
#include <stdint.h>

#include <sdlf/status.h>

enum { AXIS_VALUES = 64 };

typedef struct axis {
    char *option;             /* without the dashes; owned */
    char *value[AXIS_VALUES]; /* point into `option` */
    int count;                /* 0: a range */
    double least, greatest;
    bool logarithmic, whole; /* uniform in its logarithm; an integer */
} axis;

/* Read "NAME=VALUE,VALUE,..." or "NAME=[log:]LOW..HIGH". Errors: SDLF_ERROR_ARGUMENT. End with axis_release, whatever
 * the status. */
sdlf_status axis_read(axis *axis, const char *text);
void axis_release(axis *axis);

/* Draw the value of the `trial`-th combination, deterministic for a seed; from a list, one of its values. The caller
 * frees it. */
char *axis_draw(const axis *axis, int index, int64_t trial, uint64_t seed);

#endif
