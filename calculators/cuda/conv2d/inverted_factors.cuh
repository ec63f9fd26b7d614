/* SPDX-License-Identifier: MIT */
/* Inverted residual blocks (inverted.cuh): the problem, and factors of products as each math mode has them, 8 bytes of a row. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_INVERTED_FACTORS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_INVERTED_FACTORS_CUH

#include "calculators/cuda/conv2d/inverted.h"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/mma.cuh"

enum { INVERTED_ACROSS = 2 }; /* tiles of 8 pixels that a warp makes side by side */
enum { INVERTED_WARP = 32, INVERTED_TILE = 512, INVERTED_ROW = 32, INVERTED_ROWS = 8 * INVERTED_ROW };

struct inverted_problem {
    cuda_inverted p;
    divider<int32_t> width, strips, tiles_in, groups_in, groups_out, quads, pairs;
};

/* ---- factors: 8 bytes of a row ---- */

struct inverted_fp16 {
    static constexpr int DEEP = 16, SLOT = 4, BYTES = 2;

    static __device__ __forceinline__ uint2 slot(const float (&v)[SLOT])
    {
        const __half2 low = __floats2half2_rn(v[0], v[1]), high = __floats2half2_rn(v[2], v[3]);
        return make_uint2(reinterpret_cast<const uint32_t &>(low), reinterpret_cast<const uint32_t &>(high));
    }

    static __device__ __forceinline__ void keep_two(char *to, float a, float b)
    {
        *reinterpret_cast<__half2 *>(to) = __floats2half2_rn(a, b);
    }

    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_fp16(c, a, b);
    }
};

struct inverted_bf16 {
    static constexpr int DEEP = 16, SLOT = 4, BYTES = 2;

    static __device__ __forceinline__ uint2 slot(const float (&v)[SLOT])
    {
        const __nv_bfloat162 low = __floats2bfloat162_rn(v[0], v[1]), high = __floats2bfloat162_rn(v[2], v[3]);
        return make_uint2(reinterpret_cast<const uint32_t &>(low), reinterpret_cast<const uint32_t &>(high));
    }

    static __device__ __forceinline__ void keep_two(char *to, float a, float b)
    {
        *reinterpret_cast<__nv_bfloat162 *>(to) = __floats2bfloat162_rn(a, b);
    }

    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_bf16(c, a, b);
    }
};

struct inverted_tf32 {
    static constexpr int DEEP = 8, SLOT = 2, BYTES = 4;

    static __device__ __forceinline__ uint2 slot(const float (&v)[SLOT])
    {
        return make_uint2(factor_bits<SDLF_MATH_TF32>(v[0]), factor_bits<SDLF_MATH_TF32>(v[1]));
    }

    static __device__ __forceinline__ void keep_two(char *to, float a, float b)
    {
        const float v[2] = {a, b};
        *reinterpret_cast<uint2 *>(to) = slot(v);
    }

    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_tf32(c, a, b);
    }
};

static __device__ __forceinline__ float inverted_within(float x, float low, float high)
{
#if __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(low));
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(high));
#endif
    return x;
}

#endif
