/* SPDX-License-Identifier: MIT */
/* The rungs of the convolution lab: the algorithms of one calculator, and the choices of others to compare with. */
#ifndef SDLF_APPS_BENCH_CONV_RUNGS_H
#define SDLF_APPS_BENCH_CONV_RUNGS_H

#include "apps/arguments/arguments.h"
#include "apps/bench/conv/report.h"
#include "apps/system/machine.h"

/* A calculator and the one that it is compared with by default. */
typedef struct lab_usual_rival {
    const char *calculator, *rival;
} lab_usual_rival;

/* The vendor's library for kernels on its devices. Ends with NULLs. */
extern const lab_usual_rival lab_usual_rivals[];

typedef struct lab_rung_choice {
    const argument_list *against; /* calculators to compare with; none: the usual ones */
    const argument_list *wanted;  /* only these rungs; none: all */
    const lab_usual_rival *usual; /* ends with NULLs */
} lab_rung_choice;

/* Fill lab->rung: the calculator's algorithms, then a rung for each of the calculators to compare with, which must use
 * the same memory. The usual ones are added only if this build and this machine have them and their rung is wanted
 * (`left_out` gives the reason if one is missing, or is ""). A rival has its calculator's name, or "NAME:auto" if an
 * algorithm has that name; either selects it. Errors: SDLF_ERROR_ARGUMENT names the option; SDLF_ERROR_UNSUPPORTED: a
 * calculator has no convolution. */
sdlf_status lab_choose_rungs(lab *lab, machine *machine, sdlf_calculator *calculator, const lab_rung_choice *choice,
                             char *left_out, size_t size);

#endif
