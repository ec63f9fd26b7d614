/* SPDX-License-Identifier: MIT */
/* Vectorised access: a thread reads and writes several neighbouring numbers at once, four where lines are multiples of four and begin at
 * multiples of 16 bytes, else one. The position of a vector is then computed once for four numbers. */
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

/* Call function(N), 4 or 1, as a constant, for lines of that length in all these places. */
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
