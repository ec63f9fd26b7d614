/* SPDX-License-Identifier: MIT */
/* Products of a warpgroup (wgmma.cuh) whose two factors lie in shared memory: c (64,N) += a b, a 64 rows of k, b N rows of k. */
#ifndef SDLF_CALCULATORS_CUDA_WGMMA_BOTH_CUH
#define SDLF_CALCULATORS_CUDA_WGMMA_BOTH_CUH

#include "calculators/cuda/wgmma.cuh"

/* b: 8 rows of 128 bytes, then 8 more `group_bytes` behind them, and so on; each row's 16-byte chunks at chunk ^ (address of the row / 128 % 8).
 * `address` is any row's, plus the offset of the product's numbers in a row. */
static __device__ __forceinline__ uint64_t wgmma_rows(uint32_t address, int group_bytes)
{
    return (address >> 4 & 0x3fff) | static_cast<uint64_t>(1) << 16 | static_cast<uint64_t>(group_bytes >> 4) << 32 |
           static_cast<uint64_t>(1) << 62;
}

static __device__ __forceinline__ void wgmma_fp16_both_128(float (&c)[16][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" WGMMA_NAMES_128
                 "}, %64, %65, add, 1, 1, 0, 0; }"
                 : WGMMA_SUMS_128(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

static __device__ __forceinline__ void wgmma_fp16_both_256(float (&c)[32][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" WGMMA_NAMES_256
                 "}, %128, %129, add, 1, 1, 0, 0; }"
                 : WGMMA_SUMS_256(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

static __device__ __forceinline__ void wgmma_bf16_both_128(float (&c)[16][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" WGMMA_NAMES_128
                 "}, %64, %65, add, 1, 1, 0, 0; }"
                 : WGMMA_SUMS_128(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

static __device__ __forceinline__ void wgmma_bf16_both_256(float (&c)[32][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" WGMMA_NAMES_256
                 "}, %128, %129, add, 1, 1, 0, 0; }"
                 : WGMMA_SUMS_256(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

static __device__ __forceinline__ void wgmma_tf32_both_112(float (&c)[14][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n112k8.f32.tf32.tf32 {" WGMMA_NAMES_112 "}, %56, %57, add, 1, 1; }"
                 : WGMMA_SUMS_112(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

static __device__ __forceinline__ void wgmma_tf32_both_128(float (&c)[16][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" WGMMA_NAMES_128 "}, %64, %65, add, 1, 1; }"
                 : WGMMA_SUMS_128(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

static __device__ __forceinline__ void wgmma_tf32_both_208(float (&c)[26][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n208k8.f32.tf32.tf32 {" WGMMA_NAMES_208 "}, %104, %105, add, 1, 1; }"
                 : WGMMA_SUMS_208(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

static __device__ __forceinline__ void wgmma_tf32_both_216(float (&c)[27][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n216k8.f32.tf32.tf32 {" WGMMA_NAMES_216 "}, %108, %109, add, 1, 1; }"
                 : WGMMA_SUMS_216(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

static __device__ __forceinline__ void wgmma_tf32_both_224(float (&c)[28][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n224k8.f32.tf32.tf32 {" WGMMA_NAMES_224 "}, %112, %113, add, 1, 1; }"
                 : WGMMA_SUMS_224(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

static __device__ __forceinline__ void wgmma_tf32_both_256(float (&c)[32][4], uint64_t a, uint64_t b)
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {" WGMMA_NAMES_256 "}, %128, %129, add, 1, 1; }"
                 : WGMMA_SUMS_256(c)
                 : "l"(a), "l"(b));
#else
    wgmma_is_missing(c, a, b);
#endif
}

#endif
