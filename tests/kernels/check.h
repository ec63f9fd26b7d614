/* SPDX-License-Identifier: MIT */
/* Running a case on one calculator in one math mode and comparing it with the result of reference. */
#ifndef SDLF_TESTS_KERNEL_CHECK_H
#define SDLF_TESTS_KERNEL_CHECK_H

#include "kernels.h"

enum { THREAD_COUNTS = 3, KERNEL_ALGORITHMS = 32, KERNEL_FUSIONS = 16 };

typedef struct machine {
    const sdlf_calculator_class *type;
    sdlf_math math;
    sdlf_calculator
        *calculator[THREAD_COUNTS]; /* with 1, 2, 3 threads; a device: two; only one in modes other than fp32 */
    bool one_block;                 /* see kernel_case */
    double deadline;                /* of sdlf_clock: algorithms after it are skipped; 0: no deadline */
    bool ran[SDLF_OPERATION_COUNT][KERNEL_ALGORITHMS];
    bool tried_fused[KERNEL_FUSIONS], ran_fused[KERNEL_FUSIONS]; /* by sdlf_fusion_at's numbers */
    int64_t runs, unsupported[SDLF_OPERATION_COUNT], cases[SDLF_OPERATION_COUNT];
} machine;

/* Run the case on the machine with each algorithm that accepts it; failures are counted (kernel_failures). `given` is
 * its operands, `expected` its outputs. If both are NULL, nothing is computed; only the algorithms that accept the case
 * are recorded. */
void kernel_check_on(machine *machine, const kernel_case *described, const kernel_images *given,
                     const kernel_images *expected);

/* The index of an operation's fusion; -1: it is not a fusion. */
int kernel_fusion(const sdlf_operation *operation);

/* True for fusions that save nothing on a CPU: the plan may then keep the parts, all of which exist. */
bool kernel_may_stay_in_parts(const sdlf_operation *operation);

#endif
