/* SPDX-License-Identifier: MIT */
/* mbarriers, which count arrivals and bytes in shared memory, and bulk copies: compute capability 9.0 and newer. */
#ifndef SDLF_CALCULATORS_CUDA_MBARRIER_CUH
#define SDLF_CALCULATORS_CUDA_MBARRIER_CUH

#include "calculators/cuda/kernels.cuh"

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

/* Wait until the phase with that parity is complete: 0 for the first, 1 for the second, and so on. */
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

/* Issue a bulk copy whose bytes count towards the barrier's phase; sizes and addresses are multiples of 16. */
static __device__ __forceinline__ void copy_bulk_to(uint32_t shared, const void *from, int bytes, uint64_t *barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
        "l"(from), "r"(bytes), "r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier)))
        : "memory");
}

/* The same after arriving at the barrier with these bytes expected: the phase lasts until they have been copied. */
static __device__ __forceinline__ void copy_bulk(void *shared, const void *from, int bytes, uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(barrier))),
                 "r"(bytes)
                 : "memory");
    copy_bulk_to(static_cast<uint32_t>(__cvta_generic_to_shared(shared)), from, bytes, barrier);
}

/* A barrier over the block's first `threads` threads. */
static __device__ __forceinline__ void barrier_of_threads(int threads)
{
    asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
}

static __device__ __forceinline__ void fence_mbarrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

#endif
