/* SPDX-License-Identifier: MIT */
/* All activation functions, each a branch-free loop that the compiler vectorises. log and erf in float64 remain calls.
 * Comparisons are written so that NaN propagates. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/exponential.h"

/* x -> f(x), for functions that need only x and the options. */
static inline element sigmoid(element x)
{
    return 1 / (1 + exponential(-x));
}

static inline element clamp(element x, element low, element high)
{
    element raised = x < low ? low : x;
    return raised > high ? high : raised;
}

static inline element hard_swish(element x)
{
    return x * clamp(x * (element)(1.0 / 6) + (element)0.5, 0, 1);
}

/* With e = exp(x), tanh(log(1 + e)) = n / (n + 2), n = e (e + 2). Above 20 it is 1, long before e^2 overflows. */
static inline element mish(element x)
{
    element e = exponential(x > 20 ? 20 : x), n = e * (e + 2);
    return x > 20 ? x : x * (n / (n + 2));
}

static inline element gelu_tanh(element x)
{
    element u = (element)0.79788456080286535588 * (x + (element)0.044715 * x * x * x);
    return (element)0.5 * x * (1 + hyperbolic_tangent(u));
}

static inline element softplus(element x)
{
    element e = exponential(x > 0 ? -x : x);
    return (x < 0 ? 0 : x) + logarithm_of_one_and(e);
}

static inline element absolute(element x)
{
    return IS_FLOAT ? (element)fabsf((float)x) : (element)fabs((double)x);
}

static inline element below(element x)
{
    return IS_FLOAT ? (element)floorf((float)x) : (element)floor((double)x);
}

static inline element above(element x)
{
    return IS_FLOAT ? (element)ceilf((float)x) : (element)ceil((double)x);
}

static inline element nearest(element x)
{
    return IS_FLOAT ? (element)rintf((float)x) : (element)rint((double)x);
}

static inline element root(element x)
{
    return IS_FLOAT ? (element)sqrtf((float)x) : (element)sqrt((double)x);
}

/* Functions from SDLF_SIN on, from the C library. */
static const struct {
    float (*of_float)(float);
    double (*of_double)(double);
} library[] = {
    {sinf, sin},   {cosf, cos},   {tanf, tan},     {asinf, asin},   {acosf, acos},   {atanf, atan},
    {sinhf, sinh}, {coshf, cosh}, {asinhf, asinh}, {acoshf, acosh}, {atanhf, atanh},
};

static void call_library(element *y, const element *x, int64_t count, sdlf_activation_function function)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = IS_FLOAT ? (element)library[function - SDLF_SIN].of_float((float)x[i])
                        : (element)library[function - SDLF_SIN].of_double((double)x[i]);
}

/* ---- for the few elements of a GEMM tile's epilogue: separate functions, with a shorter prologue ---- */

static inline __attribute__((always_inline)) vector sigmoid_lanes(vector x)
{
    return 1 / (1 + exponential_lanes(-x));
}

/* For x far below 0 the sigmoid is about 2^-127: the factor x is clamped to -100, so that the result stays negligible. */
static inline __attribute__((always_inline)) vector silu_lanes(vector x)
{
    vector above = clamp_lanes(x, broadcast(-100), broadcast((element)INFINITY));
    return above * sigmoid_lanes(x);
}

/* Like hyperbolic_tangent. */
static inline __attribute__((always_inline)) vector tanh_lanes(vector x)
{
    lanes_mask sign = (lanes_mask)broadcast(-(element)0.0) & (lanes_mask)x;
    vector size = (vector)((lanes_mask)x ^ sign), s = x * x;
    vector large = 1 - 2 / (exponential_lanes(2 * size) + 1);
    vector small = s * (element)-6.11268403e-3 + (element)2.10097283e-2;
    small = small * s - (element)5.38539961e-2;
    small = small * s + (element)1.33327946e-1;
    small = small * s - (element)3.33333284e-1;
    small = size * (1 + small * s);
    return (vector)((lanes_mask)choose(size < (element)0.625, small, large) | sign);
}

static __attribute__((noinline)) void sigmoid_of(element *y, const element *x, int64_t count)
{
    int64_t i = 0;
    for (; IS_FLOAT && i + LANES <= count; i += LANES) store(y + i, sigmoid_lanes(load(x + i)));
#pragma omp simd
    for (int64_t j = i; j < count; j++) y[j] = sigmoid(x[j]);
}

static __attribute__((noinline)) void tanh_of(element *y, const element *x, int64_t count)
{
    int64_t i = 0;
    for (; IS_FLOAT && i + LANES <= count; i += LANES) store(y + i, tanh_lanes(load(x + i)));
#pragma omp simd
    for (int64_t j = i; j < count; j++) y[j] = hyperbolic_tangent(x[j]);
}

static __attribute__((noinline)) void silu_of(element *y, const element *x, int64_t count)
{
    int64_t i = 0;
    for (; IS_FLOAT && i + LANES <= count; i += LANES) store(y + i, silu_lanes(load(x + i)));
#pragma omp simd
    for (int64_t j = i; j < count; j++) y[j] = (IS_FLOAT && x[j] < -100 ? -100 : x[j]) * sigmoid(x[j]);
}

static __attribute__((noinline)) void hard_swish_of(element *y, const element *x, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) y[i] = hard_swish(x[i]);
}

static __attribute__((noinline)) void gelu_of(element *y, const element *x, int64_t count)
{
    const element half = (element)0.5, half_root = (element)0.70710678118654752440;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) y[i] = half * x[i] * (1 + error_function(x[i] * half_root));
}

/* ---- the general path ---- */

static __attribute__((noinline)) void activate_with(element *y, const element *x, int64_t count,
                                                    const sdlf_activation *activation)
{
    element low = (element)activation->low, high = (element)activation->high, slope = (element)activation->slope;
    element alpha = (element)activation->alpha, beta = (element)activation->beta;
    switch (activation->function) {
    case SDLF_RELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = x[i] < 0 ? 0 : x[i];
        break;
    case SDLF_CLIP:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = clamp(x[i], low, high);
        break;
    case SDLF_LEAKY_RELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = x[i] > 0 ? x[i] : slope * x[i];
        break;
    case SDLF_ELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = x[i] > 0 ? x[i] : alpha * (exponential(x[i]) - 1);
        break;
    case SDLF_SELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = beta * (x[i] > 0 ? x[i] : alpha * (exponential(x[i]) - 1));
        break;
    case SDLF_CELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = x[i] > 0 ? x[i] : alpha * (exponential(x[i] / alpha) - 1);
        break;
    case SDLF_GELU_TANH:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = gelu_tanh(x[i]);
        break;
    case SDLF_MISH:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = mish(x[i]);
        break;
    case SDLF_SOFTPLUS:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = softplus(x[i]);
        break;
    case SDLF_SOFTSIGN:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = x[i] / (1 + absolute(x[i]));
        break;
    case SDLF_HARD_SIGMOID:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = clamp(alpha * x[i] + beta, 0, 1);
        break;
    case SDLF_ERF:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = error_function(x[i]);
        break;
    case SDLF_SQRT:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = root(x[i]);
        break;
    case SDLF_EXP:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = exponential(x[i]);
        break;
    case SDLF_LOG:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = logarithm(x[i]);
        break;
    case SDLF_ABS:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = absolute(x[i]);
        break;
    case SDLF_NEGATE:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = -x[i];
        break;
    case SDLF_RECIPROCAL:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = 1 / x[i];
        break;
    case SDLF_FLOOR:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = below(x[i]);
        break;
    case SDLF_CEIL:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = above(x[i]);
        break;
    case SDLF_ROUND:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = nearest(x[i]);
        break;
    case SDLF_SIN:
    case SDLF_COS:
    case SDLF_TAN:
    case SDLF_ASIN:
    case SDLF_ACOS:
    case SDLF_ATAN:
    case SDLF_SINH:
    case SDLF_COSH:
    case SDLF_ASINH:
    case SDLF_ACOSH:
    case SDLF_ATANH: call_library(y, x, count, activation->function); break;
    case SDLF_SIGN:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = x[i] > 0 ? 1 : x[i] < 0 ? -1 : x[i]; /* NaN is preserved */
        break;
    default:
        if (y != x) memcpy(y, x, (size_t)count * sizeof *y);
        break;
    }
}

void activate_cpu(element *y, const element *x, int64_t count, const sdlf_activation *activation)
{
    switch (activation->function) {
    case SDLF_SIGMOID: sigmoid_of(y, x, count); break;
    case SDLF_TANH: tanh_of(y, x, count); break;
    case SDLF_SILU: silu_of(y, x, count); break;
    case SDLF_HARD_SWISH: hard_swish_of(y, x, count); break;
    case SDLF_GELU: gelu_of(y, x, count); break;
    default: activate_with(y, x, count, activation); break;
    }
}
