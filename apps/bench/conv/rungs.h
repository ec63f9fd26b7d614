/* SPDX-License-Identifier: MIT */
/* Which rungs the convolution lab has: the algorithms of one calculator, and what others take beside them. */
#ifndef SDLF_APPS_BENCH_CONV_RUNGS_H
#define SDLF_APPS_BENCH_CONV_RUNGS_H

#include "apps/arguments/arguments.h"
#include "apps/bench/conv/report.h"
#include "apps/system/machine.h"

/* A calculator beside whose kernels another's stand as a rung, where nobody says otherwise. */
typedef struct lab_usual_rival {
    const char *calculator, *rival;
} lab_usual_rival;

/* The maker's own library beside kernels for its devices. Ends with NULLs. */
extern const lab_usual_rival lab_usual_rivals[];

typedef struct lab_rung_choice {
    const argument_list *against; /* calculators to compare with; none: the usual ones */
    const argument_list *wanted;  /* only these rungs; none: all */
    const lab_usual_rival *usual; /* ends with NULLs */
} lab_rung_choice;

/* Fill lab->rung: the calculator's algorithms, then a rung for each of the calculators to compare with, which must
 * compute in the same memory; the usual ones only where this build and this machine have them and a rung of theirs is
 * wanted (`left_out` says why one is not there, or is ""). A rival is called by its calculator's name, or "NAME:auto"
 * where an algorithm has that name; it can be wanted by either. Errors: SDLF_ERROR_ARGUMENT names the option;
 * SDLF_ERROR_UNSUPPORTED: a calculator has no convolution. */
sdlf_status lab_choose_rungs(lab *lab, machine *machine, sdlf_calculator *calculator, const lab_rung_choice *choice,
                             char *left_out, size_t size);

#endif
