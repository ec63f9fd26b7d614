/* SPDX-License-Identifier: MIT */
/* What the kernels of conv2d_relu_max_pool_forward share: their operands, and pooling the four elements of a window. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POOL_FORWARD_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POOL_FORWARD_CUH

#include "calculators/cuda/conv2d_pool/conv2d_pool.cuh"
#include "calculators/cuda/launch.cuh"

template <typename T> struct pool_forward {
    const T *x, *w, *bias;
    T *y;
    uint8_t *mask;
    pool_geometry g;
};

/* The larger one; NaN propagates. */
static __device__ __forceinline__ float larger(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return a > b || a != a ? a : b;
#endif
}

static __device__ __forceinline__ double larger(double a, double b)
{
    return a > b || a != a ? a : b;
}

/* The maximum of four convolution outputs and 0; marks: those that attain it. */
template <typename T> static __device__ __forceinline__ T pool_four(const T *four, bool first_alone, unsigned &marks)
{
    T largest = larger(larger(four[0], four[1]), larger(four[2], four[3]));
    marks = 0;
    if (!(largest > T(0))) return largest != largest ? largest : T(0);
#pragma unroll
    for (int i = 0; i < 4; i++) marks |= four[i] == largest ? 1u << i : 0u;
    if (first_alone) marks &= 0u - marks;
    return largest;
}

/* True if the tensor-core kernel is wanted and supports the problem: few taps (first); small images (sliced). */
bool cuda_conv2d_pool_forward_first_suits(const cuda_calculator *calculator, const pool_geometry &g, int side);
sdlf_status cuda_conv2d_pool_forward_first(const cuda_calculator *calculator, const pool_forward<float> &p, int side);
bool cuda_conv2d_pool_forward_sliced_suits(const cuda_calculator *calculator, const pool_geometry &g, int side);
sdlf_status cuda_conv2d_pool_forward_sliced(const cuda_calculator *calculator, const pool_forward<float> &p, int side);

#endif
