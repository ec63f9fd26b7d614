/* SPDX-License-Identifier: MIT */
/* The plane of the convolution lab's chart: two logarithmic axes, and the roof that a machine's limits make over
 * them. */
#ifndef SDLF_APPS_BENCH_CONV_AXES_H
#define SDLF_APPS_BENCH_CONV_AXES_H

#include <stdio.h>

#include "apps/bench/conv/labels.h"
#include "apps/timing/ceilings.h"

enum { AXES_LEFT = 78, AXES_TOP = 96, AXES_WIDTH = 632 };

typedef struct axes {
    FILE *file;
    ceilings limits;
    double x[2], y[2]; /* the logarithms between which the plane lies: FLOP a byte, FLOP a second */
    int height;
    label_map map; /* what stands in it */
} axes;

/* Axes over the ridge of the roof only; then over more points, and last with an edge around them. */
axes axes_of(FILE *file, const ceilings *limits, int height);
void axes_stretch(axes *axes, double x, double y);
void axes_settle(axes *axes);

/* Where a value lies, in pixels. */
double axes_x(const axes *axes, double value);
double axes_y(const axes *axes, double value);

/* The grid with its numbers, the roof, the frame. The figures of the roof, which avoid what stands in the map and then
 * stand there themselves. */
void axes_draw(const axes *axes);
void axes_name_roof(axes *axes);

/* Words that stand on others' lines: their outline in white, then they themselves. Two elements, since not every viewer
 * knows paint-order, without which an outline covers the words. `place` and `style` are attributes. */
void axes_word(FILE *file, const char *place, const char *style, const char *text);

#endif
