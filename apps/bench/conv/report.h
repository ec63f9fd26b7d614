/* SPDX-License-Identifier: MIT */
/* What the convolution lab found: as tables, as JSON, as a chart. */
#ifndef SDLF_APPS_BENCH_CONV_REPORT_H
#define SDLF_APPS_BENCH_CONV_REPORT_H

#include "apps/bench/conv/measure.h"
#include "apps/bench/conv/workloads.h"
#include "apps/output/json.h"
#include "apps/output/terminal.h"
#include "apps/timing/ceilings.h"

typedef struct lab {
    lab_workload workload;
    const char *calculator, *math;
    char runs_on[256];
    sdlf_dtype dtype;
    ceilings ceilings;
    int rungs;
    lab_rung rung[LAB_RUNGS];
    int cases;                   /* of the workload, that were measured; fewer than all after an interruption */
    bool interrupted, unchecked; /* nothing was compared with reference */
    json_t *source;              /* of a stored report: what names point into; NULL for one that was measured */
    sdlf_cost cost[LAB_CASES];   /* what each convolution asks for */
    lab_result result[LAB_CASES][LAB_RUNGS]; /* a rung that was not come to: neither ran nor a reason */
} lab;

/* A rung over several convolutions, each counted as often as the network has it. */
typedef struct lab_total {
    int ran, asked;
    double seconds, floor; /* of those that ran */
    sdlf_cost cost, work;  /* likewise */
    double error;          /* the largest */
} lab_total;

/* Over cases [first, last). */
lab_total lab_total_of(const lab *lab, int rung, int first, int last);

/* The rung that speed-ups over all cases are against: the first of those that ran most. */
int lab_base(const lab *lab);
/* Of one case: the first rung that ran it; -1. */
int lab_case_base(const lab *lab, int index);

/* Seconds of rung `base` on the convolutions that `rung` ran; NaN where it did not run all of these. */
double lab_seconds_beside(const lab *lab, int base, int rung);

/* Cases [first, end) stand in one row of the summary; returns end. */
int lab_row_end(const lab *lab, int first);

/* The least time that a convolution takes at the ceilings. */
double lab_floor(const lab *lab, int index);

/* A convolution and its rungs; then, at the end, the summary of all. */
void lab_print_case(const terminal *out, const lab *lab, int index);
void lab_print_summary(const terminal *out, const lab *lab);

/* Is the rung the calculator's own choice, beside others of its? */
bool lab_is_automatic(const lab *lab, int rung);
/* The rung that is another calculator's; -1 where there is none. And the one that it is held against: the calculator's
 * own choice; -1. */
int lab_rival(const lab *lab);
int lab_automatic(const lab *lab);

json_t *lab_json(const lab *lab);

/* The roofline chart. Errors: SDLF_ERROR_IO. */
sdlf_status lab_draw(const lab *lab, const char *path);

#endif
