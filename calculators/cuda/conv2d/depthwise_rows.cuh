/* SPDX-License-Identifier: MIT */
/* Depthwise convolution, one filter a channel, channels last (conv2d/depthwise_nhwc.cu): its parameters, and the kernel for large windows of few
 * pixels, in which the rows of a window are split over warps. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_ROWS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_ROWS_CUH

#include "calculators/cuda/conv2d/clip.cuh"
#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/vectorized.cuh"

enum { WARP = 32, QUAD = 4 /* neighbouring channels that a thread computes */ };

/* x (N,H,W,C), y (N,P,Q,C). */
template <typename T> struct depthwise_problem {
    const T *x, *w, *bias, *residual;
    T *y;
    sdlf_activation activation;
    unsigned count; /* tasks of the kernel; elements of y are counted in 31 bits */
    unsigned out_height;
    int batch, height, width, channels, out_width;
    int tap_step, channel_step; /* strides of w in elements */
    bool ready;                 /* w was prepacked before anything ran */
    sdlf_window2d window;
};

template <typename T, int N>
static __device__ __forceinline__ vec<T, N> read_weights(const depthwise_problem<T> &g, int tap, int channel)
{
    const T *from = g.w + static_cast<int64_t>(tap) * g.tap_step + static_cast<int64_t>(channel) * g.channel_step;
    if (g.channel_step == 1) return read_vec<N>(from, 0);
    vec<T, N> own;
#pragma unroll
    for (int v = 0; v < N; v++) own.at[v] = from[static_cast<int64_t>(v) * g.channel_step];
    return own;
}

/* Store pixel (p, q) of image `image` of y from its sums, after residual and activation. CLIPS: the activation is SDLF_CLIP (conv2d/clip.cuh). */
template <bool CLIPS, typename T, int N>
static __device__ __forceinline__ void write_pixel(const depthwise_problem<T> &g, int64_t image, int p, int q,
                                                   int channel, vec<T, N> sum)
{
    int64_t to = ((image * g.out_height + p) * g.out_width + q) * g.channels + channel;
    vec<T, N> left_over = {};
    if (g.residual != nullptr) left_over = read_vec<N>(g.residual + to, 0);
#pragma unroll
    for (int v = 0; v < N; v++) sum.at[v] = activate_known<CLIPS>(g.activation, sum.at[v] + left_over.at[v]);
    write_vec<N>(g.y + to, 0, sum);
}

/* Each of the SIDE warps of a block computes one row of the windows, so that all loads are in flight at once; lane i of each warp has the same 4
 * channels of the same strip. The rows' sums are added in shared memory, in order. */
template <int STRIP, int SIDE, int STRIDE, bool CLIPS>
static __global__ void __launch_bounds__(SIDE *WARP)
    depthwise_nhwc_rows(const __grid_constant__ depthwise_problem<float> g)
{
    constexpr int COLUMNS = (STRIP - 1) * STRIDE + SIDE;
    using quad = vec<float, QUAD>;
    __shared__ quad sums[SIDE][STRIP][WARP];
    launch_dependent_grids();
    const int lane = static_cast<int>(threadIdx.x) % WARP, r = static_cast<int>(threadIdx.x) / WARP;
    const unsigned task = blockIdx.x * WARP + lane, vectors = static_cast<unsigned>(g.channels / QUAD);
    const unsigned strips = (g.out_width + STRIP - 1) / STRIP;
    const bool is_there = task < g.count;
    const int channel = static_cast<int>(task % vectors) * QUAD;
    unsigned rest = task / vectors;
    const int q = static_cast<int>(rest % strips) * STRIP;
    rest /= strips;
    const int p = static_cast<int>(rest % g.out_height);
    const int64_t image = rest / g.out_height;
    const int h = p * STRIDE - g.window.padding_before[0] + r, left = q * STRIDE - g.window.padding_before[1];
    quad own[SIDE] = {}, value[COLUMNS] = {}, sum[STRIP] = {};
    if (!g.ready) wait_on_dependent_grids();
    if (is_there) {
#pragma unroll
        for (int s = 0; s < SIDE; s++) own[s] = read_weights<float, QUAD>(g, r * SIDE + s, channel);
    }
    if (g.ready) wait_on_dependent_grids();
    if (is_there && static_cast<unsigned>(h) < static_cast<unsigned>(g.height)) {
        const float *row = g.x + (image * g.height + h) * g.width * g.channels + channel;
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            if (static_cast<unsigned>(left + i) < static_cast<unsigned>(g.width))
                value[i] = read_vec<QUAD>(row + static_cast<int64_t>(left + i) * g.channels, 0);
        }
    }
#pragma unroll
    for (int i = 0; i < STRIP; i++) {
#pragma unroll
        for (int s = 0; s < SIDE; s++) {
#pragma unroll
            for (int v = 0; v < QUAD; v++) sum[i].at[v] += own[s].at[v] * value[i * STRIDE + s].at[v];
        }
        sums[r][i][lane] = sum[i];
    }
    __syncthreads();
    if (r >= STRIP || !is_there || q + r >= g.out_width) return; /* warp i adds the rows of pixel i */
    quad all = {};
    if (g.bias != nullptr) all = read_vec<QUAD>(g.bias + channel, 0);
#pragma unroll
    for (int k = 0; k < SIDE; k++) {
#pragma unroll
        for (int v = 0; v < QUAD; v++) all.at[v] += sums[k][r][lane].at[v];
    }
    write_pixel<CLIPS>(g, image, p, q + r, channel, all);
}

template <int STRIP, int SIDE, int STRIDE>
static void launch_rows_of(const cuda_calculator *calculator, depthwise_problem<float> g, int64_t rows)
{
    g.count = static_cast<unsigned>(rows * cuda_ceil_div(g.out_width, STRIP) * (g.channels / QUAD));
    auto kernel = make_clip(&g.activation) ? depthwise_nhwc_rows<STRIP, SIDE, STRIDE, true>
                                           : depthwise_nhwc_rows<STRIP, SIDE, STRIDE, false>;
    launch_overlapped(calculator, kernel, dim3(static_cast<unsigned>(cuda_ceil_div(g.count, WARP))), dim3(SIDE * WARP),
                      0, g);
}

/* Strips are as long as still leaves a block for each multiprocessor. */
template <int SIDE, int STRIDE>
static void launch_rows(const cuda_calculator *calculator, const depthwise_problem<float> &g, int64_t rows)
{
    const int64_t vectors = rows * (g.channels / QUAD),
                  enough = static_cast<int64_t>(calculator->multiprocessors) * WARP;
    if (vectors * cuda_ceil_div(g.out_width, 4) >= enough)
        launch_rows_of<4, SIDE, STRIDE>(calculator, g, rows);
    else if (vectors * cuda_ceil_div(g.out_width, 2) >= enough)
        launch_rows_of<2, SIDE, STRIDE>(calculator, g, rows);
    else
        launch_rows_of<1, SIDE, STRIDE>(calculator, g, rows);
}

#endif
