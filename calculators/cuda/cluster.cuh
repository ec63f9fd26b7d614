/* SPDX-License-Identifier: MIT */
/* Cluster barriers and distributed shared memory, for reductions over a cluster (compute capability 9.0; must not be reached elsewhere). */
#ifndef SDLF_CALCULATORS_CUDA_CLUSTER_CUH
#define SDLF_CALCULATORS_CUDA_CLUSTER_CUH

#include "calculators/cuda/launch.cuh"

static __device__ __forceinline__ float4 plus(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* A barrier over all threads of the cluster, split into arrive and wait: what a thread did before it arrived is visible to those that have
 * waited. A block must not exit before it has waited for the other blocks' last reads and writes of its shared memory. */
static __device__ __forceinline__ void arrive_at_cluster()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
#endif
}

/* A relaxed arrival, which only tells the other blocks that this thread has finished reading from them: it does not order its writes.
 * Every value that it loaded must have been used before. */
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

static __device__ __forceinline__ void cluster_sync()
{
    arrive_at_cluster();
    wait_for_cluster();
}

/* The address of the same offset in another block's shared memory. */
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

/* Load four values from another block's shared memory. */
static __device__ __forceinline__ float4 dsmem_load(uint32_t mine, int block)
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

static __device__ __forceinline__ float4 dsmem_load(const float *shared, int block)
{
    return dsmem_load(static_cast<uint32_t>(__cvta_generic_to_shared(shared)), block);
}

/* Load two values from another block's shared memory. */
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

/* Store a value in another block's shared memory. */
static __device__ __forceinline__ void dsmem_store(float *shared, int block, float number)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address_in(shared, block)), "f"(number) : "memory");
#else
    (void)number;
    (void)address_in(shared, block);
#endif
}

static __device__ __forceinline__ void dsmem_store(double *shared, int block, double number)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(address_in(shared, block)), "d"(number) : "memory");
#else
    (void)number;
    (void)address_in(shared, block);
#endif
}

/* The sum of the values at the same offset in `count` blocks, added in order. */
static __device__ __forceinline__ float4 add_blocks(const float *shared, int count)
{
    float4 sum = dsmem_load(shared, 0);
    for (int k = 1; k < count; k++) sum = plus(sum, dsmem_load(shared, k));
    return sum;
}

#endif
