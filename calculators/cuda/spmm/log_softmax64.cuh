/* SPDX-License-Identifier: MIT */
/* exp and log with the range and accuracy that log_softmax in float64 needs. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_LOG_SOFTMAX64_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_LOG_SOFTMAX64_CUH

#include <cuda_runtime.h>

/* e^r = 1 + r + r^2 / 2 + r^3 (...), |r| up to ln 2 / 2, to 3e-17; coefficients from r^8 on have 21 bits, which fit as immediate operands. */
static __constant__ double exp_terms[] = {0x1.a01a01b2e6b3ap-13, 0x1.6c16c1784ece4p-10, 0x1.111111110f078p-7,
                                          0x1.5555555554d48p-5,  0x1.555555555555ap-3,  -0x1.62e42fefa39efp-1};

/* t becomes e^t, from -708 to 708, to some units in the last place of the larger of e^t and 1; interleaved for all COUNT, since each
 * operation depends on the one before. */
template <int COUNT> static __device__ __forceinline__ void take_exp(double (&t)[COUNT])
{
    double p[COUNT];
    int power[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) p[i] = fma(t[i], 0x1.71547p+0, 6755399441055744.0);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        power[i] = __double2loint(p[i]) << 20;
        t[i] = fma(p[i] - 6755399441055744.0, exp_terms[5], t[i]);
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) p[i] = fma(0x1.af6e0p-26, t[i], 0x1.28a16p-22);
#pragma unroll
    for (int i = 0; i < COUNT; i++) p[i] = fma(p[i], t[i], 0x1.71ddfp-19);
#pragma unroll
    for (int i = 0; i < COUNT; i++) p[i] = fma(p[i], t[i], 0x1.a019bp-16);
#pragma unroll
    for (int n = 0; n < 5; n++) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) p[i] = fma(p[i], t[i], exp_terms[n]);
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) p[i] = fma(p[i], t[i], 0.5);
#pragma unroll
    for (int i = 0; i < COUNT; i++) p[i] = fma(p[i], t[i], 1.0);
#pragma unroll
    for (int i = 0; i < COUNT; i++) p[i] = fma(p[i], t[i], 1.0);
#pragma unroll
    for (int i = 0; i < COUNT; i++) t[i] = __hiloint2double(__double2hiint(p[i]) + power[i], __double2loint(p[i]));
}

/* log s for s from e^-64 to e^64: y in float32, plus log(s e^-y) from the first terms of its series. */
static __device__ __forceinline__ double log_near(double s)
{
    float l;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(l) : "f"(static_cast<float>(s)));
    const double y = static_cast<double>(l * 0.693147181f);
    double power[1] = {-y};
    take_exp(power);
    const double d = fma(s, power[0], -1.0);
    return fma(d, fma(d, fma(d, 0x1.55555p-2, -0.5), 1.0), y);
}

#endif
