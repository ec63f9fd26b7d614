/* SPDX-License-Identifier: MIT */
/* Epilogues that clip or do nothing: identity, ReLU and clip are one case, so that a kernel with many results a thread
 * does not branch for each of them. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_CLIP_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_CLIP_CUH

#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/kernels.cuh"

/* Express the activation as SDLF_CLIP, with infinite bounds if need be. False: it is another activation. */
static inline bool make_clip(sdlf_activation *activation)
{
    float low, high;
    if (!activation_range(activation, &low, &high)) return false;
    activation->low = low;
    activation->high = high;
    activation->function = SDLF_CLIP;
    return true;
}

/* CLIPS: make_clip returned true. SiLU, common after depthwise convolutions, is inlined rather than called. */
template <bool CLIPS, typename T>
static __device__ __forceinline__ T activate_known(const sdlf_activation &activation, T x)
{
    if constexpr (CLIPS) return clamp(x, T(activation.low), T(activation.high));
    return activation.function == SDLF_SILU ? x * sigmoid(x) : activate_by_call(activation, x);
}

#endif
