/* SPDX-License-Identifier: MIT */
/* Accesses shared memory in spmm_csr by 32-bit addresses that the compiler keeps in registers: from a pointer it recomputes
 * them, in half a dozen instructions, at every use. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_SHARED_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_SHARED_CUH

#include "calculators/cuda/mma.cuh"

/* Called by every lane of the warp. The shuffle hides the origin of the address: ptxas (13.0) otherwise folds the uniform part of a known
 * address into the instruction, and for a cp.async with a cache hint this yields an instruction that no device supports. */
static __device__ __forceinline__ uint32_t kept_address(const void *shared)
{
    const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    return __shfl_sync(0xffffffffu, address, static_cast<int>(threadIdx.x) % 32);
}

/* Load 16 bytes as elements of their type: assembling them from words would cost another move. */
static __device__ __forceinline__ void read_16(int32_t *to, uint32_t from)
{
    asm volatile("ld.shared.v4.s32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

static __device__ __forceinline__ void read_16(float *to, uint32_t from)
{
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from)
                 : "memory");
}

static __device__ __forceinline__ void read_16(double *to, uint32_t from)
{
    asm volatile("ld.shared.v2.f64 {%0,%1}, [%2];" : "=d"(to[0]), "=d"(to[1]) : "r"(from) : "memory");
}

template <typename T, int COUNT> static __device__ __forceinline__ void read_shared(T (&to)[COUNT], uint32_t from)
{
    constexpr int V = 16 / sizeof(T);
    static_assert(COUNT % V == 0, "whole reads");
#pragma unroll
    for (int i = 0; i < COUNT; i += V) read_16(to + i, from + i * static_cast<uint32_t>(sizeof(T)));
}

static __device__ __forceinline__ void write_16(uint32_t to, const float (&from)[4])
{
    asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(to), "f"(from[0]), "f"(from[1]), "f"(from[2]),
                 "f"(from[3])
                 : "memory");
}

static __device__ __forceinline__ void write_16(uint32_t to, const double (&from)[2])
{
    asm volatile("st.shared.v2.f64 [%0], {%1,%2};" ::"r"(to), "d"(from[0]), "d"(from[1]) : "memory");
}

/* Copy 16 bytes from a row of x, if `column` is valid; otherwise zeros. */
static __device__ __forceinline__ void copy_row(uint32_t to, const void *from, int column)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("{\n\t.reg .pred none;\n\tsetp.lt.s32 none, %2, 0;\n\t"
                 "cp.async.cg.shared.global [%0], [%1], 16, none;\n\t}" ::"r"(to),
                 "l"(from), "r"(column)
                 : "memory");
#else
    copy_async(__cvta_shared_to_generic(to), from, column >= 0);
#endif
}

/* Copy 16 bytes that are not read again soon. */
static __device__ __forceinline__ void copy_once(uint32_t to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "l"(policy)
                 : "memory");
#else
    copy_async(__cvta_shared_to_generic(to), from, true);
#endif
}

template <typename T> static __device__ __forceinline__ void copy_number_to(uint32_t to, const T *from, bool valid)
{
    copy_async_number(static_cast<T *>(__cvta_shared_to_generic(to)), from, valid);
}

#endif
