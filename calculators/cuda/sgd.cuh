/* SPDX-License-Identifier: MIT */
/* The SGD update rule for one element, shared by all kernels that apply it: with gradient g, weight w, velocity v,
 *
 *   step = g + decay w;   v = momentum v + step;   w -= rate v, or rate (step + momentum v) with Nesterov momentum
 *
 * and without a velocity w -= rate step. */
#ifndef SDLF_CALCULATORS_CUDA_SGD_CUH
#define SDLF_CALCULATORS_CUDA_SGD_CUH

#include "calculators/cuda/kernels.cuh"

/* `decay` is the rule's own decay or its bias_decay. */
template <typename T>
static __device__ __forceinline__ void move(T &w, T &v, T g, T rate, const sdlf_sgd_rule &rule, float decay)
{
    T momentum = rule.momentum, step = g + T(decay) * w;
    v = momentum * v + step;
    w -= rate * (rule.nesterov ? step + momentum * v : v);
}

/* The same in memory; v may be NULL. */
template <typename T>
static __device__ __forceinline__ void move_at(T *w, T *v, T g, T rate, const sdlf_sgd_rule &rule, float decay)
{
    if (v != nullptr)
        move(*w, *v, g, rate, rule, decay);
    else
        *w -= rate * (g + T(decay) * *w);
}

/* The rest of the update after a GEMM that has computed v = momentum v + g; without Nesterov momentum. */
template <typename T> static __device__ __forceinline__ void follow_at(T *w, T *v, T rate, float decay)
{
    T velocity = *v;
    if (decay != 0) {
        velocity += T(decay) * *w;
        *v = velocity;
    }
    *w -= rate * velocity;
}

#endif
