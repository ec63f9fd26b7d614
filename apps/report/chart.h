/* SPDX-License-Identifier: MIT */
/* A line chart, as inline SVG of a page. */
#ifndef SDLF_APPS_REPORT_CHART_H
#define SDLF_APPS_REPORT_CHART_H

#include <stdbool.h>
#include <stdio.h>

typedef struct chart_line {
    char *name;
    double *x, *y; /* owned; NaN breaks the line */
    int count, capacity;
    int colour;  /* of the page's, from 0 */
    bool dashed; /* of tests, so that they differ by more than colour */
} chart_line;

typedef struct chart {
    const char *title, *across, *up; /* the axes' labels */
    bool percent;                    /* y is a fraction */
    chart_line *line;                /* owned */
    int count;
} chart;

/* Add a line; the pointer is valid until the next call. `name` is copied. */
chart_line *chart_add(chart *chart, const char *name, int colour, bool dashed);
void chart_point(chart_line *line, double x, double y);

/* Prints nothing if no line has a point. */
void chart_print(FILE *file, const chart *chart);
void chart_release(chart *chart);

/* "Nice" distances between ticks: 1, 2 or 5 times a power of ten, about `count` of them over `range`. */
double chart_step(double range, int count);

#endif
