/* SPDX-License-Identifier: MIT */
/* Tiled convolution: the rectangle of pixels that a block computes at a time. For C and for CUDA C. */
#ifndef SDLF_LAB_CONV2D_TILED_H
#define SDLF_LAB_CONV2D_TILED_H

#include "calculators/cuda/conv2d/implicit.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILED_THREADS = 256, TILED_FILTERS = 32, TILED_TAPS = 64, TILED_PIXELS = 256, TILED_BYTES = 48 << 10 };

typedef struct lab_tiled {
    int height, width;                /* of the rectangle, in pixels of the result (of dy in backward weights) */
    int down, across;                 /* rectangles that cover an image (or its largest phase) */
    int image_numbers, other_numbers; /* elements of shared memory: image with halo, all channels held; weights or dy */
} lab_tiled;

static inline int64_t lab_tiled_blocks(const cuda_implicit *p, const lab_tiled *t, int64_t batch)
{
    if (p->weights) return (int64_t)p->row_tiles * p->column_tiles * p->groups * p->splits;
    return (int64_t)t->down * t->across * p->row_tiles * p->phases[0] * p->phases[1] * p->groups * batch;
}

/* Launch the kernel; in backward weights with several parts, the caller adds them afterwards. */
sdlf_status lab_tiled_run(sdlf_calculator *calculator, const cuda_implicit *problem, const lab_tiled *tiled,
                          sdlf_dtype dtype, int64_t batch);

#ifdef __cplusplus
}
#endif
#endif
