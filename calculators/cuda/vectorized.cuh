/* SPDX-License-Identifier: MIT */
/* Vectorised access: a thread loads and stores several adjacent elements at once: four where rows are multiples of four elements and
 * begin at multiples of 16 bytes, else one. The offset of a vector is then computed once for four elements. */
#ifndef SDLF_CALCULATORS_CUDA_VECTORIZED_CUH
#define SDLF_CALCULATORS_CUDA_VECTORIZED_CUH

#include <type_traits>

#include "calculators/cuda/kernels.cuh"

template <typename T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) vec {
    T at[N];
};

template <int N, typename T> static __device__ __forceinline__ vec<T, N> read_vec(const T *x, int64_t number)
{
    return reinterpret_cast<const vec<T, N> *>(x)[number];
}

template <int N, typename T>
static __device__ __forceinline__ void write_vec(T *y, int64_t number, const vec<T, N> &values)
{
    reinterpret_cast<vec<T, N> *>(y)[number] = values;
}

/* Call function(N), N a compile-time constant, 4 or 1, for rows of `line` elements at all these addresses. */
template <typename Function, typename... Pointers>
static void with_vec_width(int64_t line, Function function, const Pointers *...places)
{
    const uintptr_t all = (reinterpret_cast<uintptr_t>(places) | ...);
    if (line % 4 == 0 && all % 16 == 0)
        function(std::integral_constant<int, 4>());
    else
        function(std::integral_constant<int, 1>());
}

#endif
