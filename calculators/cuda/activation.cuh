/* SPDX-License-Identifier: MIT */
/* The derivative of an activation. */
#ifndef SDLF_CALCULATORS_CUDA_ACTIVATION_CUH
#define SDLF_CALCULATORS_CUDA_ACTIVATION_CUH

#include "calculators/cuda/kernels.cuh"

/* Slopes of the math library's functions, computed in float64 because squares of x may overflow. */
static __device__ __noinline__ double library_slope(sdlf_activation_function function, double x)
{
    switch (function) {
    case SDLF_SIN: return cos(x);
    case SDLF_COS: return -sin(x);
    case SDLF_ASIN: return 1 / sqrt((1 - x) * (1 + x));
    case SDLF_ACOS: return -1 / sqrt((1 - x) * (1 + x));
    case SDLF_ATAN: return 1 / (1 + x * x);
    case SDLF_SINH: return cosh(x);
    case SDLF_COSH: return sinh(x);
    case SDLF_ASINH: return 1 / sqrt(x * x + 1);
    case SDLF_ACOSH: return 1 / sqrt((x - 1) * (x + 1));
    case SDLF_ATANH: return 1 / ((1 - x) * (1 + x));
    default: return 1;
    }
}

template <typename T> static __device__ __forceinline__ T silu_slope(T x)
{
    const T s = sigmoid(x);
    return s * (T(1) + x * (T(1) - s));
}

template <typename T> static __device__ __forceinline__ T gelu_slope(T x)
{
    const T half = T(0.5), normal = T(0.39894228040143267794) * exp(-half * x * x); /* density */
    return half * (T(1) + erf(x * T(0.70710678118654752440))) + x * normal;
}

/* Functions that are rare in convolutional networks: not inlined, so that kernels do not pay for them in registers and code. */
template <typename T> static __device__ __noinline__ T activation_slope_rarely(sdlf_activation activation, T v)
{
    const T alpha = T(activation.alpha), beta = T(activation.beta), half = T(0.5);
    const T scale = T(0.79788456080286535588), cubic = T(0.044715); /* constants of gelu_tanh */
    T t;
    switch (activation.function) {
    case SDLF_CLIP: return v > T(activation.low) && v < T(activation.high) ? T(1) : T(0);
    case SDLF_LEAKY_RELU: return v > T(0) ? T(1) : T(activation.slope);
    case SDLF_SIGMOID: return v * (T(1) - v);
    case SDLF_TANH: return T(1) - v * v;
    case SDLF_SILU: return silu_slope(v);
    case SDLF_HARD_SWISH: return v <= T(-3) ? T(0) : v >= T(3) ? T(1) : v * T(1.0 / 3) + half;
    case SDLF_ELU: return v > T(0) ? T(1) : v + alpha;
    case SDLF_SELU: return v > T(0) ? beta : v + alpha * beta;
    case SDLF_CELU: return v > T(0) ? T(1) : v / alpha + T(1);
    case SDLF_GELU: return gelu_slope(v);
    case SDLF_GELU_TANH:
        v = v < T(-30) ? T(-30) : v > T(30) ? T(30) : v; /* beyond, the slope is 0 or 1; NaN stays */
        t = tanh(scale * (v + cubic * v * v * v));
        return half * (T(1) + t) + half * v * (T(1) - t * t) * scale * (T(1) + T(3) * cubic * v * v);
    case SDLF_MISH: t = tanh(v > T(0) ? v + log1p(exp(-v)) : log1p(exp(v))); return t + v * (T(1) - t * t) * sigmoid(v);
    case SDLF_SOFTPLUS: return T(1) - exp(-v);
    case SDLF_SOFTSIGN: t = T(1) - fabs(v); return t * t;
    case SDLF_HARD_SIGMOID: return v > T(0) && v < T(1) ? alpha : T(0);
    case SDLF_ERF: return T(1.12837916709551257390) * exp(-v * v);
    case SDLF_SQRT: return T(1) / (T(2) * v);
    case SDLF_EXP: return v;
    case SDLF_LOG: return T(1) / v;
    case SDLF_ABS: return v > T(0) ? T(1) : v < T(0) ? T(-1) : T(0);
    case SDLF_NEGATE: return T(-1);
    case SDLF_RECIPROCAL: return -v * v;
    case SDLF_TAN: return T(1) + v * v;
    case SDLF_FLOOR:
    case SDLF_CEIL:
    case SDLF_ROUND:
    case SDLF_SIGN: return T(0);
    case SDLF_IDENTITY: return T(1);
    default: return T(library_slope(activation.function, double(v)));
    }
}

/* f'(x) from v, which is y = f(x), or x for functions whose derivative reads the input (sdlf_activation_reads_input). */
template <typename T> static __device__ __forceinline__ T activation_slope(const sdlf_activation &activation, T v)
{
    if (activation.function == SDLF_IDENTITY) return T(1);
    if (activation.function == SDLF_RELU) return v > T(0) ? T(1) : T(0);
    return activation_slope_rarely(activation, v);
}

#endif
