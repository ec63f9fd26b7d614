/* SPDX-License-Identifier: MIT */
/* Implicit GEMM (implicit.h) in which a row of the window is one run: the image is copied with its padding, one plane
 * for each group, so that the channels which a row of the window reads are contiguous. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_ROWS_H
#define SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_ROWS_H

#include "calculators/cpu/kernels/convolution.h"

/* The extent of the image that windows reach, padding included. */
static inline int64_t implicit_reached(const convolution *v, int axis)
{
    int64_t outputs = axis == 0 ? v->p : v->q, window = axis == 0 ? v->r : v->s;
    return (outputs - 1) * v->stride[axis] + (window - 1) * v->dilation[axis] + 1;
}

static inline bool implicit_has_padding(const convolution *v)
{
    return v->before[0] != 0 || v->before[1] != 0 || implicit_reached(v, 0) > v->h || implicit_reached(v, 1) > v->w;
}

/* True if the runs are rows of the window. v is the merged convolution (implicit_joined_cpu). */
bool implicit_takes_rows_cpu(const convolution *v);

/* In that case: true if a copy is read (for padding, row-major images, and groups, each in an image of its own). */
bool implicit_copies_cpu(const convolution *v, bool row_major);

/* Copies the part of x that windows reach, as (N,G,height,width,C). */
void implicit_copy_cpu(const cpu_calculator *cpu, const convolution *v, const element *x, element *to, bool row_major);

#endif
