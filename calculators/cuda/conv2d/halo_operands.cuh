/* SPDX-License-Identifier: MIT */
/* Operands of the kernels of conv2d/halo.h: conversion and mma in each math mode, loads from shared memory, and the
 * split-K reduction over a cluster. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO_OPERANDS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO_OPERANDS_CUH

#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/conv2d/halo.h"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

/* ---- shared memory ---- */

static __device__ __forceinline__ uint32_t halo_address(const void *shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

/* ldmatrix of four 8 x 8 matrices of 16-bit elements, or 8 x 4 of words: lane l addresses row l % 8 of matrix l / 8. */
static __device__ __forceinline__ void halo_read_matrices(uint32_t (&to)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ float4 halo_read_four(uint32_t address)
{
    float4 four;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "r"(address)
                 : "memory");
    return four;
}

/* The swizzle of a pixel's chunks: what their indices are XORed with. */
static __device__ __forceinline__ int halo_spread(int pixel)
{
    return (pixel & 1) << 2 | (pixel >> 1 & 3);
}

/* ---- operands ---- */

struct halo_tf32 {
    static constexpr sdlf_math MATH = SDLF_MATH_TF32;
    static constexpr int BYTES = 4, DEPTH = 8; /* bytes of a weight; K of one mma */
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_tf32(c, a, b);
    }
    static __device__ __forceinline__ uint32_t weight(float x)
    {
        return operand_bits<SDLF_MATH_TF32>(x);
    }
};

struct halo_fp16 {
    static constexpr sdlf_math MATH = SDLF_MATH_FP16;
    static constexpr int BYTES = 2, DEPTH = 16;
    static __device__ __forceinline__ uint32_t pair(float low, float high)
    {
        __half2 both = __floats2half2_rn(low, high);
        return *reinterpret_cast<uint32_t *>(&both);
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_fp16(c, a, b);
    }
    static __device__ __forceinline__ uint16_t weight(float x)
    {
        return static_cast<uint16_t>(pair(x, 0));
    }
};

struct halo_bf16 {
    static constexpr sdlf_math MATH = SDLF_MATH_BF16;
    static constexpr int BYTES = 2, DEPTH = 16;
    static __device__ __forceinline__ uint32_t pair(float low, float high)
    {
        __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
        return *reinterpret_cast<uint32_t *>(&both);
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
    {
        mma_bf16(c, a, b);
    }
    static __device__ __forceinline__ uint16_t weight(float x)
    {
        return static_cast<uint16_t>(pair(x, 0));
    }
};

/* ---- a block's and a cluster's parts ---- */

/* Wait until the last k-step's operands are read: a block's sums may then overwrite them. For all THREADS threads, at different
 * places of the code; producer warps take part because racecheck reports hazards where warps pass different numbers of barriers. */
template <int THREADS> static __device__ __forceinline__ void halo_await_reads()
{
    asm volatile("barrier.sync 15, %0;" ::"n"(THREADS) : "memory");
}

/* Sum four floats at the same address of each block of a cluster, MOST at most, in rank order. All loads are issued before the first is awaited. */
template <int MOST = HALO_SPLITS> static __device__ __forceinline__ float4 halo_sum_parts(uint32_t address, int count)
{
    if (count == 1) return halo_read_four(address);
    float4 part[MOST], total = {0, 0, 0, 0};
#pragma unroll
    for (int rank = 0; rank < MOST; rank++) part[rank] = rank < count ? dsmem_load(address, rank) : total;
#pragma unroll
    for (int rank = 0; rank < MOST; rank++) {
        total.x += part[rank].x;
        total.y += part[rank].y;
        total.z += part[rank].z;
        total.w += part[rank].w;
    }
    return total;
}

#endif
