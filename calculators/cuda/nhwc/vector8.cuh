/* SPDX-License-Identifier: MIT */
/* Loads and stores eight or four adjacent bfloat16, float16 or float32 elements as float32; and dispatches on the storage type. */
#ifndef SDLF_CALCULATORS_CUDA_NHWC_VECTOR8_CUH
#define SDLF_CALCULATORS_CUDA_NHWC_VECTOR8_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "calculators/cuda/kernels.cuh"

enum { VECTOR = 8 };

struct float8 {
    float at[VECTOR];
};

/* Eight elements as stored: 16 bytes, or 32. */
template <typename T> struct bits8 {
    uint4 word[sizeof(T) / 2];
};

template <typename T> static __device__ __forceinline__ float8 unpack8(const bits8<T> &bits)
{
    alignas(16) T stored[VECTOR];
    float8 values;
    *reinterpret_cast<bits8<T> *>(stored) = bits;
#pragma unroll
    for (int v = 0; v < VECTOR; v++) values.at[v] = static_cast<float>(stored[v]);
    return values;
}

template <typename T> static __device__ __forceinline__ bits8<T> pack8(const float8 &values)
{
    alignas(16) T stored[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; v++) stored[v] = static_cast<T>(values.at[v]);
    return *reinterpret_cast<const bits8<T> *>(stored);
}

/* Load elements 8 i to 8 i + 7 as stored, zeros if x is NULL; x is a multiple of 16 bytes. */
template <typename T> static __device__ __forceinline__ bits8<T> load_bits8(const T *x, int64_t i)
{
    return x != nullptr ? reinterpret_cast<const bits8<T> *>(x)[i] : bits8<T>{};
}

/* Load elements 8 i to 8 i + 7; x is a multiple of 16 bytes. */
template <typename T> static __device__ __forceinline__ float8 load8(const T *x, int64_t i)
{
    return unpack8(reinterpret_cast<const bits8<T> *>(x)[i]);
}

template <typename T> static __device__ __forceinline__ void store8(T *y, int64_t i, const float8 &values)
{
    reinterpret_cast<bits8<T> *>(y)[i] = pack8<T>(values);
}

/* Four adjacent elements as stored. */
template <typename T> struct bits4 {
    uint32_t word[sizeof(T)];
};

template <typename T> static __device__ __forceinline__ bits4<T> load_bits4(const T *from)
{
    bits4<T> bits;
    if constexpr (sizeof(T) == 2)
        *reinterpret_cast<uint2 *>(bits.word) = *reinterpret_cast<const uint2 *>(from);
    else
        *reinterpret_cast<uint4 *>(bits.word) = *reinterpret_cast<const uint4 *>(from);
    return bits;
}

/* Store to global memory with a single instruction, which the compiler might otherwise split. */
template <typename T> static __device__ __forceinline__ void store_bits4(T *to, const bits4<T> &bits)
{
    const uint32_t *w = bits.word;
    if constexpr (sizeof(T) == 2)
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(w[0]), "r"(w[1]) : "memory");
    else
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                     : "memory");
}

template <typename T> static __device__ __forceinline__ bits4<T> pack4(const float (&value)[4])
{
    alignas(16) T made[4];
#pragma unroll
    for (int v = 0; v < 4; v++) made[v] = static_cast<T>(value[v]);
    return *reinterpret_cast<const bits4<T> *>(made);
}

template <typename T> static __device__ __forceinline__ float element(const bits4<T> &bits, int v)
{
    alignas(16) T stored[4];
    *reinterpret_cast<bits4<T> *>(stored) = bits;
    return static_cast<float>(stored[v]);
}

/* Pairs of values rounded to 16 bits, and clamped; NaN passes through. */
template <typename T> struct pair16;
template <> struct pair16<__half> {
    using type = __half2;
    static __device__ __forceinline__ __half2 of(float a, float b)
    {
        return __floats2half2_rn(a, b);
    }
};
template <> struct pair16<__nv_bfloat16> {
    using type = __nv_bfloat162;
    static __device__ __forceinline__ __nv_bfloat162 of(float a, float b)
    {
        return __floats2bfloat162_rn(a, b);
    }
};

template <typename Pair> static __device__ __forceinline__ Pair clamp_pair(Pair x, Pair low, Pair high)
{
#if __CUDA_ARCH__ >= 800
    return __hmin2_nan(__hmax2_nan(x, low), high);
#else /* never called: 16-bit storage is used on 9.0 only */
    return x;
#endif
}

/* Elementwise maximum; NaN wins. */
static __device__ __forceinline__ float8 larger_of(const float8 &a, const float8 &b)
{
    float8 larger = a;
#pragma unroll
    for (int v = 0; v < VECTOR; v++) {
        if (b.at[v] > a.at[v] || b.at[v] != b.at[v]) larger.at[v] = b.at[v];
    }
    return larger;
}

template <typename T> static __device__ __forceinline__ bits8<T> larger8(const bits8<T> &a, const bits8<T> &b)
{
    bits8<T> larger = a;
    if constexpr (sizeof(T) == 4) {
        larger = pack8<T>(larger_of(unpack8<T>(a), unpack8<T>(b)));
    } else {
#if __CUDA_ARCH__ >= 800
        using pair = typename pair16<T>::type;
        pair *to = reinterpret_cast<pair *>(larger.word);
#pragma unroll
        for (int v = 0; v < VECTOR / 2; v++) to[v] = __hmax2_nan(to[v], reinterpret_cast<const pair *>(b.word)[v]);
#else
        larger = pack8<T>(larger_of(unpack8<T>(a), unpack8<T>(b)));
#endif
    }
    return larger;
}

/* Piecewise linear activations: f(x) = clamp(x < 0 ? slope x : x, low, high), without function calls, so that loads can be hoisted. */
struct piecewise_linear_activation {
    float low, high, slope;
    __device__ __forceinline__ float value(float x) const
    {
        return clamp(x < 0 ? slope * x : x, low, high);
    }
    /* f'(x) from y = f(x). */
    __device__ __forceinline__ float derivative(float y) const
    {
        return y > low && y < high ? (y > 0 ? 1.0f : slope) : 0.0f;
    }
};

/* Maps a float32 to an integer with the same ordering, and back. */
static inline int32_t order_of_float(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >= 0 ? bits : INT32_MIN - bits;
}

static inline float float_of_order(int32_t order)
{
    const int32_t bits = order >= 0 ? order : INT32_MIN - order;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The float32 values that, once clamped to low and high and rounded to T as in forward, are strictly between low and high: from `first`
 * to `last`. */
struct rounded_range {
    float first, last;
    __device__ __forceinline__ bool has(float x) const
    {
        return x >= first && x <= last;
    }
};

template <typename T> static rounded_range rounded_range_of(float low, float high)
{
    /* the first value for which `is_beyond` is true; infinity is the last candidate */
    auto first = [&](auto is_beyond) {
        int64_t below = order_of_float(-INFINITY) - INT64_C(1), beyond = order_of_float(INFINITY) + INT64_C(1);
        while (beyond - below > 1) {
            const int64_t middle = below + (beyond - below) / 2;
            float value = float_of_order(static_cast<int32_t>(middle));
            value = value < low ? low : value > high ? high : value;
            (is_beyond(static_cast<float>(static_cast<T>(value))) ? beyond : below) = middle;
        }
        return beyond;
    };
    const int64_t begin = first([&](float x) { return x > low; }), end = first([&](float x) { return x >= high; });
    if (begin >= end) return {INFINITY, -INFINITY};
    return {float_of_order(static_cast<int32_t>(begin)), float_of_order(static_cast<int32_t>(end - 1))};
}

/* A piecewise linear activation without a slope: a clamp. */
static inline bool is_clip_activation(const sdlf_activation &activation)
{
    return activation.function == SDLF_IDENTITY || activation.function == SDLF_RELU || activation.function == SDLF_CLIP;
}

static inline bool is_line_activation(const sdlf_activation &activation)
{
    return is_clip_activation(activation) || (activation.function == SDLF_LEAKY_RELU && activation.slope > 0);
}

static inline piecewise_linear_activation line_activation_of(const sdlf_activation &activation)
{
    piecewise_linear_activation made = {-INFINITY, INFINITY, 1};
    if (activation.function == SDLF_RELU) made.low = 0;
    if (activation.function == SDLF_LEAKY_RELU) made.slope = activation.slope;
    if (activation.function == SDLF_CLIP) {
        made.low = activation.low;
        made.high = activation.high;
    }
    return made;
}

/* Dispatch on the storage type: with_storage(dtype, [&](auto zero) { using T = decltype(zero); ... }). */
template <typename Function> static void with_storage(sdlf_dtype dtype, Function function)
{
    if (dtype == SDLF_BFLOAT16)
        function(__nv_bfloat16());
    else if (dtype == SDLF_FLOAT16)
        function(__half());
    else
        function(0.0f);
}

static inline bool is_aligned16(const void *address)
{
    return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

#endif
