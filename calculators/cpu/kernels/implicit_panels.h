/* SPDX-License-Identifier: MIT */
/* The partition of weights into panels for implicit GEMM (implicit.h): a task iterates over all taps of a panel of up
 * to PANEL_VECTORS vectors of filters. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_PANELS_H
#define SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_PANELS_H

#include "calculators/cpu/kernels/convolution.h"
#include "calculators/cpu/kernels/implicit_tile.h"

/* Merges groups of few filters into fewer groups, each with a vector of filters. Weights between a filter and another
 * group's channels are zeros. Vector multiply-adds do not increase, runs get longer, and outputs are whole vectors. */
convolution implicit_joined_cpu(const convolution *v);

/* The vectors of a group's filters, distributed evenly over as few panels as hold them. */
typedef struct implicit_panels {
    int64_t vectors, count;
} implicit_panels;

static inline implicit_panels implicit_panels_of(const convolution *v)
{
    int64_t vectors = cpu_divide_up(v->k, LANES);
    return (implicit_panels){vectors, cpu_divide_up(vectors, PANEL_VECTORS)};
}

/* The first vector of panel `index`; for `index` = count, the total number of vectors. */
static inline int64_t implicit_panel_start(const implicit_panels *p, int64_t index)
{
    return index * p->vectors / p->count;
}

#endif
