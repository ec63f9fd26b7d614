/* SPDX-License-Identifier: MIT */
/* Warpgroup MMA (wgmma), issued by four warps: compute capability 9.0a only.
 *
 * wgmma.m64nNk8 (tf32) and k16 (fp16, bf16): c (64,N) += a b. Warp w of the group holds rows 16 w .. 16 w + 15 of c, with the fragment
 * layout of mma.sync (mma.cuh); a (64 rows of k) and b (N rows of k) are read from swizzled shared memory through descriptors. The
 * instruction is asynchronous: c must not be touched until wgmma_await. */
#ifndef SDLF_CALCULATORS_CUDA_WGMMA_CUH
#define SDLF_CALCULATORS_CUDA_WGMMA_CUH

#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/mbarrier.cuh"
#include "calculators/cuda/wgmma_sums.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SDLF_HAS_WGMMA
#endif

/* The stub for devices without wgmma; it must not be reached. */
template <typename... Operands> static __device__ __forceinline__ void wgmma_is_missing(const Operands &...)
{
    __trap();
}

/* The descriptor of an operand: consecutive rows of 128 or 64 bytes, 16-byte chunks swizzled to chunk ^ (row % 8), or chunk ^ (row / 2 % 4).
 * `address` is the first row's, a multiple of 1024, plus the byte offset of the k-step within a row. */
static __device__ __forceinline__ uint64_t wgmma_operand(uint32_t address, int row_bytes)
{
    uint64_t swizzle = row_bytes == 128 ? 1 : 2;
    return (address >> 4 & 0x3fff) | static_cast<uint64_t>(1) << 16 | static_cast<uint64_t>(8 * row_bytes >> 4) << 32 |
           swizzle << 62;
}

/* Fence the accumulator registers: before the first wgmma, and whenever other instructions wrote them. */
static __device__ __forceinline__ void wgmma_begin()
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/* Commit the wgmma instructions since the last commit as a group. */
static __device__ __forceinline__ void wgmma_commit()
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/* Wait until at most OPEN of the groups are in flight. */
template <int OPEN> static __device__ __forceinline__ void wgmma_await()
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(OPEN) : "memory");
#endif
}

/* The descriptor of an operand: 8 rows of 128 bytes, the next 8 rows `group_bytes` further, and so on; 16-byte chunks at chunk ^ (row
 * address / 128 % 8). `address` is any row's, plus the byte offset of the k-step within a row. */
static __device__ __forceinline__ uint64_t wgmma_rows(uint32_t address, int group_bytes)
{
    return (address >> 4 & 0x3fff) | static_cast<uint64_t>(1) << 16 | static_cast<uint64_t>(group_bytes >> 4) << 32 |
           static_cast<uint64_t>(1) << 62;
}

/* c += a b in that math mode; the descriptors are from wgmma_operand or wgmma_rows. */
template <sdlf_math MATH, int N> struct wgmma_product;

#ifdef SDLF_HAS_WGMMA
#define WGMMA_PRODUCT(MATH, N, KIND, FLAGS, A, B)                                                                      \
    template <> struct wgmma_product<MATH, N> {                                                                        \
        static __device__ __forceinline__ void run(float (&c)[N / 8][4], uint64_t a, uint64_t b)                       \
        {                                                                                                              \
            asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;\n"                                                  \
                         "wgmma.mma_async.sync.aligned.m64n" #N KIND " {" WGMMA_NAMES_##N "}, %" #A ", %" #B           \
                                                                                          ", add, 1, 1" FLAGS "; }"    \
                         : WGMMA_SUMS_##N(c)                                                                           \
                         : "l"(a), "l"(b));                                                                            \
        }                                                                                                              \
    };
WGMMA_PRODUCT(SDLF_MATH_TF32, 112, "k8.f32.tf32.tf32", "", 56, 57)
WGMMA_PRODUCT(SDLF_MATH_TF32, 128, "k8.f32.tf32.tf32", "", 64, 65)
WGMMA_PRODUCT(SDLF_MATH_TF32, 208, "k8.f32.tf32.tf32", "", 104, 105)
WGMMA_PRODUCT(SDLF_MATH_TF32, 216, "k8.f32.tf32.tf32", "", 108, 109)
WGMMA_PRODUCT(SDLF_MATH_TF32, 224, "k8.f32.tf32.tf32", "", 112, 113)
WGMMA_PRODUCT(SDLF_MATH_TF32, 256, "k8.f32.tf32.tf32", "", 128, 129)
WGMMA_PRODUCT(SDLF_MATH_FP16, 128, "k16.f32.f16.f16", ", 0, 0", 64, 65)
WGMMA_PRODUCT(SDLF_MATH_FP16, 256, "k16.f32.f16.f16", ", 0, 0", 128, 129)
WGMMA_PRODUCT(SDLF_MATH_BF16, 128, "k16.f32.bf16.bf16", ", 0, 0", 64, 65)
WGMMA_PRODUCT(SDLF_MATH_BF16, 256, "k16.f32.bf16.bf16", ", 0, 0", 128, 129)
#else
template <sdlf_math MATH, int N> struct wgmma_product {
    static __device__ __forceinline__ void run(float (&c)[N / 8][4], uint64_t a, uint64_t b)
    {
        wgmma_is_missing(c, a, b);
    }
};
#endif

#endif
