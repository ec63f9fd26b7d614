/* SPDX-License-Identifier: MIT */
/* Pooling of images (N,H,W,C), C a multiple of 8: a thread 8 channels of a pixel of what it writes. Backward gathers:
 * an input pixel visits the windows that hold it, so that no atomics are needed. Padding never wins, NaN does. */
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/nhwc/vector8.cuh"
#include "calculators/cuda/pool2d/pool2d.cuh"

enum { THREADS = 256 };

template <typename Index> struct pool_nhwc {
    pooling<Index> windows;
    divider<Index> vectors; /* of 8 channels */
    int64_t count;          /* threads' work */
    bool maximum;
};

/* Taps of window p along an axis that lie inside. */
template <typename Index> static __device__ __forceinline__ int taps_inside(const pooling<Index> &g, int axis, Index p)
{
    int inside = 0;
    for (Index r = 0; r < g.size[axis]; r++) {
        const Index at = p * g.stride[axis] + r * g.dilation[axis] - g.before[axis];
        inside += at >= 0 && at < g.in[axis];
    }
    return inside;
}

template <typename Index> static __device__ __forceinline__ float divisor(const pooling<Index> &g, Index p, Index q)
{
    if (g.count_padding) return static_cast<float>(g.size[0] * g.size[1]);
    return static_cast<float>(taps_inside(g, 0, p) * taps_inside(g, 1, q));
}

template <typename T, typename Index>
static __global__ void __launch_bounds__(THREADS) pool_forward_nhwc(const T *x, T *y, const pool_nhwc<Index> of)
{
    const pooling<Index> &g = of.windows;
    await_kernels();
    for (int64_t e = grid_first(); e < of.count; e += grid_step()) {
        Index vector, pixel = divide(static_cast<Index>(e), of.vectors, vector);
        const pool_place<Index> at(pixel, g.by_out);
        float8 result;
#pragma unroll
        for (int v = 0; v < VECTOR; v++) result.at[v] = of.maximum ? -INFINITY : 0;
        for (Index r = 0; r < g.size[0]; r++) {
            const Index h = at.row * g.stride[0] + r * g.dilation[0] - g.before[0];
            if (h < 0 || h >= g.in[0]) continue;
            for (Index s = 0; s < g.size[1]; s++) {
                const Index w = at.column * g.stride[1] + s * g.dilation[1] - g.before[1];
                if (w < 0 || w >= g.in[1]) continue;
                const float8 value = load8(x, ((at.plane * g.in[0] + h) * g.in[1] + w) * of.vectors.number + vector);
#pragma unroll
                for (int v = 0; v < VECTOR; v++) {
                    if (!of.maximum)
                        result.at[v] += value.at[v];
                    else if (value.at[v] > result.at[v] || value.at[v] != value.at[v])
                        result.at[v] = value.at[v];
                }
            }
        }
        const float by = of.maximum ? 1.0f : divisor(g, at.row, at.column);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) result.at[v] /= by;
        store8(y, e, result);
    }
}

static __device__ __forceinline__ bool same(float a, float b)
{
    return a == b || (a != a && b != b);
}

/* What a window gives to each element that attains its maximum, dy / how many there are; or dy, and which tap is the first of them. */
struct pool_shares {
    float *share;    /* as y */
    uint16_t *first; /* as y; NULL: all share */
};

/* Maximum, backward, in two kernels; the first goes over windows. */
template <typename T, typename Index>
static __global__ void __launch_bounds__(THREADS)
    share_gradient_nhwc(const T *x, const T *y, const T *dy, const pool_shares to, int64_t count,
                        const pool_nhwc<Index> of)
{
    const pooling<Index> &g = of.windows;
    await_kernels();
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        Index vector, pixel = divide(static_cast<Index>(e), of.vectors, vector);
        const pool_place<Index> at(pixel, g.by_out);
        const float8 largest = load8(y, e), gradient = load8(dy, e);
        float ties[VECTOR] = {};
        int first[VECTOR] = {};
        for (Index r = 0; r < g.size[0]; r++) {
            const Index h = at.row * g.stride[0] + r * g.dilation[0] - g.before[0];
            if (h < 0 || h >= g.in[0]) continue;
            for (Index s = 0; s < g.size[1]; s++) {
                const Index w = at.column * g.stride[1] + s * g.dilation[1] - g.before[1];
                if (w < 0 || w >= g.in[1]) continue;
                const float8 value = load8(x, ((at.plane * g.in[0] + h) * g.in[1] + w) * of.vectors.number + vector);
                const int tap = static_cast<int>(r * g.size[1] + s);
#pragma unroll
                for (int v = 0; v < VECTOR; v++) {
                    const bool tied = same(value.at[v], largest.at[v]);
                    if (tied && ties[v] == 0) first[v] = tap;
                    ties[v] += tied ? 1.0f : 0.0f;
                }
            }
        }
        float share[VECTOR];
#pragma unroll
        for (int v = 0; v < VECTOR; v++) share[v] = g.first ? gradient.at[v] : gradient.at[v] / ties[v];
        float4 *shares = reinterpret_cast<float4 *>(to.share) + 2 * e;
        shares[0] = make_float4(share[0], share[1], share[2], share[3]);
        shares[1] = make_float4(share[4], share[5], share[6], share[7]);
        if (to.first == nullptr) continue;
        alignas(16) uint16_t taps[VECTOR];
#pragma unroll
        for (int v = 0; v < VECTOR; v++) taps[v] = static_cast<uint16_t>(first[v]);
        reinterpret_cast<uint4 *>(to.first)[e] = *reinterpret_cast<const uint4 *>(taps);
    }
}

/* The second goes over the input: which of the windows that hold a pixel give it something? */
template <typename T, typename Index>
static __global__ void __launch_bounds__(THREADS)
    max_pool_backward_nhwc(const T *x, const T *y, const pool_shares from, T *dx, const pool_nhwc<Index> of)
{
    const pooling<Index> &g = of.windows;
    await_kernels();
    for (int64_t e = grid_first(); e < of.count; e += grid_step()) {
        Index vector, pixel = divide(static_cast<Index>(e), of.vectors, vector);
        const pool_place<Index> at(pixel, g.by_in);
        const pool_windows<Index> down(g, 0, at.row), right(g, 1, at.column);
        const float8 own = load8(x, e);
        float8 sum = {};
        for (Index p = down.last; p >= down.first; p--) {
            for (Index q = right.last; q >= right.first; q--) {
                if (!pool_holds(g, 0, p, at.row) || !pool_holds(g, 1, q, at.column)) continue;
                const Index window = ((at.plane * g.out[0] + p) * g.out[1] + q) * of.vectors.number + vector;
                const float8 largest = load8(y, window);
                const float4 *shares = reinterpret_cast<const float4 *>(from.share) + 2 * static_cast<int64_t>(window);
                const float4 low = shares[0], high = shares[1];
                const float share[VECTOR] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
                unsigned wins = 0;
#pragma unroll
                for (int v = 0; v < VECTOR; v++) wins |= static_cast<unsigned>(same(own.at[v], largest.at[v])) << v;
                if (from.first != nullptr) {
                    alignas(16) uint16_t taps[VECTOR];
                    *reinterpret_cast<uint4 *>(taps) = reinterpret_cast<const uint4 *>(from.first)[window];
                    const Index r = (at.row + g.before[0] - p * g.stride[0]) / g.dilation[0];
                    const Index s = (at.column + g.before[1] - q * g.stride[1]) / g.dilation[1];
                    const int tap = static_cast<int>(r * g.size[1] + s);
#pragma unroll
                    for (int v = 0; v < VECTOR; v++) wins &= ~(static_cast<unsigned>(taps[v] != tap) << v);
                }
#pragma unroll
                for (int v = 0; v < VECTOR; v++) sum.at[v] += wins >> v & 1 ? share[v] : 0.0f;
            }
        }
        store8(dx, e, sum);
    }
}

template <typename T, typename Index>
static __global__ void __launch_bounds__(THREADS) avg_pool_backward_nhwc(const T *dy, T *dx, const pool_nhwc<Index> of)
{
    const pooling<Index> &g = of.windows;
    await_kernels();
    for (int64_t e = grid_first(); e < of.count; e += grid_step()) {
        Index vector, pixel = divide(static_cast<Index>(e), of.vectors, vector);
        const pool_place<Index> at(pixel, g.by_in);
        const pool_windows<Index> down(g, 0, at.row), right(g, 1, at.column);
        float8 sum = {};
        for (Index p = down.first; p <= down.last; p++) {
            for (Index q = right.first; q <= right.last; q++) {
                if (!pool_holds(g, 0, p, at.row) || !pool_holds(g, 1, q, at.column)) continue;
                const float8 gradient =
                    load8(dy, ((at.plane * g.out[0] + p) * g.out[1] + q) * of.vectors.number + vector);
                const float by = divisor(g, p, q);
#pragma unroll
                for (int v = 0; v < VECTOR; v++) sum.at[v] += gradient.at[v] / by;
            }
        }
        store8(dx, e, sum);
    }
}

template <typename Index>
static pool_nhwc<Index> pool_of(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y,
                                const sdlf_tensor &written)
{
    return {pooling_of<Index>(op, x, y), divider<Index>(x.shape.dim[1] / VECTOR), sdlf_tensor_count(&written) / VECTOR,
            op->kind == SDLF_MAX_POOL2D_FORWARD};
}

/* Call function(zero of the element type, index zero). */
template <typename Function>
static void with_pool(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y, Function function)
{
    with_storage(x.dtype, [&](auto zero) { with_pool_index(op, x, y, [&](auto index) { function(zero, index); }); });
}

sdlf_status pool2d_forward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    with_pool(op, x, y, [&](auto zero, auto index) {
        using T = decltype(zero);
        const auto of = pool_of<decltype(index)>(op, x, y, y);
        launch_overlapped(calculator, pool_forward_nhwc<T, decltype(index)>, cuda_blocks(calculator, of.count, THREADS),
                          THREADS, 0, data_of<T>(x), data_of<T>(y), of);
    });
    return cuda_check_launch("pooling");
}

int64_t pool2d_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    if (!cuda_is_nhwc(op) || op->kind != SDLF_MAX_POOL2D_BACKWARD) return 0;
    const int64_t tap = op->pool2d.ties == SDLF_TIES_FIRST ? sizeof(uint16_t) : 0;
    return sdlf_tensor_count(&op->in[1]) * (static_cast<int64_t>(sizeof(float)) + tap);
}

sdlf_status pool2d_backward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const bool maximum = op->kind == SDLF_MAX_POOL2D_BACKWARD;
    const sdlf_tensor &dx = op->out[0], &y = op->in[maximum ? 1 : 0];
    with_pool(op, dx, y, [&](auto zero, auto index) {
        using T = decltype(zero);
        using Index = decltype(index);
        const auto of = pool_of<Index>(op, dx, y, dx);
        const unsigned blocks = cuda_blocks(calculator, of.count, THREADS);
        const int64_t windows = sdlf_tensor_count(&y) / VECTOR;
        pool_shares shares = {static_cast<float *>(op->workspace.data), nullptr};
        if (of.windows.first) shares.first = reinterpret_cast<uint16_t *>(shares.share + windows * VECTOR);
        if (!maximum) {
            launch_overlapped(calculator, avg_pool_backward_nhwc<T, Index>, blocks, THREADS, 0, data_of<T>(y),
                              data_of<T>(dx), of);
            return;
        }
        launch_overlapped(calculator, share_gradient_nhwc<T, Index>, cuda_blocks(calculator, windows, THREADS), THREADS,
                          0, data_of<T>(op->in[0]), data_of<T>(y), data_of<T>(op->in[2]), shares, windows, of);
        launch_overlapped(calculator, max_pool_backward_nhwc<T, Index>, blocks, THREADS, 0, data_of<T>(op->in[0]),
                          data_of<T>(y), shares, data_of<T>(dx), of);
    });
    return cuda_check_launch("pooling");
}
