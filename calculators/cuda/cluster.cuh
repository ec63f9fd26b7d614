/* Sums that meet between the blocks of a cluster (compute capability 9.0; elsewhere none of this must be reached). */
#ifndef SDLF_CALCULATORS_CUDA_CLUSTER_CUH
#define SDLF_CALCULATORS_CUDA_CLUSTER_CUH

#include "calculators/cuda/launch.cuh"

static __device__ __forceinline__ float4 plus(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* A barrier of all threads of the cluster. Before a block ends it must have passed one after the others' last reads. */
static __device__ __forceinline__ void await_cluster()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}

/* Four numbers at the same place of another block's shared memory. */
static __device__ __forceinline__ float4 read_other(const float *shared, int block)
{
    float4 four = {};
#if __CUDA_ARCH__ >= 900
    uint32_t mine = static_cast<uint32_t>(__cvta_generic_to_shared(shared)), other;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(mine), "r"(block));
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "r"(other)
                 : "memory");
#else
    (void)shared;
    (void)block;
#endif
    return four;
}

/* The same place's numbers of `count` blocks, added in order. */
static __device__ __forceinline__ float4 add_blocks(const float *shared, int count)
{
    float4 sum = read_other(shared, 0);
    for (int k = 1; k < count; k++) sum = plus(sum, read_other(shared, k));
    return sum;
}

#endif
