/* SPDX-License-Identifier: MIT */
/* The results of the placement experiment, as a table, as JSON and as a chart. */
#ifndef SDLF_APPS_BENCH_PLACEMENT_REPORT_H
#define SDLF_APPS_BENCH_PLACEMENT_REPORT_H

#include "apps/bench/placement/experiment.h"
#include "apps/output/json.h"
#include "apps/output/terminal.h"

enum { PLACEMENT_EXPERIMENTS_MAX = 2 };

/* All rows at one batch size. */
typedef struct placement_experiment {
    int64_t batch, iterations;
    placement_row row[PLACEMENT_ROWS_MAX];
    int count;
    int host; /* the row with everything on the host, with all its threads */
} placement_experiment;

typedef struct placement_report {
    const char *network, *data, *math;
    char runs_on[512]; /* the calculators, described */
    const char *host, *device;
    placement_experiment experiment[PLACEMENT_EXPERIMENTS_MAX];
    int count;
} placement_report;

/* The row's speed-up over the first row (one thread) and over everything on the host; 0: not measured. */
double placement_against_first(const placement_experiment *experiment, const placement_row *row);
double placement_against_host(const placement_experiment *experiment, const placement_row *row);

/* The largest possible speed-up of a step over everything on the host while backward passes and updates stay there; 0:
 * not known. */
double placement_limit(const placement_experiment *experiment);

void placement_print(const terminal *out, const placement_experiment *experiment);

/* Print notes on the table. */
void placement_print_notes(const terminal *out, const placement_report *report);

json_t *placement_json(const placement_report *report);

/* A bar chart of all experiments (chart.c). Errors: SDLF_ERROR_IO. */
sdlf_status placement_draw(const placement_report *report, const char *path);

#endif
