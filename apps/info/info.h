/* SPDX-License-Identifier: MIT */
/* The two halves of sdlf info. */
#ifndef SDLF_APPS_INFO_INFO_H
#define SDLF_APPS_INFO_INFO_H

#include <sdlf/machine.h>
#include <sdlf/plan.h>

#include "apps/output/json.h"
#include "apps/output/terminal.h"

/* The build: compiler, flags, calculators and their devices, layers, data sets, networks, optimizers; and the machine's
 * resources. */
void info_print_build(const terminal *out, const sdlf_machine *here);
json_t *info_build_json(const sdlf_machine *here);

/* sdlf --version --json: version, compiler, and the libraries in the program or beside it with their licences (SPDX);
 * null: not known. */
json_t *info_version_json(void);

/* A network's plan: its layers (and, if `steps`, every operation), and the memory it takes. */
typedef struct info_plan {
    sdlf_model *model;
    const sdlf_plan *plan;
    const sdlf_plan_options *options;
    sdlf_memory_info memory;
    sdlf_machine here; /* this machine */
    bool steps;
    bool timed; /* by sdlf_plan_time */
} info_plan;
void info_print_plan(const terminal *out, const info_plan *plan);
json_t *info_plan_json(const info_plan *plan);

#endif
