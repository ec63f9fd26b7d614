/* SPDX-License-Identifier: MIT */
/* exp, log, tanh and erf, written without branches and calls so that the compiler can vectorise loops over them. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_EXPONENTIAL_H
#define SDLF_CALCULATORS_CPU_KERNELS_EXPONENTIAL_H

#include <math.h>

#include "calculators/cpu/kernels/element.h"

/* exp(x) in float32 within 2 ulp: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial in r, times 2^n in two steps (so
 * that subnormal results are correct). Below -104 it is 0, above 89 infinity; NaN stays NaN. */
static inline float exponential_float(float x)
{
    const float magic = 0x1.8p23f; /* adding it rounds to an integer, which is then in the low bits */
    float clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -104.0f ? -104.0f : clamped;
    float shifted = clamped * 0x1.715476p0f + magic;
    float n = shifted - magic;
    float r = clamped - n * 0x1.62e400p-1f;
    r = r - n * 0x1.7f7d1cp-20f;
    float p = 0x1.6d7552p-10f;
    p = p * r + 0x1.120be8p-7f;
    p = p * r + 0x1.5554b8p-5f;
    p = p * r + 0x1.5554dcp-3f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    union {
        float value;
        uint32_t bits;
    } integer = {.value = shifted}, half, rest;
    int32_t power = (int32_t)(integer.bits << 9) >> 9; /* the low 23 bits, with their sign */
    int32_t lower = power >> 1;
    half.bits = (uint32_t)(lower + 127) << 23;
    rest.bits = (uint32_t)(power - lower + 127) << 23;
    return p * half.value * rest.value;
}

/* The same in float64, within 2 ulp: the Taylor polynomial of degree 13 in r. Results for x below -746 are 0, and those
 * for x above 710 infinity. */
static inline double exponential_double(double x)
{
    const double magic = 0x1.8p52;
    double clamped = x > 710.0 ? 710.0 : x;
    clamped = clamped < -746.0 ? -746.0 : clamped;
    double n = (clamped * 0x1.71547652b82fep0 + magic) - magic;
    double r = clamped - n * 0x1.62e42fee00000p-1;
    r = r - n * 0x1.a39ef35793c76p-33;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    union {
        double value;
        uint64_t bits;
    } lower = {.value = n * 0.5 + magic}, rest, half;
    rest.value = (n - (lower.value - magic)) + magic; /* n = lower + rest; the low bits of both hold their integer */
    half.bits = (lower.bits + 1023) << 52;
    rest.bits = (rest.bits + 1023) << 52;
    return p * half.value * rest.value;
}

static inline element exponential(element x)
{
    return IS_FLOAT ? (element)exponential_float((float)x) : (element)exponential_double((double)x);
}

/* exp(x) for x <= 0, as computed by exponential(), except that results below 2^-125 become approximately that: for
 * terms of a sum that is at least 1. Two thirds of the instructions. */
static inline element exponential_of_negative(element x)
{
    if (!IS_FLOAT) return (element)exponential_double((double)x);
    float clamped = (float)x < -87.0f ? -87.0f : (float)x;
    float shifted = clamped * 0x1.715476p0f + 0x1.8p23f; /* as in exponential_float */
    float n = shifted - 0x1.8p23f;
    float r = clamped - n * 0x1.62e400p-1f;
    r = r - n * 0x1.7f7d1cp-20f;
    float p = 0x1.6d7552p-10f;
    p = p * r + 0x1.120be8p-7f;
    p = p * r + 0x1.5554b8p-5f;
    p = p * r + 0x1.5554dcp-3f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    union {
        float value;
        uint32_t bits;
    } integer = {.value = shifted}, power;
    power.bits = (integer.bits << 23) + (127U << 23);
    return (element)(p * power.value);
}

/* exp(x) of float32, equal to exponential() for x in [-87, 88] and clamped to its values at these bounds outside:
 * sufficient for 1 + exp(x). Half of the instructions. */
static inline __attribute__((always_inline)) vector exponential_lanes(vector x)
{
    vector clamped = clamp_lanes(x, broadcast(-87), broadcast(88));
    vector shifted = clamped * (element)0x1.715476p0 + (element)0x1.8p23; /* as in exponential_float */
    vector n = shifted - (element)0x1.8p23;
    vector r = clamped - n * (element)0x1.62e400p-1;
    r = r - n * (element)0x1.7f7d1cp-20;
    vector p = r * (element)0x1.6d7552p-10 + (element)0x1.120be8p-7;
    p = p * r + (element)0x1.5554b8p-5;
    p = p * r + (element)0x1.5554dcp-3;
    p = p * r + (element)0.5;
    p = p * r + 1;
    p = p * r + 1;
    return p * (vector)(((lanes_mask)shifted << 23) + (127 << 23));
}

/* log(x) in float32 within 2 units in the last place, computed as logarithm_double below. -infinity for 0 and
 * denormals, NaN for negative x and NaN. */
static inline float logarithm_float(float x)
{
    union {
        float value;
        uint32_t bits;
    } m = {.value = x};
    uint32_t above = m.bits - 0x3f3504f3U; /* sqrt(1/2) */
    float exponent = (float)((int32_t)above >> 23);
    m.bits = (above & 0x007fffffU) + 0x3f3504f3U;
    float s = (m.value - 1) / (m.value + 1), z = s * s;
    float p = 1.0f / 9;
    p = p * z + 1.0f / 7;
    p = p * z + 1.0f / 5;
    p = p * z + 1.0f / 3;
    float y = exponent * 0x1.62e400p-1f + (2 * s + (2 * s * z * p + exponent * 0x1.7f7d1cp-20f));
    y = x > 0x1.fffffep127f ? x : y;
    y = x > 0 ? y : NAN;
    return fabsf(x) < 0x1p-126f ? -INFINITY : y;
}

static inline element logarithm(element x)
{
    return IS_FLOAT ? (element)logarithm_float((float)x) : (element)log((double)x);
}

/* log(1 + x) for 0 <= x <= 1. The slope of log at 1 + x corrects the rounding of that sum. */
static inline element logarithm_of_one_and(element x)
{
    if (!IS_FLOAT) return (element)log1p((double)x);
    float sum = 1 + (float)x, rest = (float)x - (sum - 1);
    return (element)(logarithm_float(sum) + rest / sum);
}

/* log(x) for a positive, finite and normal x: x = m 2^e with m in [sqrt(1/2), sqrt(2)], log m = 2 artanh((m - 1) / (m + 1)) as
 * a series of odd powers s with s^2 < 0.03. */
static inline double logarithm_double(double x)
{
    union {
        double value;
        uint64_t bits;
    } m = {.value = x}, e;
    uint64_t above = m.bits - UINT64_C(0x3fe6a09e667f3bcd);          /* sqrt(1/2) */
    e.bits = UINT64_C(0x4330000000000000) | ((above >> 52) ^ 0x800); /* 2^52 + the exponent + 2048 */
    double exponent = e.value - (0x1p52 + 2048.0);
    m.bits = (above & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd);
    double s = (m.value - 1) / (m.value + 1), z = s * s;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    return exponent * 0x1.62e42fefa39efp-1 + 2 * (s + s * z * p);
}

/* tanh(x) = 1 - 2 / (exp(2 |x|) + 1) with x's sign; near 0, where that cancels, an odd polynomial. */
static inline element hyperbolic_tangent(element x)
{
    if (!IS_FLOAT) return (element)tanh((double)x);
    float size = fabsf((float)x), s = (float)x * (float)x;
    float large = 1.0f - 2.0f / (exponential_float(2.0f * size) + 1.0f);
    float small = -6.11268403e-3f;
    small = small * s + 2.10097283e-2f;
    small = small * s - 5.38539961e-2f;
    small = small * s + 1.33327946e-1f;
    small = small * s - 3.33333284e-1f;
    small = size * (1.0f + small * s);
    return (element)copysignf(size < 0.625f ? small : large, (float)x);
}

/* erf(x) in float32 within 2^-23: near 0 a polynomial in x^2, times x; further out 1 - exp(-x^2) q(t), q a polynomial
 * in t = 1 / (1 + x / 2) that was fitted to exp(x^2) erfc(x) on [1, 4]. From 4 on it is 1. */
static inline element error_function(element x)
{
    if (!IS_FLOAT) return (element)erf((double)x);
    float size = fabsf((float)x), s = (float)x * (float)x, t = 1.0f / (1.0f + 0.5f * size);
    float near = 0x1.4ae4c6p-14f;
    near = near * s - 0x1.a485e8p-11f;
    near = near * s + 0x1.5419f4p-8f;
    near = near * s - 0x1.b7fbb4p-6f;
    near = near * s + 0x1.ce2d20p-4f;
    near = near * s - 0x1.81273ep-2f;
    near = near * s + 0x1.20dd74p+0f;
    float far = -0x1.d6ae12p-3f;
    far = far * t + 0x1.4486bap-1f;
    far = far * t - 0x1.f51deap-5f;
    far = far * t + 0x1.94619ap-2f;
    far = far * t + 0x1.0a7e18p-2f;
    far = far * t + 0x1.cd5850p-10f;
    far = size > 4.0f ? 1.0f : 1.0f - far * (float)exponential_of_negative((element)-s);
    return (element)(size < 1.0f ? near * (float)x : copysignf(far, (float)x));
}

#endif
