/* SPDX-License-Identifier: MIT */
/* The chosen algorithms of operations whose calculator has several, as a table and as JSON. */
#ifndef SDLF_APPS_OUTPUT_ALGORITHMS_H
#define SDLF_APPS_OUTPUT_ALGORITHMS_H

#include <sdlf/plan.h>

#include "apps/output/json.h"
#include "apps/output/terminal.h"

/* Print them, with times if the plan was timed; nothing if no calculator has a choice. */
void algorithms_print(const terminal *out, const sdlf_plan *plan);

/* [{"layer", "operation", "calculator", "algorithm", "seconds"}] */
json_t *algorithms_json(const sdlf_plan *plan);

#endif
