/* SPDX-License-Identifier: MIT */
/* log_softmax of two rows at once, in spmm_csr: two independent dependency chains hide each other's latency, and the lanes of a group
 * split the reductions and logarithms: half of them compute one row's, half the other's. A row's result does not depend on which of the
 * two it is. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_LOG_SOFTMAX_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_LOG_SOFTMAX_CUH

#include "calculators/cuda/spmm/log_softmax64.cuh"
#include "calculators/cuda/spmm/spmm.cuh"

/* Reduce both rows over a group: the lower lanes get the first row's result, the upper lanes the second's. */
template <int G, typename T, typename F>
static __device__ __forceinline__ T fold_group(const T (&both)[2], bool upper, F together)
{
    const T given = upper ? both[0] : both[1];
    T mine = together(upper ? both[1] : both[0], __shfl_xor_sync(0xffffffffu, given, G / 2));
#pragma unroll
    for (int step = G / 4; step > 0; step /= 2) mine = together(mine, __shfl_xor_sync(0xffffffffu, mine, step));
    return mine;
}

template <int G, typename T> static __device__ __forceinline__ void unfold_group(T mine, bool upper, T (&both)[2])
{
    const T other = __shfl_xor_sync(0xffffffffu, mine, G / 2);
    both[0] = upper ? other : mine;
    both[1] = upper ? mine : other;
}

/* The maximum of each row. */
template <typename T, int G>
static __device__ __forceinline__ void largest_of_rows(const pack<T> (&row)[2], int valid, bool upper, T (&largest)[2])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        largest[i] = -INFINITY;
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++)
            if (v < valid) largest[i] = fmax(largest[i], row[i].at[v]);
    }
    unfold_group<G>(fold_group<G>(largest, upper, [](T a, T b) { return fmax(a, b); }), upper, largest);
}

static __device__ __forceinline__ float upper_half(double x)
{
    return __int_as_float(__double2hiint(x));
}

/* Subtract from each row a value near its maximum, and compute the exponentials. */
template <int G>
static __device__ __forceinline__ void take_powers(pack<float> (&row)[2], int valid, bool upper,
                                                   pack<float> (&power)[2])
{
    float largest[2];
    largest_of_rows<float, G>(row, valid, upper, largest);
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int v = 0; v < 4; v++) {
            row[i].at[v] -= largest[i];
            /* the error of a rounded exponent matters little where e^t is small */
            asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power[i].at[v]) : "f"(row[i].at[v] * 1.44269504f));
        }
    }
}

static __device__ __forceinline__ bool is_tame(const pack<double> &row, int valid)
{
    const float bound = __int_as_float(0x40700000); /* upper half of 256 */
    bool tame = true;
#pragma unroll
    for (int v = 0; v < 2; v++) tame = tame && (v >= valid || fabsf(upper_half(row.at[v])) < bound);
    return tame;
}

/* True if `so` holds for all lanes of this lane's group. */
template <int G> static __device__ __forceinline__ bool is_so_for_group(bool so)
{
    const unsigned group = 0xffffffffu >> (SPMM_WARP - G) << threadIdx.x % SPMM_WARP / G * G;
    return (__ballot_sync(0xffffffffu, so) & group) == group;
}

/* If all values of a row are below 256 in magnitude, exponents need no clamping, and the maximum is needed to 20 bits only: the upper halves of
 * doubles compare like floats. Usually this holds for all rows of the warp; otherwise, each row gets the same result as it would elsewhere. */
template <int G>
static __device__ __forceinline__ void take_powers(pack<double> (&row)[2], int valid, bool upper,
                                                   pack<double> (&power)[2])
{
    const float lowest = __int_as_float(0xc0700000); /* upper half of -256 */
    if (__all_sync(0xffffffffu, is_tame(row[0], valid) && is_tame(row[1], valid))) {
        float high[2], largest[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            high[i] = lowest;
            if (valid > 0) high[i] = upper_half(row[i].at[0]);
            if (valid > 1) high[i] = fmaxf(high[i], upper_half(row[i].at[1]));
        }
        unfold_group<G>(fold_group<G>(high, upper, [](float a, float b) { return fmaxf(a, b); }), upper, largest);
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int v = 0; v < 2; v++)
                power[i].at[v] = row[i].at[v] -= __hiloint2double(__float_as_int(largest[i]), 0);
        }
    } else {
        double largest[2];
        largest_of_rows<double, G>(row, valid, upper, largest);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (is_so_for_group<G>(is_tame(row[i], valid)))
                largest[i] = __hiloint2double(__double2hiint(largest[i]), 0);
#pragma unroll
            for (int v = 0; v < 2; v++) {
                const double t = row[i].at[v] -= largest[i];
                power[i].at[v] = t < -708.0 ? -708.0 : t;
            }
        }
    }
    double t[4] = {power[0].at[0], power[0].at[1], power[1].at[0], power[1].at[1]};
    take_exp(t);
    power[0].at[0] = t[0], power[0].at[1] = t[1], power[1].at[0] = t[2], power[1].at[1] = t[3];
}

static __device__ __forceinline__ float log_of_sum(float s)
{
    return logf(s);
}

static __device__ __forceinline__ double log_of_sum(double s)
{
    return log_near(s);
}

/* For the rows that a group's lanes hold. Every lane of the warp takes part. */
template <typename T, int G> static __device__ __forceinline__ void take_log_softmax(pack<T> (&row)[2], int valid)
{
    const bool upper = (threadIdx.x & (G / 2)) != 0;
    pack<T> power[2];
    take_powers<G>(row, valid, upper, power);
    T sum[2], logarithm[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        sum[i] = valid > 0 ? power[i].at[0] : T(0);
#pragma unroll
        for (int v = 1; v < pack<T>::V; v++) sum[i] += v < valid ? power[i].at[v] : T(0);
    }
    unfold_group<G>(log_of_sum(fold_group<G>(sum, upper, [](T a, T b) { return a + b; })), upper, logarithm);
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++) row[i].at[v] -= logarithm[i];
    }
}

#endif
