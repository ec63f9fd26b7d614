/* SPDX-License-Identifier: MIT */
/* Options of the kinds that operate along one axis: reductions, indexing, resampling. <sdlf/operations/kinds.h> has the
 * contracts of these kinds. x is viewed as (outer, L, inner), where L is the axis that the options name.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked where the options are used. */
#ifndef SDLF_OPERATIONS_INDEXING_H
#define SDLF_OPERATIONS_INDEXING_H

#include <stdbool.h>
#include <stdint.h>

/* How `reduce` combines the elements along its axis. */
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
    bool last;     /* of equal elements, the last instead of the first */
} sdlf_arg_reduce_options;

typedef struct sdlf_top_k_options {
    int axis;
    bool smallest;
} sdlf_top_k_options;

/* How output element j of an axis is computed. */
typedef enum sdlf_resample_mode {
    SDLF_RESAMPLE_NEAREST = 0, /* the element nearest to the coordinate */
    SDLF_RESAMPLE_LINEAR,      /* the two around it */
    SDLF_RESAMPLE_CUBIC,       /* the four around it, with Keys's kernel and its parameter `cubic` */
    SDLF_RESAMPLE_EDGE,        /* from here on: element j - before; beyond the ends the edge element is repeated, */
    SDLF_RESAMPLE_REFLECT,     /* or the axis is mirrored at the edge element, which is not repeated, */
    SDLF_RESAMPLE_WRAP,        /* or it continues from the other end */
    SDLF_RESAMPLE_MODE_COUNT
} sdlf_resample_mode;

/* The input coordinate u of output element j of M; L input elements, scale s. Float32 for nearest, else float64. */
typedef enum sdlf_resample_coordinates {
    SDLF_COORDINATES_HALF_PIXEL = 0,       /* (j + 1/2) / s - 1/2 */
    SDLF_COORDINATES_ALIGN_CORNERS,        /* j (L - 1) / (M - 1); 0 if M = 1 */
    SDLF_COORDINATES_ASYMMETRIC,           /* j / s */
    SDLF_COORDINATES_PYTORCH_HALF_PIXEL,   /* half_pixel, but 0 if M = 1 */
    SDLF_COORDINATES_HALF_PIXEL_SYMMETRIC, /* half_pixel + L / 2 (1 - M / (s L)) */
    SDLF_COORDINATES_CROP,                 /* (start + j (end - start) / (M - 1)) (L - 1); the middle if M = 1 */
    SDLF_RESAMPLE_COORDINATES_COUNT
} sdlf_resample_coordinates;

/* How u is rounded to the nearest element. */
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
    sdlf_resample_rounding rounding; /* for nearest */
    double scale;                    /* s > 0, for nearest, linear and cubic */
    float cubic;                     /* Keys's parameter, -0.5 or -0.75 */
    float start, end;                /* crop, as fractions of the axis */
    float outside;                   /* the value if `extrapolates` and u is outside [0, L - 1] */
    bool extrapolates;               /* only for floats */
    bool antialias;                  /* s < 1: linear and cubic weight 1 / s times as many elements */
    bool exclude_outside;            /* elements beyond the ends have weight 0; else the edge element replaces them */
    int64_t before;                  /* for edge, reflect and wrap */
} sdlf_resample_options;

#endif
