/* Which rungs the convolution lab has: the algorithms of one calculator, and what others take beside them. */
#ifndef SDLF_APPS_BENCH_CONV_RUNGS_H
#define SDLF_APPS_BENCH_CONV_RUNGS_H

#include "apps/arguments.h"
#include "apps/bench_conv_report.h"
#include "apps/machine.h"

/* Fill lab->rung: the calculator's algorithms, then a rung for each of the calculators `against`, which must compute in the same
 * memory; with none of these, for the maker's own library beside kernels for its devices, where this build and this machine have it
 * (`left_out` says why it is not there, or is ""). Of all these, those that `wanted` names, if it names any. Errors:
 * SDLF_ERROR_ARGUMENT names the option; SDLF_ERROR_UNSUPPORTED: a calculator has no convolution. */
sdlf_status lab_choose_rungs(lab *lab, machine *machine, sdlf_calculator *calculator, const argument_list *against,
                             const argument_list *wanted, char *left_out, size_t size);

#endif
