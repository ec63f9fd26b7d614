/* SPDX-License-Identifier: MIT */
/* What depthwise kernels share in which a block has some channels of many runs of pixels, with these channels' weights, as float32, in shared
 * memory. */
#ifndef SDLF_CALCULATORS_CUDA_NHWC_DEPTHWISE_RUNS_CUH
#define SDLF_CALCULATORS_CUDA_NHWC_DEPTHWISE_RUNS_CUH

#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/nhwc/depthwise.cuh"

enum { RUN_THREADS = 256, MOST_VECTORS = 16 };

/* Load the weights of the block's channels into shared memory: shared[tap][across * 8]. */
template <typename T> static __device__ void bring_weights(const depthwise_conv &g, float *shared, int first)
{
    const int taps = g.size[0] * g.size[1], channels = g.across * VECTOR;
    for (int i = static_cast<int>(threadIdx.x); i < taps * channels; i += RUN_THREADS) {
        const int tap = i / channels, c = first * VECTOR + i - tap * channels;
        const int from = g.flipped ? taps - 1 - tap : tap;
        shared[i] = c < g.vectors * VECTOR
                        ? static_cast<float>(static_cast<const T *>(g.w)[static_cast<int64_t>(c) * taps + from])
                        : 0.0f;
    }
}

template <typename T>
static __device__ __forceinline__ void finish(const depthwise_conv &g, float8 sum, int vector, int64_t to)
{
    if (g.bias != nullptr) {
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] += g.bias[vector * VECTOR + v];
    }
    if (g.residual != nullptr) {
        const float8 more = load8(static_cast<const T *>(g.residual), to);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] += more.at[v];
    }
    with_activation<T>(g.activation, [&](auto f) {
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] = f(sum.at[v]);
    });
    store8(static_cast<T *>(g.y), to, sum);
}

static __device__ __forceinline__ void multiply(float8 &sum, const float8 &x, const float *w)
{
#pragma unroll
    for (int v = 0; v < VECTOR; v++) sum.at[v] = fmaf(x.at[v], w[v], sum.at[v]);
}

/* Launch over an image's `down` rows of `along` runs each. */
template <typename T>
static void launch_runs(const cuda_calculator *calculator, depthwise_conv g, void (*kernel)(depthwise_conv), int down,
                        int along)
{
    g.across = depthwise_conv_across(g.vectors, MOST_VECTORS);
    g.run_columns = divider<int32_t>(along);
    g.run_rows = divider<int32_t>(down);
    g.runs = static_cast<int64_t>(g.batch) * down * along;
    const int64_t lines = RUN_THREADS / g.across, groups = (g.vectors + g.across - 1) / g.across;
    int64_t blocks = (g.runs + lines - 1) / lines, most = 8 * calculator->multiprocessors / groups + 1;
    if (blocks > most) blocks = most;
    const int shared = g.size[0] * g.size[1] * g.across * VECTOR * static_cast<int>(sizeof(float));
    launch_overlapped(calculator, kernel, dim3(static_cast<unsigned>(groups), static_cast<unsigned>(blocks)),
                      dim3(RUN_THREADS), shared, g);
}

#endif
