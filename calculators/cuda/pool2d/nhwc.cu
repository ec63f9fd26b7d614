/* SPDX-License-Identifier: MIT */
/* Max-pool, average pool and global average pool, channels last: inference.
 *
 * x (N,H,W,C) -> y (N,P,Q,C). A thread computes 4 neighbouring channels of a pixel, or one if C is no multiple of 4; neighbouring lanes have
 * neighbouring channels, so that a warp reads whole cache lines. Padding is never a maximum, NaN always is. Global averages: a block has 32
 * channels of an image; 8 threads for each channel share its pixels, and their partial sums are added in order. Moves each tensor once. */
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/pool2d/nhwc.h"

enum { THREADS = 256, QUAD = 4, LANES = 32, SHARES = 8 };

struct pooling {
    int64_t height, width, out_height, out_width, channels, count; /* count: of the threads' tasks */
    sdlf_window2d window;
    bool count_padding;
};

template <typename T, int N> struct alignas(sizeof(T) * N) vec {
    T at[N];
};

/* Taps of window `p` along an axis that are inside the input: from `first` on, `count` of them. */
struct span {
    int first, count;
};

static __device__ __forceinline__ span inside(const sdlf_window2d &window, int axis, int64_t p, int64_t side)
{
    int64_t start = p * window.stride[axis] - window.padding_before[axis];
    int dilation = window.dilation[axis];
    int first = start < 0 ? static_cast<int>((-start + dilation - 1) / dilation) : 0;
    int64_t last = start >= side ? 0 : (side - start - 1) / dilation + 1; /* taps before the far side */
    int end = last < window.size[axis] ? static_cast<int>(last) : window.size[axis];
    return {first, end > first ? end - first : 0};
}

/* COUNT: an integer type in which tasks can be counted; 32-bit divisions are several times faster. */
template <typename T, int N, bool MAXIMUM, typename COUNT>
static __global__ void __launch_bounds__(THREADS) pool_nhwc(const T *x, T *y, const __grid_constant__ pooling g)
{
    launch_dependent_grids();
    wait_on_dependent_grids();
    const COUNT vectors = static_cast<COUNT>(g.channels / N), width = static_cast<COUNT>(g.out_width);
    const COUNT height = static_cast<COUNT>(g.out_height), count = static_cast<COUNT>(g.count);
    for (COUNT e = static_cast<COUNT>(grid_first()); e < count; e += static_cast<COUNT>(grid_step())) {
        COUNT rest = e / vectors;
        int64_t channel = static_cast<int64_t>(e % vectors) * N;
        int64_t q = rest % width, p = rest / width % height, n = rest / width / height;
        span down = inside(g.window, 0, p, g.height), right = inside(g.window, 1, q, g.width);
        int64_t h = p * g.window.stride[0] - g.window.padding_before[0];
        int64_t w = q * g.window.stride[1] - g.window.padding_before[1];
        vec<T, N> sum;
#pragma unroll
        for (int v = 0; v < N; v++) sum.at[v] = MAXIMUM ? T(-INFINITY) : T(0);
        for (int r = down.first; r < down.first + down.count; r++) {
            for (int s = right.first; s < right.first + right.count; s++) {
                int64_t row = h + r * g.window.dilation[0], column = w + s * g.window.dilation[1];
                vec<T, N> value = *reinterpret_cast<const vec<T, N> *>(
                    x + ((n * g.height + row) * g.width + column) * g.channels + channel);
#pragma unroll
                for (int v = 0; v < N; v++) {
                    if (!MAXIMUM)
                        sum.at[v] += value.at[v];
                    else if (value.at[v] > sum.at[v] || value.at[v] != value.at[v])
                        sum.at[v] = value.at[v];
                }
            }
        }
        if (!MAXIMUM) {
            int divisor = g.count_padding ? g.window.size[0] * g.window.size[1] : down.count * right.count;
#pragma unroll
            for (int v = 0; v < N; v++) sum.at[v] /= static_cast<T>(divisor);
        }
        *reinterpret_cast<vec<T, N> *>(y + static_cast<int64_t>(rest) * g.channels + channel) = sum;
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) global_average_nhwc(const T *x, T *y, int64_t area, int64_t channels)
{
    __shared__ T part[SHARES][LANES];
    launch_dependent_grids();
    wait_on_dependent_grids();
    int lane = static_cast<int>(threadIdx.x) % LANES, share = static_cast<int>(threadIdx.x) / LANES;
    int64_t groups = (channels + LANES - 1) / LANES;
    int64_t image = blockIdx.x / groups, channel = blockIdx.x % groups * LANES + lane;
    T sum = 0;
    if (channel < channels) {
        for (int64_t i = share; i < area; i += SHARES) sum += x[(image * area + i) * channels + channel];
    }
    part[share][lane] = sum;
    __syncthreads();
    if (share != 0 || channel >= channels) return;
    for (int i = 1; i < SHARES; i++) sum += part[i][lane];
    y[image * channels + channel] = sum / static_cast<T>(area);
}

template <typename T, int N, typename COUNT>
static void launch_counted(const cuda_calculator *calculator, const T *x, T *y, const pooling &g, bool maximum)
{
    dim3 blocks(cuda_blocks(calculator, g.count, THREADS));
    if (maximum)
        launch_overlapped(calculator, pool_nhwc<T, N, true, COUNT>, blocks, dim3(THREADS), 0, x, y, g);
    else
        launch_overlapped(calculator, pool_nhwc<T, N, false, COUNT>, blocks, dim3(THREADS), 0, x, y, g);
}

template <typename T, int N>
static void launch(const cuda_calculator *calculator, const T *x, T *y, pooling g, bool maximum)
{
    g.count = g.count / N;
    if (g.count <= INT32_MAX) /* then no grid stride exceeds 32 bits, either */
        launch_counted<T, N, unsigned>(calculator, x, y, g, maximum);
    else
        launch_counted<T, N, int64_t>(calculator, x, y, g, maximum);
}

static bool is_aligned(const void *address, size_t bytes)
{
    return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

extern "C" sdlf_status pool2d_nhwc_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    pooling g = {x.shape.dim[2], x.shape.dim[3], y.shape.dim[2],    y.shape.dim[3],
                 x.shape.dim[1], count,          op->pool2d.window, op->pool2d.count_padding};
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        bool maximum = op->kind == SDLF_MAX_POOL2D_FORWARD;
        if (g.channels % QUAD == 0 && is_aligned(x.data, QUAD * sizeof(T)) && is_aligned(y.data, QUAD * sizeof(T)))
            launch<T, QUAD>(calculator, data_of<T>(x), data_of<T>(y), g, maximum);
        else
            launch<T, 1>(calculator, data_of<T>(x), data_of<T>(y), g, maximum);
    });
    return cuda_check_launch("pooling, channels last");
}

extern "C" sdlf_status global_avg_pool2d_nhwc_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0];
    int64_t channels = x.shape.dim[1], groups = (channels + LANES - 1) / LANES, blocks = x.shape.dim[0] * groups;
    if (blocks == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, global_average_nhwc<T>, dim3(static_cast<unsigned>(blocks)), dim3(THREADS), 0,
                          data_of<T>(x), data_of<T>(op->out[0]), x.shape.dim[2] * x.shape.dim[3], channels);
    });
    return cuda_check_launch("global_avg_pool2d, channels last");
}
