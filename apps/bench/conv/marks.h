/* SPDX-License-Identifier: MIT */
/* The marks of the convolution lab's chart: a colour and a shape for each algorithm ("rung"). */
#ifndef SDLF_APPS_BENCH_CONV_MARKS_H
#define SDLF_APPS_BENCH_CONV_MARKS_H

#include <stdio.h>

#include "apps/bench/conv/report.h"

/* The mark of a rung; no two rungs of a ladder share both. */
typedef struct lab_mark {
    const char *colour; /* "#3b6ea5" */
    int form;
} lab_mark;

lab_mark lab_mark_of(const lab *lab, int rung);

/* Draw it centred at (x,y), about `size` pixels in each direction; at 5 or less without an outline. */
void lab_mark_draw(FILE *file, lab_mark mark, double x, double y, double size, double opacity);

#endif
