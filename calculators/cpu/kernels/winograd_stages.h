/* SPDX-License-Identifier: MIT */
/* The stages of a Winograd convolution and what they share. See winograd.h. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_STAGES_H
#define SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_STAGES_H

#include "calculators/cpu/kernels/implicit_panels.h"
#include "calculators/cpu/kernels/winograd.h"
#include "calculators/cpu/kernels/winograd_transform.h"

typedef struct winograd {
    const convolution_forward *forward;
    int m, points;            /* outputs of a tile along an axis; (m + 2)^2 */
    int64_t rows, row, tiles; /* rows of tiles of an image, tiles of a row, all tiles of a group */
    int64_t channels;         /* of a group, in whole vectors */
    implicit_panels panels;
    int64_t run, runs;                 /* tiles of a run, at most; runs of a group's tiles */
    int64_t patch_step, product_step;  /* from one point to the next */
    int64_t patches_size, output_size; /* elements of each of the two */
    const element *packed, *zeros;
    element *scratch;
    int64_t held[CPU_MAX_THREADS]; /* the run whose patches each thread has */
} winograd;

/* Tiles [first, first + count) of a group into patches; a panel's products of these into outputs. */
void winograd_patches_cpu(const winograd *all, int64_t group, int64_t first, int64_t count, element *transformed);
void winograd_outputs_cpu(const winograd *all, int64_t group, int64_t panel, int64_t first, int64_t count,
                          const element *products);

/* Where tile `index` of a group lies. */
typedef struct winograd_place {
    int64_t image, p, q; /* its first output */
} winograd_place;

static inline winograd_place winograd_at(const winograd *all, int64_t index)
{
    int64_t each = all->rows * all->row;
    return (winograd_place){index / each, index % each / all->row * all->m, index % all->row * all->m};
}

#endif
