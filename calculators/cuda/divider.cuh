/* SPDX-License-Identifier: MIT */
/* Division by a divisor that is known before the launch: a multiplication and a shift where all values fit in 31 bits, after
 * Granlund and Montgomery, "Division by invariant integers using multiplication" (1994). A division instruction sequence takes some
 * twenty instructions in 32 bits and a hundred in 64. */
#ifndef SDLF_CALCULATORS_CUDA_DIVIDER_CUH
#define SDLF_CALCULATORS_CUDA_DIVIDER_CUH

#include "calculators/cuda/kernels.cuh"

/* Index: int32_t or int64_t. Dividends are not negative; divisors are positive. With int32_t, both are below 2^31. */
template <typename Index> struct divider;

template <> struct divider<int32_t> {
    int32_t number;
    uint32_t magic, shift;

    divider() = default;

    explicit divider(int64_t by) : number(static_cast<int32_t>(by)), magic(0), shift(0)
    {
        while ((INT64_C(1) << shift) < by) shift++;
        magic = static_cast<uint32_t>(((UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - static_cast<uint64_t>(by))) /
                                          static_cast<uint64_t>(by) +
                                      1);
    }

    __device__ __forceinline__ int32_t quotient(int32_t n) const
    {
        return static_cast<int32_t>((__umulhi(static_cast<uint32_t>(n), magic) + static_cast<uint32_t>(n)) >> shift);
    }
};

template <> struct divider<int64_t> {
    int64_t number;

    divider() = default;

    explicit divider(int64_t by) : number(by)
    {
    }

    __device__ __forceinline__ int64_t quotient(int64_t n) const
    {
        return n / number;
    }
};

/* n = quotient * divisor + rest; returns the quotient. */
template <typename Index> static __device__ __forceinline__ Index divide(Index n, const divider<Index> &by, Index &rest)
{
    Index quotient = by.quotient(n);
    rest = n - quotient * by.number;
    return quotient;
}

/* Call function(zero of the narrowest index type that can count to `most`). */
template <typename Function> static void with_narrow_index(int64_t most, Function function)
{
    if (most <= INT32_MAX)
        function(int32_t(0));
    else
        function(int64_t(0));
}

#endif
