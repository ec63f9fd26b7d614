/* exp and log as log_softmax in float64 needs them: of what is at most 0, and of what is at least 1. The library's take any number, at
 * twice the instructions. Both are within some units of the last place of 1, NaN gives NaN. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_LOG_SOFTMAX64_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_LOG_SOFTMAX64_CUH

#include <cuda_runtime.h>

/* 1 / n!: |r| is at most ln 2 / 2, where the next term, r^13 / 13!, is below 2^-52. Operands of instructions, from constant memory. */
static __constant__ double exp_terms[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                                          1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,     1.0 / 6};
static __constant__ double exp_scale[] = {1.4426950408889634,
                                          6755399441055744.0 /* 1.5 2^52: the sum's low bits are an integer */,
                                          -6.93147180369123816490e-01, -1.90821492927058770002e-10};

/* e^t for t <= 0; below -708, e^-708, which nobody can tell from 0 beside a sum of at least 1. t = k ln 2 + r. */
static __device__ __forceinline__ double exp_of_negative(double t)
{
    t = t < -708.0 ? -708.0 : t;
    const double shifted = fma(t, exp_scale[0], exp_scale[1]), k = shifted - exp_scale[1];
    const double r = fma(k, exp_scale[3], fma(k, exp_scale[2], t));
    double p = exp_terms[0];
#pragma unroll
    for (int i = 1; i < 10; i++) p = fma(p, r, exp_terms[i]);
    p = fma(fma(fma(p, r, 0.5), r, 1.0), r, 1.0);
    return __hiloint2double(__double2hiint(p) + (__double2loint(shifted) << 20), __double2loint(p));
}

/* log s for s >= 1: y from float32, and what is left, log(s e^-y), from the first terms of its series. */
static __device__ __forceinline__ double log_of_sum(double s)
{
    const double y = static_cast<double>(__logf(static_cast<float>(s)));
    const double d = fma(s, exp_of_negative(-y), -1.0);
    return fma(d, fma(d, fma(d, 1.0 / 3, -0.5), 1.0), y);
}

#endif
