/* SPDX-License-Identifier: MIT */
/* What Tensor Core kernels share: mma.sync on the fragments of one warp, rounding of operands, and cp.async copies into shared
 * memory.
 *
 * Fragments of mma.sync.m16n8k8 (one warp; lane = 4 g + t): A (16,8): a[0] = (g, t), a[1] = (g + 8, t), a[2] = (g, t + 4), a[3] = (g + 8, t + 4);
 * B (8,8): b[0] = (t, g), b[1] = (t + 4, g); C (16,8): c[0] = (g, 2t), c[1] = (g, 2t + 1), c[2] = (g + 8, 2t), c[3] = (g + 8, 2t + 1). The 8
 * indices of k may be permuted as long as A and B agree. */
#ifndef SDLF_CALCULATORS_CUDA_MMA_CUH
#define SDLF_CALCULATORS_CUDA_MMA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "calculators/cuda/kernels.cuh"

/* ---- rounding of operands ---- */

/* An operand rounded as the math mode requires, in the bits of a tf32 value: float16's 10 and bfloat16's 7 mantissa bits fit in
 * it, so that the product of two rounded operands is exact with any instruction. */
template <sdlf_math MATH> static __device__ __forceinline__ uint32_t operand_bits(float x)
{
    if (MATH == SDLF_MATH_FP16) return __float_as_uint(__half2float(__float2half_rn(x)));
    if (MATH == SDLF_MATH_BF16) return __float_as_uint(__bfloat162float(__float2bfloat16_rn(x)));
    uint32_t bits = __float_as_uint(x); /* the mma ignores the last 13 bits: add half of the 14th to round */
    return fabsf(x) < INFINITY ? bits + 0x1000 : bits;
}

/* c += a b, operands in tf32. Compute capability 8.0 and newer; must not be reached elsewhere. */
static __device__ __forceinline__ void mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void)c;
    (void)a;
    (void)b;
    __trap();
#endif
}

/* The same for words of two float16 values that are adjacent along k: (16,16) by (16,8). On compute capability 7.5, two
 * instructions of half the k extent. */
static __device__ __forceinline__ void mma_fp16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int i = 0; i < 2; i++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
#endif
}

/* The same for bfloat16; compute capability 8.0 and newer. */
static __device__ __forceinline__ void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void)c;
    (void)a;
    (void)b;
    __trap();
#endif
}

/* Load four matrices of 8 rows of 16 bytes (ldmatrix), for an A fragment: lane l supplies the address of a row of matrix l / 8,
 * a multiple of 16 bytes in shared memory, and receives word t of row g of each matrix. */
static __device__ __forceinline__ void load_matrices(uint32_t (&a)[4], const void *shared)
{
    uint32_t from = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(from)
                 : "memory");
}

/* The pointer as a value that the compiler must keep in a register instead of recomputing it at every use. */
template <typename T> static __device__ __forceinline__ const T *kept(const T *pointer)
{
    asm volatile("" : "+l"(pointer));
    return pointer;
}

/* ---- asynchronous copies into shared memory ---- */

/* Copy one element of 4 or 8 bytes: to = valid ? *from : 0. */
template <typename T> static __device__ __forceinline__ void copy_async_number(T *shared, const T *from, bool valid)
{
#if __CUDA_ARCH__ >= 800
    uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    int bytes = valid ? static_cast<int>(sizeof(T)) : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(sizeof(T)), "r"(bytes)
                 : "memory");
#else
    *shared = valid ? *from : T(0);
#endif
}

/* Copy 16 bytes between addresses that are multiples of 16; zero-fill if not `valid` (then `from` is not read). Before
 * compute capability 8.0, a synchronous copy. */
static __device__ __forceinline__ void copy_async(void *shared, const void *from, bool valid)
{
#if __CUDA_ARCH__ >= 800
    uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#else
    *static_cast<float4 *>(shared) = valid ? *static_cast<const float4 *>(from) : make_float4(0, 0, 0, 0);
#endif
}

/* The same for data that is not read again soon: evicted first from the L2 cache. */
static __device__ __forceinline__ void copy_async_once(void *shared, const void *from, bool valid)
{
#if __CUDA_ARCH__ >= 800
    uint64_t policy;
    uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    int bytes = valid ? 16 : 0;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(from), "r"(bytes),
                 "l"(policy)
                 : "memory");
#else
    copy_async(shared, from, valid);
#endif
}

static __device__ __forceinline__ void cp_async_commit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Wait until at most OPEN of the groups that cp_async_commit committed are still in flight. */
template <int OPEN> static __device__ __forceinline__ void cp_async_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(OPEN) : "memory");
#endif
}

#endif
