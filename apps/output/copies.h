/* SPDX-License-Identifier: MIT */
/* The copies between memories in one step of a plan: their place, contents, bytes and time. No calculator computes
 * them, and no layer includes them. */
#ifndef SDLF_APPS_OUTPUT_COPIES_H
#define SDLF_APPS_OUTPUT_COPIES_H

#include <sdlf/plan.h>

#include "apps/output/json.h"
#include "apps/output/terminal.h"

typedef struct copies_sum {
    int count;
    int64_t bytes;
    double seconds; /* after sdlf_plan_time */
} copies_sum;

copies_sum copies_of(const sdlf_plan *plan);

/* A table of all of them, with their times if the plan was timed; nothing if there are none. */
void copies_print(const terminal *out, const sdlf_plan *plan, bool timed);

/* {"count", "bytes", "seconds" (null if not timed), "list": [{"phase", "layer", "content", "operation", "bytes",
 * "seconds"}]} */
json_t *copies_json(const sdlf_plan *plan, bool timed);

#endif
