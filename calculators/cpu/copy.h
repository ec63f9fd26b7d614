/* SPDX-License-Identifier: MIT */
/* What parts of copy share: operands in the fewest dimensions that describe both. */
#ifndef SDLF_CALCULATORS_CPU_COPY_H
#define SDLF_CALCULATORS_CPU_COPY_H

#include "calculators/cpu/cpu.h"

typedef struct cpu_copy_context {
    sdlf_dtype from, to;
    const char *x;
    char *y;
    int rank;
    int64_t dim[SDLF_MAX_RANK], x_stride[SDLF_MAX_RANK], y_stride[SDLF_MAX_RANK]; /* strides in bytes */
    int64_t x_size, y_size;                                                       /* of an element */
    int64_t rows, rows_per_task;
} cpu_copy_context;

/* Are x and y, of one dtype, contiguous along different dimensions? */
bool cpu_copy_transposes(const cpu_copy_context *copy);

/* Copy these; `count` elements. */
void cpu_copy_transposed(const cpu_calculator *cpu, const cpu_copy_context *copy, int64_t count);

#endif
