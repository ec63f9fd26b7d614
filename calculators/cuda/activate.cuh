/* SPDX-License-Identifier: MIT */
/* Activations of many numbers at a time: what function it is, is asked once for all of them, so that they hide each other's latencies. Those that
 * whole networks are made of are in line; the others are a call each. Results that are stored in 16 bits are approximated, with an absolute error of
 * up to 2e-7 |x|, so that GELU's small results of negative x have a larger relative one. */
#ifndef SDLF_CALCULATORS_CUDA_ACTIVATE_CUH
#define SDLF_CALCULATORS_CUDA_ACTIVATE_CUH

#include "calculators/cuda/kernels.cuh"

/* 1 / (1 + exp(-x)); T: what the result is stored in. */
template <typename T> static __device__ __forceinline__ float stored_sigmoid(float x)
{
    return sizeof(T) == 2 ? __fdividef(1.0f, 1.0f + __expf(-x)) : sigmoid(x);
}

/* x/2 (1 + erf(x / sqrt(2))); in 16 bits by Hastings' approximation of erf (Abramowitz and Stegun, 7.1.26). */
template <typename T> static __device__ __forceinline__ float stored_gelu(float x)
{
    if (sizeof(T) != 2) return gelu(x);
    const float z = fabsf(x) * 0.70710678f, t = __fdividef(1.0f, fmaf(0.3275911f, z, 1.0f));
    float sum = fmaf(1.061405429f, t, -1.453152027f);
    sum = fmaf(sum, t, 1.421413741f);
    sum = fmaf(sum, t, -0.284496736f);
    sum = fmaf(sum, t, 0.254829592f) * t * __expf(-z * z); /* 1 - erf(z) */
    return 0.5f * x * (x < 0 ? sum : 2.0f - sum);
}

/* Call use(f), f being the activation of a float32 that will be stored as T. */
template <typename T, typename Use>
static __device__ __forceinline__ void with_activation(const sdlf_activation &activation, Use use)
{
    switch (activation.function) {
    case SDLF_IDENTITY: use([](float x) { return x; }); break;
    case SDLF_SILU: use([](float x) { return x * stored_sigmoid<T>(x); }); break;
    case SDLF_SIGMOID: use([](float x) { return stored_sigmoid<T>(x); }); break;
    case SDLF_GELU: use([](float x) { return stored_gelu<T>(x); }); break;
    case SDLF_HARD_SWISH: use([](float x) { return x * clamp(fmaf(x, 1.0f / 6, 0.5f), 0.0f, 1.0f); }); break;
    default: use([&](float x) { return activate_often(activation, x); });
    }
}

#endif
