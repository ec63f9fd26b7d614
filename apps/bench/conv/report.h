/* SPDX-License-Identifier: MIT */
/* The results of the convolution lab: as tables, as JSON, as a chart. */
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
    int cases;                   /* measured ones of the workload; fewer than all after an interruption */
    bool interrupted, unchecked; /* no comparison with reference */
    json_t *source;              /* of a stored report: owner of the strings that names point to; NULL if measured */
    sdlf_cost cost[LAB_CASES];   /* of each convolution itself */
    lab_result result[LAB_CASES][LAB_RUNGS]; /* a rung not reached: neither ran nor a reason */
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

/* The baseline rung for speed-ups over all cases: the first of those that ran the most cases. */
int lab_base(const lab *lab);
/* The baseline of one case: the first rung that ran it; -1 if none. */
int lab_case_base(const lab *lab, int index);

/* Seconds of rung `base` on the convolutions that `rung` ran; NaN if it did not run all of them. */
double lab_seconds_beside(const lab *lab, int base, int rung);

/* Returns end such that cases [first, end) share one row of the summary. */
int lab_row_end(const lab *lab, int first);

/* The lower bound on a convolution's time, from the ceilings. */
double lab_floor(const lab *lab, int index);

/* Print a convolution and its rungs; at the end, print the summary of all. */
void lab_print_case(const terminal *out, const lab *lab, int index);
void lab_print_summary(const terminal *out, const lab *lab);

/* True if the rung is the calculator's automatic choice, listed with its other rungs. */
bool lab_is_automatic(const lab *lab, int rung);
/* The rung of another calculator; -1 if there is none. And the rung that it is compared with: the calculator's
 * automatic choice; -1 if there is none. */
int lab_rival(const lab *lab);
int lab_automatic(const lab *lab);

json_t *lab_json(const lab *lab);

/* The roofline chart. Errors: SDLF_ERROR_IO. */
sdlf_status lab_draw(const lab *lab, const char *path);

#endif
