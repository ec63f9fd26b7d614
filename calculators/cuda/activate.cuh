/* SPDX-License-Identifier: MIT */
/* Applies an activation to many elements: the function is dispatched once for all of them, so that their latencies overlap. The activations that
 * common networks use are inlined; each of the others is a function call. Results stored in 16 bits are approximated, with an absolute error of up
 * to 2e-7 |x|; GELU's small results at negative x therefore have a larger relative error. */
#ifndef SDLF_CALCULATORS_CUDA_ACTIVATE_CUH
#define SDLF_CALCULATORS_CUDA_ACTIVATE_CUH

#include "calculators/cuda/activation.cuh"
#include "calculators/cuda/nhwc/vector8.cuh"

/* exp(x), with a relative error of about (2 + |x|) 2^-24, and 1 / x, with one of 2^-23; subnormal numbers are flushed to zero. */
static __device__ __forceinline__ float quick_exp(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
}

static __device__ __forceinline__ float quick_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 1 / (1 + exp(-x)); T: the type in which the result is stored. */
template <typename T> static __device__ __forceinline__ float stored_sigmoid(float x)
{
    return sizeof(T) == 2 ? quick_reciprocal(1.0f + quick_exp(-x)) : sigmoid(x);
}

/* (1 + erf(x / sqrt(2))) / 2, the normal CDF, by Hastings' approximation of erf (Abramowitz and Stegun, 7.1.26). */
static __device__ __forceinline__ float quick_normal(float x)
{
    const float z = fabsf(x) * 0.70710678f, t = quick_reciprocal(fmaf(0.3275911f, z, 1.0f));
    float sum = fmaf(1.061405429f, t, -1.453152027f);
    sum = fmaf(sum, t, 1.421413741f);
    sum = fmaf(sum, t, -0.284496736f);
    sum = fmaf(sum, t, 0.254829592f) * t * quick_exp(-z * z); /* 1 - erf(z) */
    return 0.5f * (x < 0 ? sum : 2.0f - sum);
}

template <typename T> static __device__ __forceinline__ float stored_gelu(float x)
{
    return sizeof(T) == 2 ? x * quick_normal(x) : gelu(x);
}

template <typename T> static __device__ __forceinline__ float stored_gelu_slope(float x)
{
    return sizeof(T) == 2 ? fmaf(x * 0.39894228f, quick_exp(-0.5f * x * x), quick_normal(x)) : gelu_slope(x);
}

template <typename T> static __device__ __forceinline__ float stored_silu_slope(float x)
{
    const float s = stored_sigmoid<T>(x);
    return s * fmaf(x, 1.0f - s, 1.0f);
}

static __device__ __forceinline__ float hard_swish_slope(float x)
{
    return x <= -3 ? 0.0f : x >= 3 ? 1.0f : fmaf(x, 1.0f / 3, 0.5f);
}

/* True if with_inline_activation supports the activation. */
static inline bool is_inline_activation(const sdlf_activation &activation)
{
    return is_line_activation(activation) || activation.function == SDLF_SILU || activation.function == SDLF_SIGMOID ||
           activation.function == SDLF_GELU || activation.function == SDLF_HARD_SWISH;
}

/* True if with_inline_slope supports the activation: its slope is computed inline from the input. */
static __host__ __device__ inline bool has_inline_slope(const sdlf_activation &activation)
{
    return activation.function == SDLF_SILU || activation.function == SDLF_GELU ||
           activation.function == SDLF_HARD_SWISH;
}

/* Call use(f') for an activation that has_inline_slope accepts. */
template <typename T, typename Use>
static __device__ __forceinline__ void with_inline_slope(sdlf_activation_function function, Use use)
{
    switch (function) {
    case SDLF_SILU: use([](float x) { return stored_silu_slope<T>(x); }); break;
    case SDLF_GELU: use([](float x) { return stored_gelu_slope<T>(x); }); break;
    default: use([](float x) { return hard_swish_slope(x); });
    }
}

/* Call use(f) for an activation that is_inline_activation accepts; `line` is its piecewise linear form where it has one. Makes no function calls,
 * across which registers would be spilled. */
template <typename T, typename Use>
static __device__ __forceinline__ void with_inline_activation(sdlf_activation_function function,
                                                              const piecewise_linear_activation &line, Use use)
{
    switch (function) {
    case SDLF_SILU: use([](float x) { return x * stored_sigmoid<T>(x); }); break;
    case SDLF_SIGMOID: use([](float x) { return stored_sigmoid<T>(x); }); break;
    case SDLF_GELU: use([](float x) { return stored_gelu<T>(x); }); break;
    case SDLF_HARD_SWISH: use([](float x) { return x * clamp(fmaf(x, 1.0f / 6, 0.5f), 0.0f, 1.0f); }); break;
    default: use([&](float x) { return line.value(x); });
    }
}

/* Call use(f), f being the activation of a float32 value that will be stored as T. */
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
