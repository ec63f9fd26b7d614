/* SPDX-License-Identifier: MIT */
/* Where a network runs: the options that train, info and bench share. machine_arguments must directly follow
 * execution_arguments, for `choice`. */
#ifndef SDLF_APPS_ARGUMENTS_EXECUTION_H
#define SDLF_APPS_ARGUMENTS_EXECUTION_H

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/system/machine.h"

typedef struct execution {
    const char *calculator, *forward, *backward; /* NULL where not given */
    machine_choice choice;
    argument_list place;
    const char *conv_algorithm, *plan_file;
    bool no_fusion;
    /* filled by execution_complete: */
    sdlf_trainer_placement placement[ARGUMENT_LIST_MAX];
    sdlf_placement plan_placement[ARGUMENT_LIST_MAX];
    char *text[ARGUMENT_LIST_MAX]; /* storage of the names in placement */
    sdlf_choices *choices;         /* of plan_file; NULL without */
} execution;

extern const argument execution_arguments[];

/* Read --place, check its layers against the model, resolve forward and backward, and read the plan file. Errors:
 * SDLF_ERROR_ARGUMENT, and those of the file. */
sdlf_status execution_complete(execution *execution, const sdlf_model *model);
/* Call once the plans are created: writes the plan file if its contents change. */
sdlf_status execution_keep_choices(const execution *execution);
/* Also after planning: warns if no convolution of the plan uses the requested algorithm. */
void execution_warn(const execution *execution, const sdlf_plan *plan, const char *command);
/* The calculator whose devices are distributed over ranks: that of the forward pass, or, if it has no choice of
 * devices, that of the backward pass if it has one. May be called before execution_complete. */
const char *execution_of_devices(const execution *execution);
void execution_release(execution *execution);

/* Copy the settings into a trainer's options, which borrow from `execution`. */
void execution_to_trainer(const execution *execution, sdlf_trainer_options *options);

/* The same for a plan: opens the calculators. The options borrow from `execution` and `machine`. */
sdlf_status execution_to_plan(execution *execution, machine *machine, sdlf_plan_options *options);

#endif
