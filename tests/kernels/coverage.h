/* SPDX-License-Identifier: MIT */
/* Coverage: what a run of the kernel tests has exercised on each calculator. */
#ifndef SDLF_TESTS_KERNEL_COVERAGE_H
#define SDLF_TESTS_KERNEL_COVERAGE_H

#include "check.h"

/* Print a line: what the calculator supports in this math mode, and what it does not. */
void kernel_summarize(const machine *m);

/* Check that every algorithm of that calculator has accepted a case in some math mode. Only kinds that had cases here
 * count; other processes cover the rest. Names the algorithms without a case. Skips the test if the calculator is not
 * available. */
void kernel_check_algorithms(const machine *machines, int count, const char *calculator);

/* Check that every fusion that a calculator declares, and that had cases here, has accepted one in some math
 * mode. */
void kernel_check_fusions(const machine *machines, int count);

#endif
