/* SPDX-License-Identifier: MIT */
/* What the parts of copy share: operands described in the fewest dimensions that fit both. */
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

/* True if x and y, which have one dtype, are contiguous along different dimensions. */
bool cpu_copy_transposes(const cpu_copy_context *copy);

/* Copies such operands, of `count` elements, by transposing blocks. */
void cpu_copy_transposed(const cpu_calculator *cpu, const cpu_copy_context *copy, int64_t count);

#endif
