/* SPDX-License-Identifier: MIT */
/* The end of split-K gradients by weights: the sums of all splits, added in order. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_SPLITS_H
#define SDLF_CALCULATORS_CUDA_ENGINE_SPLITS_H

#include "calculators/cuda/cuda.h"

/* from: (splits, filters, taps, packed) -> dw: (filters, channels, taps), float32. Of an unfolded image (engine/pack.h) there is one tap, whose
 * channels are (R S, folded), and dw is (filters, folded, R S). */
struct engine_splits {
    const float *from;
    float *dw;
    int splits, filters, taps;
    int packed, channels; /* in a tap, a multiple of 4; of these, those that dw has */
    int folded;           /* 0: the image is none */
};

void engine_add_splits(const cuda_calculator *calculator, const engine_splits &sums);

#endif
