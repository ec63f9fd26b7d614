/* Activation functions on runs of elements: y = f(x), x may be y. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_ACTIVATE_H
#define SDLF_CALCULATORS_CPU_KERNELS_ACTIVATE_H

#include "calculators/cpu/kernels/exponential.h"

/* Comparisons are written so that NaN passes through. */
static inline void activate(element *y, const element *x, int64_t count, const sdlf_activation *activation)
{
    element low = (element)activation->low, high = (element)activation->high, slope = (element)activation->slope;
    switch (activation->function) {
    case SDLF_RELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = x[i] < 0 ? 0 : x[i];
        break;
    case SDLF_CLIP:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            element raised = x[i] < low ? low : x[i];
            y[i] = raised > high ? high : raised;
        }
        break;
    case SDLF_LEAKY_RELU:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = x[i] > 0 ? x[i] : slope * x[i];
        break;
    case SDLF_SIGMOID:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = 1 / (1 + exponential(-x[i]));
        break;
    case SDLF_TANH:
#pragma omp simd
        for (int64_t i = 0; i < count; i++) y[i] = hyperbolic_tangent(x[i]);
        break;
    default:
        if (y != x) memcpy(y, x, (size_t)count * sizeof *y);
        break;
    }
}

#endif
