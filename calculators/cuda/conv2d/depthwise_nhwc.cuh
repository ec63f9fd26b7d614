/* SPDX-License-Identifier: MIT */
/* What the depthwise kernels over channels that lie last share. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_NHWC_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_NHWC_CUH

#include "calculators/cuda/conv2d/clip.cuh"
#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/vectorized.cuh"

enum { QUAD = 4 }; /* neighbouring channels, which a thread makes together */

/* x (N,H,W,C), y (N,P,Q,C). */
template <typename T> struct depthwise_nhwc {
    const T *x, *w, *bias, *residual;
    T *y;
    sdlf_activation activation;
    unsigned count; /* of a kernel's tasks; numbers of y are counted in 31 bits */
    unsigned out_height;
    int batch, height, width, channels, out_width;
    int tap_step, channel_step; /* of w */
    bool ready;                 /* w was prepacked before anything ran */
    sdlf_window2d window;
};

template <typename T, int N>
static __device__ __forceinline__ vec<T, N> read_weights(const depthwise_nhwc<T> &g, int tap, int channel)
{
    const T *from = g.w + static_cast<int64_t>(tap) * g.tap_step + static_cast<int64_t>(channel) * g.channel_step;
    if (g.channel_step == 1) return read_vec<N>(from, 0);
    vec<T, N> own;
#pragma unroll
    for (int v = 0; v < N; v++) own.at[v] = from[static_cast<int64_t>(v) * g.channel_step];
    return own;
}

/* CLIPS: the activation does (conv2d/clip.cuh). Pixel (p, q) of an image, which is number `image` of y, from its sums: bias, residual, activation. */
template <bool CLIPS, typename T, int N>
static __device__ __forceinline__ void write_pixel(const depthwise_nhwc<T> &g, int64_t image, int p, int q, int channel,
                                                   vec<T, N> sum)
{
    int64_t to = ((image * g.out_height + p) * g.out_width + q) * g.channels + channel;
    vec<T, N> left_over = {};
    if (g.residual != nullptr) left_over = read_vec<N>(g.residual + to, 0);
#pragma unroll
    for (int v = 0; v < N; v++) sum.at[v] = activate_known<CLIPS>(g.activation, sum.at[v] + left_over.at[v]);
    write_vec<N>(g.y + to, 0, sum);
}

/* 3x3 windows over boxes that TMA loads, where there are many pixels and the activation clips, if it does anything
 * (conv2d/depthwise_tma.cu): true if it was launched. Addresses are multiples of 16, channels of 4. */
bool depthwise_tma_launch(const cuda_calculator *calculator, const depthwise_nhwc<float> &g);

#endif
