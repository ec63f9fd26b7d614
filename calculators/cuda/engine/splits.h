/* SPDX-License-Identifier: MIT */
/* The split-K reduction of a wgrad: the partial sums of all splits, added in order. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_SPLITS_H
#define SDLF_CALCULATORS_CUDA_ENGINE_SPLITS_H

#include "calculators/cuda/engine/pack.h"

/* from: (splits, filters, taps, packed) -> dw: (filters, channels, taps, pixels), float32; a tap's line is packed as `weights` says
 * (engine/pack.h). With several groups, a line has the channels of a block (engine/groups.h), and those of the filter's group are read. */
struct engine_splits {
    const float *from;
    float *dw;
    int splits, filters, taps;
    int packed; /* elements of a tap's line, a multiple of 4 */
    engine_lines weights;
    int group_filters, joined; /* filters per group, groups per block; 0 means 1 */
};

void engine_add_splits(const cuda_calculator *calculator, const engine_splits &sums);

#endif
