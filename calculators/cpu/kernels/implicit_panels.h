/* SPDX-License-Identifier: MIT */
/* How weights are cut into panels for implicit GEMM (implicit.h): each of up to PANEL_VECTORS vectors of filters, which a task walks
 * with all of a window's taps. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_PANELS_H
#define SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_PANELS_H

#include "calculators/cpu/kernels/convolution.h"
#include "calculators/cpu/kernels/implicit_tile.h"

/* Groups of few filters as fewer groups: as many together as one vector holds filters of. Weights between a filter and the channels of
 * another group are zeros. That takes no more multiply-adds of vectors, longer runs, and results that are whole vectors. */
convolution implicit_joined_cpu(const convolution *v);

/* The vectors of a group's filters, spread evenly over as few panels as hold them. */
typedef struct implicit_panels {
    int64_t vectors, count;
} implicit_panels;

static inline implicit_panels implicit_panels_of(const convolution *v)
{
    int64_t vectors = cpu_divide_up(v->k, LANES);
    return (implicit_panels){vectors, cpu_divide_up(vectors, PANEL_VECTORS)};
}

/* The first vector of panel `index`; of panel `count`, the number of all. */
static inline int64_t implicit_panel_start(const implicit_panels *p, int64_t index)
{
    return index * p->vectors / p->count;
}

#endif
