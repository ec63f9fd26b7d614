/* SPDX-License-Identifier: MIT */
/* Options of the kinds that work along one axis: reductions, picking, resampling. <sdlf/operations/kinds.h> says what
 * the kinds do with them. Everywhere x is seen as (outer, L, inner), L being the axis that the options name.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked by what takes them. */
#ifndef SDLF_OPERATIONS_INDEXING_H
#define SDLF_OPERATIONS_INDEXING_H

#include <stdbool.h>
#include <stdint.h>

/* What `reduce` makes of the elements along its axis. */
typedef enum sdlf_reduction {
    SDLF_REDUCE_SUM,
    SDLF_REDUCE_MEAN,
    SDLF_REDUCE_MAX,
    SDLF_REDUCE_SUM_SQUARES,
    SDLF_REDUCE_MIN,
    SDLF_REDUCE_PRODUCT,
    SDLF_REDUCTION_COUNT
} sdlf_reduction;

typedef struct sdlf_arg_reduce_options {
    int axis;
    bool smallest; /* the smallest element instead of the largest */
    bool last;     /* of equal elements the last instead of the first */
} sdlf_arg_reduce_options;

typedef struct sdlf_top_k_options {
    int axis;
    bool smallest;
} sdlf_top_k_options;

/* What an output element j of an axis is made of. */
typedef enum sdlf_resample_mode {
    SDLF_RESAMPLE_NEAREST = 0, /* the element next to the coordinate */
    SDLF_RESAMPLE_LINEAR,      /* the two around it */
    SDLF_RESAMPLE_CUBIC,       /* the four around it, by Keys's kernel with the parameter cubic */
    SDLF_RESAMPLE_EDGE,        /* from here on: element j - before; beyond the ends, the last one again, */
    SDLF_RESAMPLE_REFLECT,     /* or back from the end, which is not repeated, */
    SDLF_RESAMPLE_WRAP,        /* or on from the other end */
    SDLF_RESAMPLE_MODE_COUNT
} sdlf_resample_mode;

/* The coordinate u in the input of element j of M, of an axis of L elements, stretched by s; of nearest in float32, else in float64. */
typedef enum sdlf_resample_coordinates {
    SDLF_COORDINATES_HALF_PIXEL = 0,       /* (j + 1/2) / s - 1/2 */
    SDLF_COORDINATES_ALIGN_CORNERS,        /* j (L - 1) / (M - 1); 0 if M = 1 */
    SDLF_COORDINATES_ASYMMETRIC,           /* j / s */
    SDLF_COORDINATES_PYTORCH_HALF_PIXEL,   /* half_pixel, but 0 if M = 1 */
    SDLF_COORDINATES_HALF_PIXEL_SYMMETRIC, /* half_pixel + L / 2 (1 - M / (s L)) */
    SDLF_COORDINATES_CROP,                 /* (start + j (end - start) / (M - 1)) (L - 1); the middle if M = 1 */
    SDLF_RESAMPLE_COORDINATES_COUNT
} sdlf_resample_coordinates;

/* Which element is nearest to u. */
typedef enum sdlf_resample_rounding {
    SDLF_ROUND_HALF_DOWN = 0,
    SDLF_ROUND_HALF_UP,
    SDLF_ROUND_DOWN,
    SDLF_ROUND_UP,
    SDLF_RESAMPLE_ROUNDING_COUNT
} sdlf_resample_rounding;

typedef struct sdlf_resample_options {
    int axis;
    sdlf_resample_mode mode;
    sdlf_resample_coordinates coordinates;
    sdlf_resample_rounding rounding; /* nearest */
    double scale;                    /* s > 0, of nearest, linear and cubic */
    float cubic;                     /* Keys's parameter, -0.5 or -0.75 */
    float start, end;                /* crop, as parts of the axis */
    float outside;                   /* where `extrapolates` and u lies outside of [0, L - 1] */
    bool extrapolates;               /* only floats */
    bool antialias;                  /* s < 1: linear and cubic weigh 1 / s times as many elements */
    bool exclude_outside;            /* elements beyond the ends have weight 0; else the last one stands for them */
    int64_t before;                  /* edge, reflect, wrap */
} sdlf_resample_options;

#endif
