/* SPDX-License-Identifier: MIT */
/* Four numbers of a tile's results at a time (conv2d/boxes_results.cuh): other blocks' parts of a sum, the larger ones, activations that
 * are a lower and an upper bound. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_BOXES_NUMBERS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_BOXES_NUMBERS_CUH

#include "calculators/cuda/cluster.cuh"

/* The same place in the shared memory of a block of the cluster. */
static __device__ __forceinline__ uint32_t place_at(uint32_t address, int rank)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

/* Four numbers from there; zeros, and nothing is read, where they are not wanted. */
static __device__ __forceinline__ float4 read_there(uint32_t address, bool wanted)
{
    float4 four = make_float4(0, 0, 0, 0);
    asm volatile("{ .reg .pred wanted; setp.ne.b32 wanted, %5, 0;\n"
                 "@wanted ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4]; }"
                 : "+f"(four.x), "+f"(four.y), "+f"(four.z), "+f"(four.w)
                 : "r"(address), "r"(static_cast<int>(wanted)));
    return four;
}

/* NaN wins. */
static __device__ __forceinline__ float larger(float a, float b)
{
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
}

static __device__ __forceinline__ float smaller(float a, float b)
{
    float least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
    return least;
}

static __device__ __forceinline__ float4 larger(float4 a, float4 b)
{
    return make_float4(larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w));
}

/* Activations that are a lower and an upper bound. */
struct boxes_bounds {
    float low, high;

    __device__ __forceinline__ boxes_bounds(const sdlf_activation &act)
    {
        const bool relu = act.function == SDLF_RELU, clip = act.function == SDLF_CLIP;
        low = relu ? 0.0f : clip ? static_cast<float>(act.low) : -INFINITY;
        high = clip ? static_cast<float>(act.high) : INFINITY;
    }
    __device__ __forceinline__ float of(float v) const
    {
        return smaller(larger(v, low), high);
    }
    __device__ __forceinline__ float4 of(float4 v) const
    {
        return make_float4(of(v.x), of(v.y), of(v.z), of(v.w));
    }
};

#endif
