/* SPDX-License-Identifier: MIT */
/* dx = dy f'(x) for all activation functions, from y or from x as specified in <sdlf/operations/elementwise.h>. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/exponential.h"

static inline element sigmoid(element x)
{
    return 1 / (1 + exponential(-x));
}

static inline element silu_slope(element x)
{
    element s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

static inline element hard_swish_slope(element x)
{
    element inside = x * (element)(1.0 / 3) + (element)0.5;
    return x <= -3 ? 0 : x >= 3 ? 1 : inside;
}

/* P(x) + x p(x), with p the normal density and P its integral. */
static inline element gelu_slope(element x)
{
    element normal = (element)0.5 * (1 + error_function(x * (element)0.70710678118654752440));
    return normal + x * (element)0.39894228040143267794 * exponential((element)-0.5 * x * x);
}

/* Beyond +-30 the slope is 0 or 1, long before x^3 overflows. */
static inline element gelu_tanh_slope(element wide)
{
    const element scale = (element)0.79788456080286535588, cubic = (element)0.044715;
    element raised = wide < -30 ? -30 : wide, x = raised > 30 ? 30 : raised;
    element t = hyperbolic_tangent(scale * (x + cubic * x * x * x));
    return (element)0.5 * (1 + t) + (element)0.5 * x * (1 - t * t) * scale * (1 + 3 * cubic * x * x);
}

static inline element mish_slope(element x)
{
    element e = exponential(x > 20 ? 20 : x), n = e * (e + 2);
    element t = x > 20 ? 1 : n / (n + 2);
    return t + x * (1 - t * t) * sigmoid(x);
}

static inline element square_of_distance(element y)
{
    element rest = 1 - (IS_FLOAT ? (element)fabsf((float)y) : (element)fabs((double)y));
    return rest * rest;
}

/* Slopes of the functions from SDLF_SIN on; v is x, but for tan y. */
static element rare_slope(sdlf_activation_function function, element v)
{
    double x = (double)v, slope;
    switch (function) {
    case SDLF_SIN: slope = cos(x); break;
    case SDLF_COS: slope = -sin(x); break;
    case SDLF_TAN: slope = 1 + x * x; break;
    case SDLF_ASIN: slope = 1 / sqrt((1 - x) * (1 + x)); break;
    case SDLF_ACOS: slope = -1 / sqrt((1 - x) * (1 + x)); break;
    case SDLF_ATAN: slope = 1 / (1 + x * x); break;
    case SDLF_SINH: slope = cosh(x); break;
    case SDLF_COSH: slope = sinh(x); break;
    case SDLF_ASINH: slope = 1 / sqrt(x * x + 1); break;
    case SDLF_ACOSH: slope = 1 / sqrt((x - 1) * (x + 1)); break;
    default: slope = 1 / ((1 - x) * (1 + x)); break; /* atanh */
    }
    return (element)slope;
}

void activation_gradient_cpu(element *dx, const element *v, const element *dy, int64_t count,
                             const sdlf_activation *activation)
{
    element low = (element)activation->low, high = (element)activation->high, slope = (element)activation->slope;
    element alpha = (element)activation->alpha, beta = (element)activation->beta;
    switch (activation->function) {
    case SDLF_RELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = v[i] > 0 ? dy[i] : 0;
        break;
    case SDLF_CLIP:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = ((v[i] > low) & (v[i] < high)) ? dy[i] : 0;
        break;
    case SDLF_LEAKY_RELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = v[i] > 0 ? dy[i] : slope * dy[i];
        break;
    case SDLF_SIGMOID:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * (v[i] * (1 - v[i]));
        break;
    case SDLF_TANH:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * (1 - v[i] * v[i]);
        break;
    case SDLF_SILU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * silu_slope(v[i]);
        break;
    case SDLF_HARD_SWISH:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * hard_swish_slope(v[i]);
        break;
    case SDLF_ELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = v[i] > 0 ? dy[i] : dy[i] * (v[i] + alpha);
        break;
    case SDLF_SELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = v[i] > 0 ? dy[i] * beta : dy[i] * (v[i] + alpha * beta);
        break;
    case SDLF_CELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = v[i] > 0 ? dy[i] : dy[i] * (v[i] / alpha + 1);
        break;
    case SDLF_GELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * gelu_slope(v[i]);
        break;
    case SDLF_GELU_TANH:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * gelu_tanh_slope(v[i]);
        break;
    case SDLF_MISH:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * mish_slope(v[i]);
        break;
    case SDLF_SOFTPLUS:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * (1 - exponential(-v[i]));
        break;
    case SDLF_SOFTSIGN:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * square_of_distance(v[i]);
        break;
    case SDLF_HARD_SIGMOID:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = ((v[i] > 0) & (v[i] < 1)) ? alpha * dy[i] : 0;
        break;
    case SDLF_ERF:
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            dx[i] = dy[i] * (element)1.12837916709551257390 * exponential(-(v[i] * v[i]));
        break;
    case SDLF_SQRT:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] / (2 * v[i]);
        break;
    case SDLF_EXP:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * v[i];
        break;
    case SDLF_LOG:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] / v[i];
        break;
    case SDLF_ABS:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = v[i] > 0 ? dy[i] : v[i] < 0 ? -dy[i] : 0;
        break;
    case SDLF_NEGATE:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = -dy[i];
        break;
    case SDLF_RECIPROCAL:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] = -(dy[i] * v[i] * v[i]);
        break;
    case SDLF_FLOOR:
    case SDLF_CEIL:
    case SDLF_ROUND:
    case SDLF_SIGN: memset(dx, 0, (size_t)count * sizeof *dx); break;
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
    case SDLF_ATANH:
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * rare_slope(activation->function, v[i]);
        break;
    default:
        if (dx != dy) memcpy(dx, dy, (size_t)count * sizeof *dx);
        break;
    }
}
