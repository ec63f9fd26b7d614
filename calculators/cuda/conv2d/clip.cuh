/* SPDX-License-Identifier: MIT */
/* Epilogues that clip, or do nothing: identity, relu and clip as one, so that a kernel with many results a thread has no choice to make
 * for each of them. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_CLIP_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_CLIP_CUH

#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/kernels.cuh"

/* Turn the activation into SDLF_CLIP, between infinite bounds if need be. False: it is another. */
static inline bool make_clip(sdlf_activation *activation)
{
    float low, high;
    if (!activation_range(activation, &low, &high)) return false;
    activation->low = low;
    activation->high = high;
    activation->function = SDLF_CLIP;
    return true;
}

/* CLIPS: make_clip said true. SiLU, which whole networks of depthwise convolutions have behind these, is no call. */
template <bool CLIPS, typename T>
static __device__ __forceinline__ T activate_known(const sdlf_activation &activation, T x)
{
    if constexpr (CLIPS) return clamp(x, T(activation.low), T(activation.high));
    return activation.function == SDLF_SILU ? x * sigmoid(x) : activate_by_call(activation, x);
}

#endif
