/* Operands in 16-bit storage: eight of them at a time as float32, and the type behind a dtype. */
#ifndef SDLF_CALCULATORS_CUDA_STORAGE16_VECTOR16_CUH
#define SDLF_CALCULATORS_CUDA_STORAGE16_VECTOR16_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "calculators/cuda/kernels.cuh"

enum { VECTOR16 = 8 };

struct float8 {
    float at[VECTOR16];
};

template <typename T> static __device__ __forceinline__ float8 unpack16(uint4 bits)
{
    alignas(16) T stored[VECTOR16];
    float8 values;
    *reinterpret_cast<uint4 *>(stored) = bits;
#pragma unroll
    for (int v = 0; v < VECTOR16; v++) values.at[v] = static_cast<float>(stored[v]);
    return values;
}

template <typename T> static __device__ __forceinline__ uint4 pack16(const float8 &values)
{
    alignas(16) T stored[VECTOR16];
#pragma unroll
    for (int v = 0; v < VECTOR16; v++) stored[v] = static_cast<T>(values.at[v]);
    return *reinterpret_cast<const uint4 *>(stored);
}

/* Elements 8 i to 8 i + 7; x is a multiple of 16 bytes. */
template <typename T> static __device__ __forceinline__ float8 load16(const T *x, int64_t i)
{
    return unpack16<T>(reinterpret_cast<const uint4 *>(x)[i]);
}

template <typename T> static __device__ __forceinline__ void store16(T *y, int64_t i, const float8 &values)
{
    reinterpret_cast<uint4 *>(y)[i] = pack16<T>(values);
}

/* The element type of 16-bit storage, as a type: with_storage(dtype, [&](auto zero) { using T = decltype(zero); ... }). */
template <typename Function> static void with_storage(sdlf_dtype dtype, Function function)
{
    if (dtype == SDLF_BFLOAT16)
        function(__nv_bfloat16());
    else
        function(__half());
}

static inline bool is_aligned16(const void *address)
{
    return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

#endif
