/* SPDX-License-Identifier: MIT */
/* The end of split-K gradients by weights: the sums of all splits, added in order. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_SPLITS_H
#define SDLF_CALCULATORS_CUDA_ENGINE_SPLITS_H

#include "calculators/cuda/engine/pack.h"

/* from: (splits, filters, taps, packed) -> dw: (filters, channels, taps, pixels), float32: a tap's line is packed as `weights` says
 * (engine/pack.h). Of several groups a line has the channels of a block (engine/groups.h), of which the filter's group is read. */
struct engine_splits {
    const float *from;
    float *dw;
    int splits, filters, taps;
    int packed; /* elements of a tap's line, a multiple of 4 */
    engine_lines weights;
    int group_filters, joined; /* filters of a group, groups of a block; 0 as 1 */
};

void engine_add_splits(const cuda_calculator *calculator, const engine_splits &sums);

#endif
