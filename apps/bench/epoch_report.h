/* SPDX-License-Identifier: MIT */
/* The results of sdlf bench epoch, and their output. */
#ifndef SDLF_APPS_BENCH_EPOCH_REPORT_H
#define SDLF_APPS_BENCH_EPOCH_REPORT_H

#include "apps/output/json.h"
#include "apps/output/terminal.h"
#include "apps/timing/epoch.h"
#include "apps/timing/layers.h"

enum { EPOCH_BATCHES_MAX = 16 };

/* One batch size; side 0 is the host, side 1 the device. */
typedef struct epoch_comparison {
    int64_t batch;
    epoch_time epoch[LAYER_TIMES_SIDES];
    layer_times layers; /* owned */
} epoch_comparison;

typedef struct epoch_report {
    const char *network, *data, *math;
    const char *calculator[LAYER_TIMES_SIDES];
    epoch_comparison batch[EPOCH_BATCHES_MAX];
    int count;
} epoch_report;

void epoch_print(const terminal *out, const epoch_report *report, const epoch_comparison *batch);
void epoch_print_summary(const terminal *out, const epoch_report *report);
json_t *epoch_json(const epoch_report *report);

#endif
