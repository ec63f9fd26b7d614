/* SPDX-License-Identifier: MIT */
/* How weights are cut into panels for implicit GEMM (implicit.h): each of up to PANEL_VECTORS vectors of filters, which a task walks
 * with all of a window's taps. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_PANELS_H
#define SDLF_CALCULATORS_CPU_KERNELS_IMPLICIT_PANELS_H

#include "calculators/cpu/kernels/convolution.h"
#include "calculators/cpu/kernels/implicit_tile.h"

/* The convolution that is computed, of the same x and y.
 *
 * Groups of few filters are fewer groups: as many together as one vector holds filters of. Weights between a filter and the channels of
 * another group are zeros. That takes no more multiply-adds of vectors, longer runs, and results that are whole vectors.
 *
 * Few filters without groups, of which a vector would hold several times as many, are those of neighbouring pixels of a row, which lie side
 * by side in y: of m pixels, as filters with a window of s + (m - 1) strides, and zeros for what a pixel does not reach. m divides
 * rows of y, and makes the multiply-adds of vectors the fewest. 3 filters of 3x3: 5 pixels, 7 columns for 5 times 3. */
convolution implicit_joined_cpu(const convolution *v);

/* The m of above; 1: each pixel by itself. */
static inline int64_t implicit_pixels(const convolution *v, const convolution *joined)
{
    return joined->q > 0 ? v->q / joined->q : 1;
}

enum { MOST_RUNS = 128 }; /* windows of more positions go elsewhere */

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
