/* SPDX-License-Identifier: MIT */
/* Depthwise convolution, channels last: x (N,H,W,C), w (C,R,S), y (N,P,Q,C), C a multiple of 8, sums in float32. It moves
 * its images once; what neighbouring threads read again comes from caches.
 *
 * Forward and gradient by the input: a thread has 8 channels of RUN neighbouring pixels of the result; a block has the same few channels
 * of many such runs, and their weights, as float32, in shared memory. The gradient by the input of stride 1 is a convolution with the
 * weights from the last to the first; of other strides a thread looks for the taps that reach its pixel. Filters of 3x3,
 * 5x5 and 7x7 have code of their own; those that nhwc/depthwise_tma.cu or nhwc/depthwise_sliding.cu takes are theirs. */
#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/nhwc/depthwise.cuh"

#include <utility>

enum { THREADS = 256, RUN = 4, MOST_VECTORS = 16, MOST_TAPS = 64 };

/* The weights of the block's channels: shared[tap][across * 8]. */
template <typename T> static __device__ void bring_weights(const depthwise_conv &g, float *shared, int first)
{
    const int taps = g.size[0] * g.size[1], channels = g.across * VECTOR;
    for (int i = static_cast<int>(threadIdx.x); i < taps * channels; i += THREADS) {
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

/* SIZE x SIZE taps of one stride both ways, without gaps; SIZE 0: any. */
template <typename T, int SIZE, int STRIDE>
static __global__ void __launch_bounds__(THREADS) depthwise_image(const __grid_constant__ depthwise_conv g)
{
    extern __shared__ float4 weights[];
    constexpr int UNROLLED =
        SIZE > 5 ? 1 : SIZE + 1; /* rows of a window: of more, code would leave the instruction cache */
    float *shared = reinterpret_cast<float *>(weights);
    const int lines = THREADS / g.across, line = static_cast<int>(threadIdx.x) / g.across;
    const int mine = static_cast<int>(threadIdx.x) - line * g.across;
    const int first = static_cast<int>(blockIdx.x) * g.across, vector = first + mine;
    await_kernels();
    bring_weights<T>(g, shared, first);
    __syncthreads();
    if (line >= lines || vector >= g.vectors) return;
    const int height = SIZE > 0 ? SIZE : g.size[0], width = SIZE > 0 ? SIZE : g.size[1];
    const int down = SIZE > 0 ? STRIDE : g.stride[0], right = SIZE > 0 ? STRIDE : g.stride[1];
    const int row_gap = SIZE > 0 ? 1 : g.dilation[0], gap = SIZE > 0 ? 1 : g.dilation[1];
    const float *w = shared + mine * VECTOR;
    for (int64_t run = blockIdx.y * lines + line; run < g.runs; run += gridDim.y * lines) {
        int q, p;
        const int n = divide(divide(static_cast<int32_t>(run), g.run_columns, q), g.run_rows, p);
        q *= RUN;
        const int top = p * down - g.padding[0], left = q * right - g.padding[1];
        float8 sum[RUN] = {};
#pragma unroll(UNROLLED)
        for (int r = 0; r < height; r++) {
            const int h = top + r * row_gap;
            if (h < 0 || h >= g.height) continue;
            const int64_t row = (static_cast<int64_t>(n) * g.height + h) * g.width;
            auto pixel = [&](int at) {
                return at >= 0 && at < g.width
                           ? load_bits8(static_cast<const T *>(g.x), (row + at) * g.vectors + vector)
                           : bits8<T>{};
            };
            if constexpr (SIZE > 0) {
                constexpr int SEEN = (RUN - 1) * STRIDE + SIZE;
                bits8<T> seen[SEEN];
#pragma unroll
                for (int i = 0; i < SEEN; i++) seen[i] = pixel(left + i);
#pragma unroll
                for (int i = 0; i < SEEN; i++) {
                    const float8 x = unpack8<T>(seen[i]);
#pragma unroll
                    for (int o = 0; o < RUN; o++) {
                        if (i - o * STRIDE >= 0 && i - o * STRIDE < SIZE)
                            multiply(sum[o], x, w + (r * SIZE + i - o * STRIDE) * g.across * VECTOR);
                    }
                }
            } else {
                for (int s = 0; s < width; s++) {
#pragma unroll
                    for (int o = 0; o < RUN; o++)
                        multiply(sum[o], unpack8<T>(pixel(left + o * right + s * gap)),
                                 w + (r * width + s) * g.across * VECTOR);
                }
            }
        }
        const int64_t to = ((static_cast<int64_t>(n) * g.rows + p) * g.columns + q) * g.vectors + vector;
#pragma unroll
        for (int o = 0; o < RUN; o++) {
            if (q + o < g.columns) finish<T>(g, sum[o], vector, to + o * g.vectors);
        }
    }
}

/* The gradient by the input, of any stride: g.x is dy, g.y dx; a run is one pixel. */
template <typename T>
static __global__ void __launch_bounds__(THREADS) depthwise_spread(const __grid_constant__ depthwise_conv g)
{
    extern __shared__ float4 weights[];
    float *shared = reinterpret_cast<float *>(weights);
    const int lines = THREADS / g.across, line = static_cast<int>(threadIdx.x) / g.across;
    const int mine = static_cast<int>(threadIdx.x) - line * g.across;
    const int first = static_cast<int>(blockIdx.x) * g.across, vector = first + mine;
    await_kernels();
    bring_weights<T>(g, shared, first);
    __syncthreads();
    if (line >= lines || vector >= g.vectors) return;
    for (int64_t run = blockIdx.y * lines + line; run < g.runs; run += gridDim.y * lines) {
        int h, w;
        const int n = divide(divide(static_cast<int32_t>(run), g.run_columns, w), g.run_rows, h);
        float8 sum = {};
        for (int r = 0; r < g.size[0]; r++) {
            const int from_top = h + g.padding[0] - r * g.dilation[0], p = from_top / g.stride[0];
            if (from_top < 0 || p * g.stride[0] != from_top || p >= g.height) continue;
            for (int s = 0; s < g.size[1]; s++) {
                const int from_left = w + g.padding[1] - s * g.dilation[1], q = from_left / g.stride[1];
                if (from_left < 0 || q * g.stride[1] != from_left || q >= g.width) continue;
                const int64_t at = ((static_cast<int64_t>(n) * g.height + p) * g.width + q) * g.vectors + vector;
                multiply(sum, load8(static_cast<const T *>(g.x), at),
                         shared + (r * g.size[1] + s) * g.across * VECTOR + mine * VECTOR);
            }
        }
        finish<T>(g, sum, vector, run * g.vectors + vector);
    }
}

/* ---- launching ---- */

template <typename T>
static void launch_image(const cuda_calculator *calculator, depthwise_conv g, void (*kernel)(depthwise_conv), int run)
{
    g.across = depthwise_conv_across(g.vectors, MOST_VECTORS);
    g.run_columns = divider<int32_t>((g.columns + run - 1) / run);
    g.run_rows = divider<int32_t>(g.rows);
    g.runs = static_cast<int64_t>(g.batch) * g.rows * ((g.columns + run - 1) / run);
    const int64_t lines = THREADS / g.across, groups = (g.vectors + g.across - 1) / g.across;
    int64_t blocks = (g.runs + lines - 1) / lines, most = 8 * calculator->multiprocessors / groups + 1;
    if (blocks > most) blocks = most;
    const int shared = g.size[0] * g.size[1] * g.across * VECTOR * static_cast<int>(sizeof(float));
    launch_overlapped(calculator, kernel, dim3(static_cast<unsigned>(groups), static_cast<unsigned>(blocks)),
                      dim3(THREADS), shared, g);
}

template <typename T> static void (*image_kernel(const depthwise_conv &g))(depthwise_conv)
{
    if (depthwise_conv_is_square(g, 3, 1)) return depthwise_image<T, 3, 1>;
    if (depthwise_conv_is_square(g, 5, 1)) return depthwise_image<T, 5, 1>;
    if (depthwise_conv_is_square(g, 3, 2)) return depthwise_image<T, 3, 2>;
    if (depthwise_conv_is_square(g, 5, 2)) return depthwise_image<T, 5, 2>;
    if (depthwise_conv_is_square(g, 7, 1)) return depthwise_image<T, 7, 1>;
    return depthwise_image<T, 0, 1>;
}

template <typename T> static void run_image(const cuda_calculator *calculator, const depthwise_conv &g)
{
    if (depthwise_tma_launch<T>(calculator, g)) return;
    if (!depthwise_sliding_launch<T>(calculator, g)) launch_image<T>(calculator, g, image_kernel<T>(g), RUN);
}

template <typename T> static void backward_input(const cuda_calculator *calculator, depthwise_conv g)
{
    std::swap(g.height, g.rows);
    std::swap(g.width, g.columns);
    if (g.stride[0] > 1 || g.stride[1] > 1) {
        launch_image<T>(calculator, g, depthwise_spread<T>, 1);
        return;
    }
    g.flipped = 1;
    for (int i = 0; i < 2; i++) g.padding[i] = (g.size[i] - 1) * g.dilation[i] - g.padding[i];
    run_image<T>(calculator, g);
}

bool depthwise_supports_nhwc(const sdlf_operation *op)
{
    const cuda_conv2d conv = cuda_conv2d_geometry(op);
    const int64_t most = INT32_MAX - THREADS, pixels = conv.batch * conv.height * conv.width;
    return conv.channels == op->conv2d.groups && conv.filters == conv.channels && conv.channels % VECTOR == 0 &&
           pixels > 0 && pixels <= most && conv.batch * conv.out_height * conv.out_width > 0 &&
           conv.batch * conv.out_height * conv.out_width <= most && conv.channels <= most &&
           static_cast<int64_t>(conv.window.size[0]) * conv.window.size[1] <= MOST_TAPS;
}

int64_t depthwise_workspace_nhwc(const sdlf_operation *op)
{
    if (op->kind != SDLF_CONV2D_BACKWARD_WEIGHTS) return 0;
    return depthwise_weights_workspace(depthwise_conv_of(op));
}

sdlf_status depthwise_nhwc(sdlf_calculator *base, const sdlf_operation *op, const void *prepared)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(op, &x, &w, &y);
    depthwise_conv g = depthwise_conv_of(op);
    with_storage(x->dtype, [&](auto zero) {
        using T = decltype(zero);
        g.w = prepared != nullptr ? prepared : w->data;
        if (op->kind == SDLF_CONV2D_FORWARD) {
            g.x = x->data;
            g.y = y->data;
            run_image<T>(calculator, g);
        } else if (op->kind == SDLF_CONV2D_BACKWARD_INPUT) {
            g.x = y->data;
            g.y = x->data;
            backward_input<T>(calculator, g);
        } else {
            g.x = x->data;
            g.y = y->data;
            depthwise_weights_launch<T>(calculator, g, static_cast<float *>(op->workspace.data),
                                        data_of<float>(op->out[0]));
        }
    });
    return cuda_check_launch("depthwise conv2d");
}
