/* SPDX-License-Identifier: MIT */
/* The results of the scaling benchmark, as tables, as JSON and as a chart. */
#ifndef SDLF_APPS_BENCH_SCALING_REPORT_H
#define SDLF_APPS_BENCH_SCALING_REPORT_H

#include "apps/bench/scaling/measure.h"
#include "apps/output/json.h"
#include "apps/output/terminal.h"

enum { SCALING_POINTS = 32, SCALING_SUM = 64 << 20 };

/* Strong: the same total batch for any number of ranks. Weak: the same batch for each rank. */
typedef enum scaling_kind { SCALING_STRONG, SCALING_WEAK, SCALING_KINDS } scaling_kind;
extern const char *const scaling_names[];

typedef struct scaling_report {
    const char *network, *communicator, *math, *gradients; /* gradients: the dtype of their all-reduce */
    sdlf_shape sample;
    bool sync; /* batch normalisation of the whole batch */
    char runs_on[512];
    int64_t batch, steps, repeats;
    int count; /* numbers of ranks */
    scaling_point point[SCALING_KINDS][SCALING_POINTS];
    double large[SCALING_POINTS]; /* seconds of a sum of SCALING_SUM bytes; 0: of one rank */
} scaling_report;

/* Samples a second, relative to one rank; and that divided by the ranks. NaN: not measured. */
double scaling_times(const scaling_report *report, scaling_kind kind, int index);
double scaling_efficiency(const scaling_report *report, scaling_kind kind, int index);
/* The fraction of the all-reduces' time that overlaps with computation, 0 to 1; NaN: one rank. */
double scaling_hidden(const scaling_point *point);
/* Bytes a second that each rank sends in all-reduces alone: a step's gradients, and one large sum. NaN: one rank. */
double scaling_rate(const scaling_point *point);
double scaling_large_rate(const scaling_report *report, int index);

void scaling_print(const terminal *out, const scaling_report *report);
json_t *scaling_json(const scaling_report *report);

/* Draw the efficiencies and the parts of a step's time (chart.c). Errors: SDLF_ERROR_IO. */
sdlf_status scaling_draw(const scaling_report *report, const char *path);

#endif
