/* SPDX-License-Identifier: MIT */
/* Depthwise convolution, one filter a channel, channels last: inference.
 *
 * x (N,H,W,C) -> y (N,P,Q,C). A thread computes up to 4 neighbouring channels of STRIP neighbouring pixels of a row; neighbouring lanes have
 * neighbouring channels, so that a warp reads whole cache lines. What strips and rows share is read from caches. With many pixels and 3x3
 * windows, TMA tiles (nhwc/depthwise_tma.cu) are used instead; with few pixels and large windows, conv2d/depthwise_rows.cuh. Weights are (R S, C)
 * if prepacked, else the operation's own (C, R S). Moves
 * 4 (NHWC + NPQC) bytes; memory and launch overhead are the bound. */
#include "calculators/cuda/conv2d/depthwise_rows.cuh"
#include "calculators/cuda/nhwc/depthwise.cuh"

enum { THREADS = 256 };

/* One 3x3 window of one pixel, where there are too few pixels to keep memory busy: all loads are issued at once. */
template <typename T, int N, int SIDE>
static __device__ __forceinline__ void add_window(const depthwise_problem<T> &g, const T *from, int top, int left,
                                                  int channel, vec<T, N> &sum)
{
    vec<T, N> value[SIDE][SIDE], own[SIDE][SIDE];
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
        bool row = static_cast<unsigned>(top + r) < static_cast<unsigned>(g.height);
#pragma unroll
        for (int s = 0; s < SIDE; s++) {
            bool inside = row && static_cast<unsigned>(left + s) < static_cast<unsigned>(g.width);
            value[r][s] = {};
            if (inside)
                value[r][s] = read_vec<N>(from + (static_cast<int64_t>(top + r) * g.width + left + s) * g.channels, 0);
            own[r][s] = read_weights<T, N>(g, r * SIDE + s, channel);
        }
    }
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
#pragma unroll
        for (int s = 0; s < SIDE; s++) {
#pragma unroll
            for (int v = 0; v < N; v++) sum.at[v] += own[r][s].at[v] * value[r][s].at[v];
        }
    }
}

/* N channels a thread; SIDE x SIDE windows with that stride, or, where SIDE is 0, any window. */
template <typename T, int N, int STRIP, int SIDE, int STRIDE, bool CLIPS>
static __global__ void __launch_bounds__(THREADS) depthwise_nhwc_forward(const __grid_constant__ depthwise_problem<T> g)
{
    launch_dependent_grids();
    constexpr bool ONE = SIDE == 3 && STRIP == 1;
    constexpr int UNROLLED = SIDE > 5 ? 1 : SIDE + 1; /* rows of a window; more would exceed the instruction cache */
    const sdlf_window2d &window = g.window;
    const int rows = SIDE > 0 ? SIDE : window.size[0], columns = SIDE > 0 ? SIDE : window.size[1];
    const unsigned vectors = static_cast<unsigned>(g.channels / N), strips = (g.out_width + STRIP - 1) / STRIP;
    wait_on_dependent_grids();
    for (unsigned e = static_cast<unsigned>(grid_first()); e < g.count; e += static_cast<unsigned>(grid_step())) {
        int channel = static_cast<int>(e % vectors) * N;
        unsigned rest = e / vectors;
        int q = static_cast<int>(rest % strips) * STRIP;
        rest /= strips;
        int p = static_cast<int>(rest % g.out_height);
        int64_t image = rest / g.out_height;
        const T *from = g.x + image * g.height * g.width * g.channels + channel;
        int top = p * window.stride[0] - window.padding_before[0],
            left = q * window.stride[1] - window.padding_before[1];
        vec<T, N> sum[STRIP] = {};
        if constexpr (ONE) add_window<T, N, SIDE>(g, from, top, left, channel, sum[0]);
#pragma unroll(UNROLLED)
        for (int r = 0; !ONE && r < rows; r++) {
            int h = top + r * (SIDE > 0 ? 1 : window.dilation[0]);
            if (static_cast<unsigned>(h) >= static_cast<unsigned>(g.height)) continue;
            const T *row = from + static_cast<int64_t>(h) * g.width * g.channels;
            if constexpr (SIDE > 0) {
                vec<T, N> value[(STRIP - 1) * STRIDE + SIDE];
#pragma unroll
                for (int i = 0; i < (STRIP - 1) * STRIDE + SIDE; i++) {
                    int w = left + i;
                    value[i] = {};
                    if (static_cast<unsigned>(w) < static_cast<unsigned>(g.width))
                        value[i] = read_vec<N>(row + static_cast<int64_t>(w) * g.channels, 0);
                }
#pragma unroll
                for (int s = 0; s < SIDE; s++) {
                    vec<T, N> own = read_weights<T, N>(g, r * SIDE + s, channel);
#pragma unroll
                    for (int i = 0; i < STRIP; i++) {
#pragma unroll
                        for (int v = 0; v < N; v++) sum[i].at[v] += own.at[v] * value[i * STRIDE + s].at[v];
                    }
                }
            } else {
                for (int s = 0; s < columns; s++) {
                    vec<T, N> own = read_weights<T, N>(g, r * columns + s, channel);
#pragma unroll
                    for (int i = 0; i < STRIP; i++) {
                        int w = left + i * window.stride[1] + s * window.dilation[1];
                        if (static_cast<unsigned>(w) >= static_cast<unsigned>(g.width)) continue;
                        vec<T, N> value = read_vec<N>(row + static_cast<int64_t>(w) * g.channels, 0);
#pragma unroll
                        for (int v = 0; v < N; v++) sum[i].at[v] += own.at[v] * value.at[v];
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < STRIP; i++) {
            if (q + i >= g.out_width) break;
#pragma unroll
            for (int v = 0; v < N; v++) sum[i].at[v] += g.bias != nullptr ? g.bias[channel + v] : T(0);
            write_pixel<CLIPS>(g, image, p, q + i, channel, sum[i]);
        }
    }
}

template <typename T, int N, int STRIP, int SIDE, int STRIDE>
static void launch(const cuda_calculator *calculator, depthwise_problem<T> g, int64_t rows)
{
    g.count = static_cast<unsigned>(rows * ((g.out_width + STRIP - 1) / STRIP) * (g.channels / N));
    auto kernel = make_clip(&g.activation) ? depthwise_nhwc_forward<T, N, STRIP, SIDE, STRIDE, true>
                                           : depthwise_nhwc_forward<T, N, STRIP, SIDE, STRIDE, false>;
    launch_overlapped(calculator, kernel, dim3(cuda_blocks(calculator, g.count, THREADS)), dim3(THREADS), 0, g);
}

/* Strips are as long as still leaves enough of them to fill the device. */
template <int SIDE, int STRIDE>
static void launch_fixed(const cuda_calculator *calculator, const depthwise_problem<float> &g, int64_t rows)
{
    int64_t quads = rows * g.out_width * (g.channels / QUAD), enough = (int64_t)calculator->multiprocessors * 512;
    if (quads >= 4 * enough)
        launch<float, QUAD, 4, SIDE, STRIDE>(calculator, g, rows);
    else if (quads >= 2 * enough)
        launch<float, QUAD, 2, SIDE, STRIDE>(calculator, g, rows);
    else if constexpr (SIDE > 3)
        launch_rows<SIDE, STRIDE>(calculator, g, rows);
    else
        launch<float, QUAD, 1, SIDE, STRIDE>(calculator, g, rows);
}

template <typename T>
static void launch_any(const cuda_calculator *calculator, const depthwise_problem<T> &g, int64_t rows, bool quads)
{
    if (quads)
        launch<T, QUAD, 1, 0, 1>(calculator, g, rows);
    else
        launch<T, 1, 1, 0, 1>(calculator, g, rows);
}

static void launch_suited(const cuda_calculator *calculator, const depthwise_problem<float> &g, int64_t rows,
                          bool quads)
{
    const sdlf_window2d &window = g.window;
    bool plain = quads && window.size[0] == window.size[1] && window.stride[0] == window.stride[1] &&
                 window.dilation[0] == 1 && window.dilation[1] == 1;
    int side = plain ? window.size[0] : 0, stride = window.stride[0];
    if (side == 3 && stride == 1)
        launch_fixed<3, 1>(calculator, g, rows);
    else if (side == 3 && stride == 2)
        launch_fixed<3, 2>(calculator, g, rows);
    else if (side == 5 && stride == 1)
        launch_fixed<5, 1>(calculator, g, rows);
    else if (side == 5 && stride == 2)
        launch_fixed<5, 2>(calculator, g, rows);
    else if (side == 7 && stride == 1)
        launch_fixed<7, 1>(calculator, g, rows);
    else
        launch_any(calculator, g, rows, quads);
}

static void launch_suited(const cuda_calculator *calculator, const depthwise_problem<double> &g, int64_t rows,
                          bool quads)
{
    launch_any(calculator, g, rows, quads);
}

static bool launch_by_tma(const cuda_calculator *calculator, const sdlf_operation *op,
                          const depthwise_problem<float> &g)
{
    depthwise_conv by_tma = depthwise_conv_of(op);
    by_tma.x = g.x;
    by_tma.w = g.w;
    by_tma.y = g.y;
    by_tma.by_taps = by_tma.ready = g.ready;
    return depthwise_tma_launch<float>(calculator, by_tma);
}

static bool launch_by_tma(const cuda_calculator *, const sdlf_operation *, const depthwise_problem<double> &)
{
    return false;
}

/* Transpose w (C, R S) to (R S, C). */
template <typename T> static __global__ void turn_weights(const T *w, T *to, int channels, int taps)
{
    for (int64_t e = grid_first(); e < static_cast<int64_t>(channels) * taps; e += grid_step())
        to[e] = w[e % channels * taps + e / channels];
}

static bool is_aligned(const void *address, size_t bytes)
{
    return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

extern "C" sdlf_status conv2d_depthwise_nhwc_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d geometry = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        bool ready = sdlf_tensor_present(&op->prepared);
        int taps = geometry.window.size[0] * geometry.window.size[1];
        depthwise_problem<T> g = {};
        g.x = data_of<T>(op->in[0]);
        g.w = ready ? data_of<T>(op->prepared) : data_of<T>(op->in[1]);
        g.bias = optional<T>(op->in[2]);
        g.residual = optional<T>(op->in[3]);
        g.y = data_of<T>(op->out[0]);
        g.activation = op->conv2d.activation;
        g.ready = ready;
        g.batch = static_cast<int>(geometry.batch);
        g.height = static_cast<int>(geometry.height);
        g.width = static_cast<int>(geometry.width);
        g.channels = static_cast<int>(geometry.channels);
        g.out_height = static_cast<unsigned>(geometry.out_height);
        g.out_width = static_cast<int>(geometry.out_width);
        g.tap_step = ready ? g.channels : 1;
        g.channel_step = ready ? 1 : taps;
        g.window = geometry.window;
        size_t bytes = QUAD * sizeof(T);
        bool quads = g.channels % QUAD == 0 && is_aligned(g.x, bytes) && is_aligned(g.w, bytes) &&
                     is_aligned(g.y, bytes) && is_aligned(g.residual, bytes) && is_aligned(g.bias, bytes);
        if (quads && launch_by_tma(calculator, op, g)) return;
        launch_suited(calculator, g, geometry.batch * geometry.out_height, quads);
    });
    return cuda_check_launch("conv2d, depthwise, channels last");
}

extern "C" sdlf_status conv2d_depthwise_nhwc_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &w = op->in[1];
    int64_t count = sdlf_tensor_count(&w);
    if (count == 0) return SDLF_OK;
    with_float(w.dtype, [&](auto zero) {
        using T = decltype(zero);
        turn_weights<<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(w), data_of<T>(op->prepared), static_cast<int>(w.shape.dim[0]),
            static_cast<int>(w.shape.dim[2] * w.shape.dim[3]));
    });
    return cuda_check_launch("conv2d, depthwise, prepacked weights");
}
