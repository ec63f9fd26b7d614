/* SPDX-License-Identifier: MIT */
/* What a run of the kernel tests has tried of a calculator. */
#ifndef SDLF_TESTS_KERNEL_COVERAGE_H
#define SDLF_TESTS_KERNEL_COVERAGE_H

#include "check.h"

/* Print a line: what the calculator has in this math mode, and what it has not. */
void kernel_summarize(const machine *m);

/* Has every algorithm of that calculator taken a case, in one math mode or another? Of kinds that had cases here; the
 * others are other processes'. Counts checks, and names what took none. Skips the test where the calculator is not
 * here. */
void kernel_check_algorithms(const machine *machines, int count, const char *calculator);

/* Has every fusion that a calculator declares, of those that had cases here, taken one there, in one math mode or
 * another? */
void kernel_check_fusions(const machine *machines, int count);

#endif
