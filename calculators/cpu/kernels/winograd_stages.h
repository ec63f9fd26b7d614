/* SPDX-License-Identifier: MIT */
/* The stages of a Winograd convolution and their shared state. See winograd.h. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_STAGES_H
#define SDLF_CALCULATORS_CPU_KERNELS_WINOGRAD_STAGES_H

#include "calculators/cpu/kernels/implicit_panels.h"
#include "calculators/cpu/kernels/winograd.h"
#include "calculators/cpu/kernels/winograd_transform.h"

enum { FETCH_TILES = 8 }; /* prefetch distance of images, in tiles */

typedef struct winograd {
    const convolution_forward *forward;
    int m, points;            /* outputs of a tile along an axis; (m + 2)^2 */
    int64_t rows, row, tiles; /* rows of tiles of an image; tiles of a row; all tiles of a group */
    int64_t channels;         /* of a group, in whole vectors */
    implicit_panels panels;
    int64_t run, runs;                 /* maximum tiles of a run; runs of a group's tiles */
    int64_t patch_step, product_step;  /* elements from one point to the next */
    int64_t patches_size, output_size; /* elements of each of the two buffers */
    const element *packed, *zeros;
    element *scratch;
    int64_t held[CPU_MAX_THREADS]; /* the run whose transformed input each thread holds */
} winograd;

/* Transforms the input of tiles [first, first + count) of a group; transforms a panel's products to outputs. */
void winograd_input_transform_cpu(const winograd *all, int64_t group, int64_t first, int64_t count,
                                  element *transformed);
void winograd_output_transform_cpu(const winograd *all, int64_t group, int64_t panel, int64_t first, int64_t count,
                                   const element *products);

/* The position of tile `index` of a group. */
typedef struct winograd_place {
    int64_t image, p, q; /* its first output */
} winograd_place;

static inline winograd_place winograd_at(const winograd *all, int64_t index)
{
    int64_t each = all->rows * all->row;
    return (winograd_place){index / each, index % each / all->row * all->m, index % all->row * all->m};
}

/* Advances to the next tile. */
static inline void winograd_next(const winograd *all, winograd_place *place)
{
    place->q += all->m;
    if (place->q < all->row * all->m) return;
    place->q = 0;
    place->p += all->m;
    if (place->p < all->rows * all->m) return;
    place->p = 0;
    place->image++;
}

/* Prefetches the m x m pixels of a later tile, for the first `count` channels from x on; images are (h,w,channels). The
 * pixels lie on as many cache lines as rows, which the hardware prefetcher does not follow. */
static inline __attribute__((always_inline)) void winograd_fetch(const winograd *all, const winograd_place *place,
                                                                 const element *x, int64_t h, int64_t w,
                                                                 int64_t channels, int64_t count, const int writes)
{
    const element *at = x + ((place->image * h + place->p) * w + place->q) * channels;
    for (int64_t r = 0; r < all->m; r++, at += w * channels) {
        for (int64_t s = 0; s < all->m; s++) {
            for (int64_t c = 0; c < count; c += LANES) {
                if (writes)
                    __builtin_prefetch(at + s * channels + c, 1);
                else
                    __builtin_prefetch(at + s * channels + c, 0);
            }
        }
    }
}

#endif
