/* SPDX-License-Identifier: MIT */
/* A case on one calculator in one math mode, held against what reference computed. */
#ifndef SDLF_TESTS_KERNEL_CHECK_H
#define SDLF_TESTS_KERNEL_CHECK_H

#include "kernels.h"

enum { THREAD_COUNTS = 3, KERNEL_ALGORITHMS = 32, KERNEL_FUSIONS = 16 };

typedef struct machine {
    const sdlf_calculator_class *type;
    sdlf_math math;
    sdlf_calculator
        *calculator[THREAD_COUNTS]; /* with 1, 2, 3 threads; a device two; one alone in another mode than fp32 */
    bool one_block;                 /* see kernel_case */
    double deadline;                /* of sdlf_clock: algorithms behind it are left out; 0: there is none */
    bool ran[SDLF_OPERATION_COUNT][KERNEL_ALGORITHMS];
    bool tried_fused[KERNEL_FUSIONS], ran_fused[KERNEL_FUSIONS]; /* by sdlf_fusion_at's numbers */
    int64_t runs, unsupported[SDLF_OPERATION_COUNT], cases[SDLF_OPERATION_COUNT];
} machine;

/* Run the case on the machine, with each algorithm that takes it; failures are counted (kernel_failures). `given` holds
 * its operands, `expected` its outputs. Where both are NULL, nothing is computed: it is noted which algorithms take the
 * case. */
void kernel_check_on(machine *machine, const kernel_case *described, const kernel_images *given,
                     const kernel_images *expected);

/* The number of an operation's fusion; -1: it is of another kind. */
int kernel_fusion(const sdlf_operation *operation);

/* Fusions that save nothing on a CPU: the plan then keeps the parts, all of which are there. */
bool kernel_may_stay_in_parts(const sdlf_operation *operation);

#endif
