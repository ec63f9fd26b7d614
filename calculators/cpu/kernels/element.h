/* SPDX-License-Identifier: MIT */
/* The element type and the vectors of an instance. CMake defines SDLF_ELEMENT (float or double) and SDLF_VECTOR_BYTES
 * (16, 32 or 64) for each compilation of this folder; the code is written for all of them.
 *
 * Every external function and table of this folder is listed in calculators/cpu/CMakeLists.txt, which prefixes it with
 * the instance's name. Kernels accept operands at any element-aligned address: loads and stores are unaligned. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_ELEMENT_H
#define SDLF_CALCULATORS_CPU_KERNELS_ELEMENT_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "calculators/cpu/cpu.h"

typedef SDLF_ELEMENT element;

enum {
    LANES = SDLF_VECTOR_BYTES / sizeof(element),
    IS_FLOAT = sizeof(element) == sizeof(float),
    /* Elements of a task for cheap elementwise work: large enough to hide the hand-over, small enough to balance. */
    TASK_ELEMENTS = 1 << 14,
};

typedef element vector __attribute__((vector_size(SDLF_VECTOR_BYTES)));

static inline vector load(const element *from)
{
    vector v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void store(element *to, vector v)
{
    memcpy(to, &v, sizeof v);
}

/* The same for a value with several uses, which GCC would otherwise load again at each use, as a memory operand. */
static inline vector load_once(const element *from)
{
    vector v = load(from);
#ifdef __SSE2__
    __asm__("" : "+v"(v));
#endif
    return v;
}

static inline vector broadcast(element x)
{
    return x - (vector){0};
}

/* Precedes a loop with constant bounds over accumulators that must stay in registers. GCC unrolls it by itself; Clang
 * spills some of them to memory without the pragma. */
#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED
#endif

/* Integers as wide as elements, the result type of a vector comparison: all bits set where it holds, none elsewhere. */
#if SDLF_VECTOR_BYTES / SDLF_LANES == 4
typedef int32_t lanes_mask __attribute__((vector_size(SDLF_VECTOR_BYTES)));
#else
typedef int64_t lanes_mask __attribute__((vector_size(SDLF_VECTOR_BYTES)));
#endif

static inline vector choose(lanes_mask mask, vector yes, vector no)
{
    return (vector)(((lanes_mask)yes & mask) | ((lanes_mask)no & ~mask));
}

/* x, clamped to [low, high]; NaN is preserved. x86's minimum and maximum return their second operand if one is NaN: two
 * instructions, where GCC and Clang compile comparisons to six. */
static inline vector clamp_lanes(vector x, vector low, vector high)
{
#if defined(__AVX512F__) && SDLF_VECTOR_BYTES == 64 && SDLF_LANES == 16
    return (vector)_mm512_min_ps((__m512)high, _mm512_max_ps((__m512)low, (__m512)x));
#elif defined(__AVX512F__) && SDLF_VECTOR_BYTES == 64
    return (vector)_mm512_min_pd((__m512d)high, _mm512_max_pd((__m512d)low, (__m512d)x));
#elif defined(__AVX__) && SDLF_VECTOR_BYTES == 32 && SDLF_LANES == 8
    return (vector)_mm256_min_ps((__m256)high, _mm256_max_ps((__m256)low, (__m256)x));
#elif defined(__AVX__) && SDLF_VECTOR_BYTES == 32
    return (vector)_mm256_min_pd((__m256d)high, _mm256_max_pd((__m256d)low, (__m256d)x));
#elif defined(__SSE2__) && SDLF_VECTOR_BYTES == 16 && SDLF_LANES == 4
    return (vector)_mm_min_ps((__m128)high, _mm_max_ps((__m128)low, (__m128)x));
#elif defined(__SSE2__) && SDLF_VECTOR_BYTES == 16
    return (vector)_mm_min_pd((__m128d)high, _mm_max_pd((__m128d)low, (__m128d)x));
#else
    x = choose(x < low, low, x);
    return choose(x > high, high, x);
#endif
}

/* The sum of the lanes: one half plus the other, until one lane is left. The order is always the same. */
typedef element two_lanes __attribute__((vector_size(2 * sizeof(element))));
typedef element four_lanes __attribute__((vector_size(4 * sizeof(element))));
typedef element eight_lanes __attribute__((vector_size(8 * sizeof(element))));

static inline element sum_2_lanes(two_lanes v)
{
    return v[0] + v[1];
}

static inline element sum_4_lanes(four_lanes v)
{
    return sum_2_lanes(__builtin_shufflevector(v, v, 0, 1) + __builtin_shufflevector(v, v, 2, 3));
}

static inline element sum_8_lanes(eight_lanes v)
{
    return sum_4_lanes(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
}

static inline element sum_lanes(vector v)
{
#if SDLF_LANES == 16
    return sum_8_lanes(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                       __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
#elif SDLF_LANES == 8
    return sum_8_lanes(v);
#elif SDLF_LANES == 4
    return sum_4_lanes(v);
#else
    return sum_2_lanes(v);
#endif
}

/* The largest of x[0] .. x[count - 1], count > 0. Some NaNs are ignored. */
static inline element largest_of_run(const element *x, int64_t count)
{
    element largest = x[0], lane[LANES];
    vector part[4];
    int64_t i = 0;
    for (int j = 0; j < 4; j++) part[j] = broadcast(largest);
    for (; i + 4 * LANES <= count; i += 4 * LANES) {
        for (int j = 0; j < 4; j++) {
            vector next = load(x + i + j * LANES);
            part[j] = choose(next > part[j], next, part[j]);
        }
    }
    part[0] = choose(part[1] > part[0], part[1], part[0]);
    part[2] = choose(part[3] > part[2], part[3], part[2]);
    store(lane, choose(part[2] > part[0], part[2], part[0]));
    for (int j = 0; j < LANES; j++) largest = lane[j] > largest ? lane[j] : largest;
    for (; i < count; i++) largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/* The sum of x[0] .. x[count - 1], in an order that depends only on count. */
static inline element sum_run(const element *x, int64_t count)
{
    vector part[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES) {
        for (int j = 0; j < 4; j++) part[j] += load(x + i + j * LANES);
    }
    element sum = sum_lanes((part[0] + part[1]) + (part[2] + part[3]));
    for (; i < count; i++) sum += x[i];
    return sum;
}

static inline element square(element x)
{
    return x * x;
}

/* Shorthand for operands. */
static inline const element *input(const sdlf_operation *operation, int index)
{
    return operation->in[index].data;
}

static inline element *output(const sdlf_operation *operation, int index)
{
    return operation->out[index].data;
}

#endif
