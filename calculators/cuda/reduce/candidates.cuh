/* SPDX-License-Identifier: MIT */
/* Elements of a line in the order of arg_reduce and top_k: the largest first (or the smallest), NaN before all, equal ones by index.
 * No two elements of a line compare equal, so the order of comparisons does not matter. */
#ifndef SDLF_CALCULATORS_CUDA_CANDIDATES_CUH
#define SDLF_CALCULATORS_CUDA_CANDIDATES_CUH

#include "calculators/cuda/kernels.cuh"

template <typename T, typename Index = int64_t> struct candidate {
    T value;
    Index index; /* -1: none */
};

/* True if b precedes a. */
template <typename T, typename Index>
static __device__ __forceinline__ bool beats(const candidate<T, Index> &b, const candidate<T, Index> &a,
                                             const sdlf_arg_reduce_options &options)
{
    if (b.index < 0 || a.index < 0) return a.index < 0;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return b_nan;
    if (!a_nan && a.value != b.value) return options.smallest ? b.value < a.value : b.value > a.value;
    return options.last ? b.index > a.index : b.index < a.index;
}

/* The first candidate of a warp, returned in all lanes. */
template <typename T, typename Index>
static __device__ __forceinline__ candidate<T, Index> first_of_warp(candidate<T, Index> best,
                                                                    const sdlf_arg_reduce_options &options)
{
    for (int half = 16; half > 0; half /= 2) {
        candidate<T, Index> other;
        other.value = __shfl_xor_sync(0xffffffffu, best.value, half);
        other.index = __shfl_xor_sync(0xffffffffu, best.index, half);
        if (beats(other, best, options)) best = other;
    }
    return best;
}

#endif
