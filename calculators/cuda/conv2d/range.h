/* SPDX-License-Identifier: MIT */
/* Activations that keep numbers within two bounds, and do no more: kernels with many results a thread have these as two numbers. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_RANGE_H
#define SDLF_CALCULATORS_CUDA_CONV2D_RANGE_H

#include <math.h>

#include <sdlf/operation.h>

/* The bounds, infinite where there are none. False: it is another activation. */
static inline bool activation_range(const sdlf_activation *activation, float *low, float *high)
{
    const bool clips = activation->function == SDLF_CLIP;
    *low = clips ? activation->low : activation->function == SDLF_RELU ? 0.0f : -INFINITY;
    *high = clips ? activation->high : INFINITY;
    return clips || activation->function == SDLF_IDENTITY || activation->function == SDLF_RELU;
}

#endif
