/* SPDX-License-Identifier: MIT */
/* The binary functions of `binary` on real numbers, except for comparisons. */
#ifndef SDLF_CALCULATORS_CUDA_ARITHMETIC_CUH
#define SDLF_CALCULATORS_CUDA_ARITHMETIC_CUH

#include "calculators/cuda/kernels.cuh"

/* a - b floor(a / b): the remainder with the sign of b. */
template <typename T> static __device__ T modulo(T a, T b)
{
    const T rest = fmod(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}

template <typename T> static __device__ T arithmetic(sdlf_binary_function function, T a, T b)
{
    switch (function) {
    case SDLF_BINARY_ADD: return a + b;
    case SDLF_BINARY_SUBTRACT: return a - b;
    case SDLF_BINARY_MULTIPLY: return a * b;
    case SDLF_BINARY_DIVIDE: return a / b;
    case SDLF_BINARY_POWER: return pow(a, b);
    case SDLF_BINARY_MINIMUM: return a < b || a != a ? a : b;
    case SDLF_BINARY_MAXIMUM: return a > b || a != a ? a : b;
    case SDLF_BINARY_PRELU: return a < T(0) ? b * a : a;
    case SDLF_BINARY_REMAINDER: return fmod(a, b);
    default: return modulo(a, b);
    }
}

#endif
