/* SPDX-License-Identifier: MIT */
/* Neighbouring numbers that a thread takes together: four of a line, where lines are multiples of four and begin at multiples of 16
 * bytes, or one. Where a number belongs is then worked out once for four of them. */
#ifndef SDLF_CALCULATORS_CUDA_BUNDLE_CUH
#define SDLF_CALCULATORS_CUDA_BUNDLE_CUH

#include <type_traits>

#include "calculators/cuda/kernels.cuh"

template <typename T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) bundle {
    T at[N];
};

template <int N, typename T> static __device__ __forceinline__ bundle<T, N> read_bundle(const T *x, int64_t number)
{
    return reinterpret_cast<const bundle<T, N> *>(x)[number];
}

template <int N, typename T>
static __device__ __forceinline__ void write_bundle(T *y, int64_t number, const bundle<T, N> &values)
{
    reinterpret_cast<bundle<T, N> *>(y)[number] = values;
}

/* Call function(N), 4 or 1, as a constant, for lines of that length in all these places. */
template <typename Function, typename... Pointers>
static void with_bundles(int64_t line, Function function, const Pointers *...places)
{
    const uintptr_t all = (reinterpret_cast<uintptr_t>(places) | ...);
    if (line % 4 == 0 && all % 16 == 0)
        function(std::integral_constant<int, 4>());
    else
        function(std::integral_constant<int, 1>());
}

#endif
