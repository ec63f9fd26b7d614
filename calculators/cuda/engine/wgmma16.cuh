/* SPDX-License-Identifier: MIT */
/* wgmma (wgmma.mma_async m64nNk16, for tf32 m64nNk8) with both operands in shared memory, or a in registers, and float32 accumulators: compute
 * capability 9.0a. An operand is K-major (rows along the reduction) or, with 16-bit elements, MN-major (rows along M or N).
 *
 * Shared memory layout, as tma.cuh loads it: rows of CHUNK elements, eight rows per swizzle atom.
 *   K-major   rows of M (or N), CHUNK of K in each: the instruction's 32 bytes of K are an offset within the rows
 *   MN-major  rows of K, CHUNK of M (or N) in each; the next CHUNK is `chunk_bytes` further: the instruction's 16 of K are 16 rows */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_WGMMA16_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_WGMMA16_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "calculators/cuda/wgmma.cuh"

/* Rows of `row_bytes` (32, 64 or 128); the next eight rows are `atom_bytes` after the first eight. The swizzle of 16-byte chunks depends on the
 * address, so the first row may be any. */
static __device__ __forceinline__ uint64_t smem_descriptor_of_rows(uint32_t address, int row_bytes, int chunk_bytes,
                                                                   int atom_bytes)
{
    const uint64_t swizzle = row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : 3;
    return static_cast<uint64_t>(address >> 4 & 0x3fff) | static_cast<uint64_t>(chunk_bytes >> 4 & 0x3fff) << 16 |
           static_cast<uint64_t>(atom_bytes >> 4) << 32 | swizzle << 62;
}

template <int ROW_BYTES> static __device__ __forceinline__ uint64_t smem_descriptor(uint32_t address, int chunk_bytes)
{
    return smem_descriptor_of_rows(address, ROW_BYTES, chunk_bytes, 8 * ROW_BYTES);
}

/* c = 0, before the first wgmma: setting one of its registers between wgmma instructions would serialize them. */
template <int EIGHTS> static __device__ __forceinline__ void wgmma_clear(float (&c)[EIGHTS][4])
{
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
        c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
        asm volatile("" : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])::"memory");
    }
}

/* c (64,N) += a b; MN_A, MN_B: 1 if that operand is MN-major. */
template <typename T, int N, int MN_A, int MN_B> struct wgmma16;

#ifdef SDLF_HAS_WGMMA
#define WGMMA16(T, TYPE, N, A, B)                                                                                      \
    template <int MN_A, int MN_B> struct wgmma16<T, N, MN_A, MN_B> {                                                   \
        static __device__ __forceinline__ void run(float (&c)[N / 8][4], uint64_t a, uint64_t b)                       \
        {                                                                                                              \
            asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"                                                  \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" WGMMA_NAMES_##N          \
                         "}, %" #A ", %" #B ", add, 1, 1, %" WGMMA16_NEXT_##N "; }"                                    \
                         : WGMMA_SUMS_##N(c)                                                                           \
                         : "l"(a), "l"(b), "n"(MN_A), "n"(MN_B));                                                      \
        }                                                                                                              \
    };
#define WGMMA16_NEXT_32  "18, %19"
#define WGMMA16_NEXT_64  "34, %35"
#define WGMMA16_NEXT_128 "66, %67"
#define WGMMA16_NEXT_256 "130, %131"
WGMMA16(__nv_bfloat16, "bf16", 32, 16, 17)
WGMMA16(__nv_bfloat16, "bf16", 64, 32, 33)
WGMMA16(__nv_bfloat16, "bf16", 128, 64, 65)
WGMMA16(__nv_bfloat16, "bf16", 256, 128, 129)
WGMMA16(__half, "f16", 32, 16, 17)
WGMMA16(__half, "f16", 64, 32, 33)
WGMMA16(__half, "f16", 128, 64, 65)
WGMMA16(__half, "f16", 256, 128, 129)
/* c (64,N) += a b, a (64,16) in registers, as fragments of mma.sync (mma.cuh), which must not be written before wgmma_await; b is MN-major. */
template <typename T, int N> struct wgmma16_of_registers;
#define WGMMA16_OF_REGISTERS(T, TYPE, N, A, B, C, D, AT)                                                               \
    template <> struct wgmma16_of_registers<T, N> {                                                                    \
        static __device__ __forceinline__ void run(float (&c)[N / 8][4], const uint32_t (&a)[4], uint64_t b)           \
        {                                                                                                              \
            asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"                                                  \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" WGMMA_NAMES_##N          \
                         "}, {%" #A ", %" #B ", %" #C ", %" #D "}, %" #AT ", add, 1, 1, 1; }"                          \
                         : WGMMA_SUMS_##N(c)                                                                           \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                        \
        }                                                                                                              \
    };
WGMMA16_OF_REGISTERS(__nv_bfloat16, "bf16", 32, 16, 17, 18, 19, 20)
WGMMA16_OF_REGISTERS(__nv_bfloat16, "bf16", 64, 32, 33, 34, 35, 36)
WGMMA16_OF_REGISTERS(__nv_bfloat16, "bf16", 128, 64, 65, 66, 67, 68)
WGMMA16_OF_REGISTERS(__half, "f16", 32, 16, 17, 18, 19, 20)
WGMMA16_OF_REGISTERS(__half, "f16", 64, 32, 33, 34, 35, 36)
WGMMA16_OF_REGISTERS(__half, "f16", 128, 64, 65, 66, 67, 68)
#define WGMMA_TF32(N, A, B)                                                                                            \
    template <> struct wgmma16<float, N, 0, 0> {                                                                       \
        static __device__ __forceinline__ void run(float (&c)[N / 8][4], uint64_t a, uint64_t b)                       \
        {                                                                                                              \
            asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"                                                  \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32 {" WGMMA_NAMES_##N                   \
                         "}, %" #A ", %" #B ", add, 1, 1; }"                                                           \
                         : WGMMA_SUMS_##N(c)                                                                           \
                         : "l"(a), "l"(b));                                                                            \
        }                                                                                                              \
    };
WGMMA_TF32(32, 16, 17)
WGMMA_TF32(64, 32, 33)
WGMMA_TF32(128, 64, 65)
#else
template <typename T, int N, int MN_A, int MN_B> struct wgmma16 {
    static __device__ __forceinline__ void run(float (&c)[N / 8][4], uint64_t a, uint64_t b)
    {
        wgmma_is_missing(c, a, b);
    }
};
template <typename T, int N> struct wgmma16_of_registers {
    static __device__ __forceinline__ void run(float (&c)[N / 8][4], const uint32_t (&a)[4], uint64_t b)
    {
        wgmma_is_missing(c, a, b);
    }
};
#endif

#endif
