/* SPDX-License-Identifier: MIT */
/* Which algorithm computes what, for operations whose calculator has several: a table, and JSON. */
#ifndef SDLF_APPS_OUTPUT_ALGORITHMS_H
#define SDLF_APPS_OUTPUT_ALGORITHMS_H

#include <sdlf/plan.h>

#include "apps/output/json.h"
#include "apps/output/terminal.h"

/* With the times of a plan that was timed; nothing where no calculator has a choice. */
void algorithms_print(const terminal *out, const sdlf_plan *plan);

/* [{"layer", "operation", "calculator", "algorithm", "seconds"}] */
json_t *algorithms_json(const sdlf_plan *plan);

#endif
