/* exp, tanh and erf, written without branches and calls so that the compiler makes vectors of a loop over them. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_EXPONENTIAL_H
#define SDLF_CALCULATORS_CPU_KERNELS_EXPONENTIAL_H

#include <math.h>

#include "calculators/cpu/kernels/element.h"

/* exp(x) in float32 within 2 units in the last place: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial in r, times 2^n in two
 * steps (so that results below the normal range come out right). Below -104 it is 0, above 89 infinity; NaN stays NaN. */
static inline float exponential_float(float x)
{
    const float magic = 0x1.8p23f; /* adding it rounds to an integer, which stands in the low bits */
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

static inline element exponential(element x)
{
    return IS_FLOAT ? (element)exponential_float((float)x) : (element)exp((double)x);
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

/* erf(x) in float32 within 2^-23: near 0 a polynomial in x^2, times x; further out 1 - exp(-x^2) q(t), q a polynomial in
 * t = 1 / (1 + x / 2) that was fitted to exp(x^2) erfc(x) on [1, 4]. From 4 on it is 1. */
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
    far = size > 4.0f ? 1.0f : 1.0f - far * exponential_float(-s);
    return (element)(size < 1.0f ? near * (float)x : copysignf(far, (float)x));
}

#endif
