/* The functions of two real numbers that `binary` has, but for comparisons. */
#ifndef SDLF_CALCULATORS_CUDA_ARITHMETIC_CUH
#define SDLF_CALCULATORS_CUDA_ARITHMETIC_CUH

#include "calculators/cuda/kernels.cuh"

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
    default: return a < T(0) ? b * a : a; /* prelu */
    }
}

#endif
