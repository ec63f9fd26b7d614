/* SPDX-License-Identifier: MIT */
/* Products of tiles by a warpgroup, four warps together (wgmma), and bulk copies: compute capability 9.0a alone.
 *
 * wgmma.m64nNk8 (tf32) and k16 (halves): c (64,N) += a b. Warp w of the group has rows 16 w .. 16 w + 15 of a and c, laid out as in mma.sync
 * (mma.cuh); b (N rows of k) lies in shared memory, swizzled, where a descriptor says. The product is under way until
 * wgmma_await: neither a's registers nor c may be touched before. */
#ifndef SDLF_CALCULATORS_CUDA_WGMMA_CUH
#define SDLF_CALCULATORS_CUDA_WGMMA_CUH

#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/wgmma_sums.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SDLF_HAS_WGMMA
#endif

/* What products are elsewhere; it must not be reached. */
template <typename... Operands> static __device__ __forceinline__ void wgmma_is_missing(const Operands &...)
{
    __trap();
}

/* b: rows of 128 or 64 bytes one below the other, 16-byte chunks at chunk ^ (row % 8), or chunk ^ (row / 2 % 4). `address` is the first
 * row's, a multiple of 1024, plus the offset of the product's numbers in a row. */
static __device__ __forceinline__ uint64_t wgmma_factor(uint32_t address, int row_bytes)
{
    uint64_t swizzle = row_bytes == 128 ? 1 : 2;
    return (address >> 4 & 0x3fff) | static_cast<uint64_t>(1) << 16 | static_cast<uint64_t>(8 * row_bytes >> 4) << 32 |
           swizzle << 62;
}

/* Registers are ready: before the first product, and whenever they were written. */
static __device__ __forceinline__ void wgmma_begin()
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/* Products since the last one of these are a group. */
static __device__ __forceinline__ void wgmma_commit()
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/* Wait until at most OPEN of the groups are under way. */
template <int OPEN> static __device__ __forceinline__ void wgmma_await()
{
#ifdef SDLF_HAS_WGMMA
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(OPEN) : "memory");
#endif
}

/* ---- barriers of shared memory, which count arrivals and bytes ---- */

static __device__ __forceinline__ void barrier_init(uint64_t *barrier, int arrivals)
{
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier))),
        "r"(arrivals)
        : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    asm volatile(
        "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier)))
        : "memory");
}

/* Wait until the phase of that parity is over: 0 for the first, 1 for the second, and so on. */
static __device__ __forceinline__ void barrier_await(uint64_t *barrier, int parity)
{
    uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(barrier)), done = 0;
    while (done == 0) {
        asm volatile("{ .reg .pred over; mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                     "selp.b32 %0, 1, 0, over; }"
                     : "=r"(done)
                     : "r"(address), "r"(parity)
                     : "memory");
    }
}

/* Arrive, and let the phase last until `bytes` that are copied are there too; all sizes and addresses are multiples of 16. */
static __device__ __forceinline__ void copy_bulk(void *shared, const void *from, int bytes, uint64_t *barrier)
{
    uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
                 "l"(from), "r"(bytes), "r"(address)
                 : "memory");
}

/* The block's first `threads` threads wait for each other. */
static __device__ __forceinline__ void barrier_of_threads(int threads)
{
    asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
}

static __device__ __forceinline__ void barriers_made()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

#endif
