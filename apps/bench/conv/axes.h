/* SPDX-License-Identifier: MIT */
/* The axes of the convolution lab's roofline chart: two logarithmic axes, and the roof given by a machine's
 * limits. */
#ifndef SDLF_APPS_BENCH_CONV_AXES_H
#define SDLF_APPS_BENCH_CONV_AXES_H

#include <stdio.h>

#include "apps/bench/conv/labels.h"
#include "apps/timing/ceilings.h"

enum { AXES_LEFT = 78, AXES_TOP = 96, AXES_WIDTH = 632 };

typedef struct axes {
    FILE *file;
    ceilings limits;
    double x[2], y[2]; /* ranges as logarithms: FLOP a byte, FLOP a second */
    int height;
    label_map map; /* occupied areas */
} axes;

/* Create axes that cover only the ridge point of the roof; extend them to more points; finally add a margin. */
axes axes_of(FILE *file, const ceilings *limits, int height);
void axes_stretch(axes *axes, double x, double y);
void axes_settle(axes *axes);

/* The position of a value, in pixels. */
double axes_x(const axes *axes, double value);
double axes_y(const axes *axes, double value);

/* Draw the grid with its numbers, the roof and the frame. Then label the roof: the labels avoid the occupied areas of
 * the map and are added to it. */
void axes_draw(const axes *axes);
void axes_name_roof(axes *axes);

/* Draw text over lines: its outline in white, then the text itself. It takes two elements, since not every viewer
 * supports paint-order, without which an outline covers the text. `place` and `style` are attributes. */
void axes_word(FILE *file, const char *place, const char *style, const char *text);

#endif
