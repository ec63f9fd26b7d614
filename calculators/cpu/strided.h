/* SPDX-License-Identifier: MIT */
/* Iteration over several operands of one shape and arbitrary strides at once, row by row along the innermost axis,
 * after merging neighbouring axes that are contiguous with each other in every operand. */
#ifndef SDLF_CALCULATORS_CPU_STRIDED_H
#define SDLF_CALCULATORS_CPU_STRIDED_H

#include "calculators/cpu/cpu.h"

enum { CPU_STRIDED_OPERANDS = 5 };

typedef struct cpu_strided {
    int operands, rank; /* rank >= 1 */
    int64_t dim[SDLF_MAX_RANK];
    int64_t stride[CPU_STRIDED_OPERANDS][SDLF_MAX_RANK]; /* in elements */
} cpu_strided;

/* operand[0] is present and gives the shape; absent operands get strides of 0. */
cpu_strided cpu_strided_of(const sdlf_tensor *const *operand, int count);

/* The operand's stride within a row. */
static inline int64_t cpu_strided_step(const cpu_strided *strided, int operand)
{
    return strided->stride[operand][strided->rank - 1];
}

/* Processes `count` elements of a row; offset[k] is the first element of operand k, in elements from its data. */
typedef void cpu_strided_row(const void *context, const int64_t *offset, int64_t count);

/* Calls `row` for every row, or for pieces of long ones, on the calculator's threads. `exact` preserves denormals. */
void cpu_strided_run(const cpu_calculator *cpu, const cpu_strided *strided, cpu_strided_row *row, const void *context,
                     bool exact);

#endif
