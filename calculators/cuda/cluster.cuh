/* SPDX-License-Identifier: MIT */
/* Sums that meet between the blocks of a cluster (compute capability 9.0; elsewhere none of this must be reached). */
#ifndef SDLF_CALCULATORS_CUDA_CLUSTER_CUH
#define SDLF_CALCULATORS_CUDA_CLUSTER_CUH

#include "calculators/cuda/launch.cuh"

static __device__ __forceinline__ float4 plus(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* A barrier of all threads of the cluster, in two parts: what a thread did before its arrival is there for those who have waited. Before a
 * block ends it must have waited for the others' last reads and writes of its memory. */
static __device__ __forceinline__ void arrive_at_cluster()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
#endif
}

/* The arrival of a thread that tells others only that it has read from them: it does not wait for what it wrote. Each number that it asked
 * for must have gone into something before. */
static __device__ __forceinline__ void arrive_having_read()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void wait_for_cluster()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void await_cluster()
{
    arrive_at_cluster();
    wait_for_cluster();
}

/* Where the same place of another block's shared memory is. */
static __device__ __forceinline__ uint32_t address_in(uint32_t mine, int block)
{
    uint32_t other = 0;
#if __CUDA_ARCH__ >= 900
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(mine), "r"(block));
#else
    (void)mine;
    (void)block;
#endif
    return other;
}

static __device__ __forceinline__ uint32_t address_in(const void *shared, int block)
{
    return address_in(static_cast<uint32_t>(__cvta_generic_to_shared(shared)), block);
}

/* Four numbers of another block. */
static __device__ __forceinline__ float4 read_other(uint32_t mine, int block)
{
    float4 four = {};
#if __CUDA_ARCH__ >= 900
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "r"(address_in(mine, block))
                 : "memory");
#else
    (void)address_in(mine, block);
#endif
    return four;
}

static __device__ __forceinline__ float4 read_other(const float *shared, int block)
{
    return read_other(static_cast<uint32_t>(__cvta_generic_to_shared(shared)), block);
}

/* Two numbers of another block. */
static __device__ __forceinline__ float2 read_other2(const float *shared, int block)
{
    float2 two = {};
#if __CUDA_ARCH__ >= 900
    asm volatile("ld.shared::cluster.v2.f32 {%0,%1}, [%2];"
                 : "=f"(two.x), "=f"(two.y)
                 : "r"(address_in(shared, block))
                 : "memory");
#else
    (void)address_in(shared, block);
#endif
    return two;
}

/* A number into another block's memory. */
static __device__ __forceinline__ void write_other(float *shared, int block, float number)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address_in(shared, block)), "f"(number) : "memory");
#else
    (void)number;
    (void)address_in(shared, block);
#endif
}

static __device__ __forceinline__ void write_other(double *shared, int block, double number)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(address_in(shared, block)), "d"(number) : "memory");
#else
    (void)number;
    (void)address_in(shared, block);
#endif
}

/* The same place's numbers of `count` blocks, added in order. */
static __device__ __forceinline__ float4 add_blocks(const float *shared, int count)
{
    float4 sum = read_other(shared, 0);
    for (int k = 1; k < count; k++) sum = plus(sum, read_other(shared, k));
    return sum;
}

#endif
