/* SPDX-License-Identifier: MIT */
/* The results of sdlf bench network, and their output. */
#ifndef SDLF_APPS_BENCH_NETWORK_REPORT_H
#define SDLF_APPS_BENCH_NETWORK_REPORT_H

#include <sdlf/plan.h>

#include "apps/output/json.h"
#include "apps/output/terminal.h"
#include "apps/system/machine.h"
#include "apps/timing/ceilings.h"
#include "apps/timing/epoch.h"

typedef struct bench_result {
    const sdlf_model *model;
    const sdlf_plan *plan; /* timed; NULL: a signal came first */
    const char *data;
    const char *math; /* of calculators that have a choice */
    sdlf_mode mode;
    int64_t batch;
    epoch_time epoch; /* seconds 0: none was run */
    ceilings ceilings[MACHINE_MAX];
    int ceiling_count;
} bench_result;

void bench_print_limits(const terminal *out, const bench_result *result);
void bench_print(const terminal *out, const bench_result *result); /* all but the limits */
json_t *bench_json(const bench_result *result);

#endif
