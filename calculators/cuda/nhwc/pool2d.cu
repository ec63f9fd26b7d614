/* SPDX-License-Identifier: MIT */
/* Pooling, forward, and average pooling, backward, of images (N,H,W,C). Backward gathers: an input pixel visits the windows that contain it, so
 * that no atomics are needed. Padding never wins, NaN does. */
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/nhwc/pool2d.cuh"

enum { THREADS = 256 };

/* Number of taps of window p along an axis that lie inside the image. */
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

template <bool MAXIMUM, typename T, typename Index, typename Form>
static __global__ void __launch_bounds__(THREADS) pool_forward_nhwc(const T *x, T *y, const pool_nhwc<Index> of)
{
    pooling<Index> g = of.windows;
    Form::fix(g);
    wait_and_launch_dependent_grids();
    for (int64_t e = grid_first(); e < of.count; e += grid_step()) {
        Index vector, pixel = divide(static_cast<Index>(e), of.vectors, vector);
        const pool_place<Index> at(pixel, g.by_out);
        float8 sum = {};
        bits8<T> most;
        if constexpr (MAXIMUM) {
#pragma unroll
            for (int v = 0; v < VECTOR; v++) sum.at[v] = -INFINITY;
            most = pack8<T>(sum);
        }
#pragma unroll
        for (Index r = 0; r < g.size[0]; r++) {
            const Index h = at.row * g.stride[0] + r * g.dilation[0] - g.before[0];
            if (h < 0 || h >= g.in[0]) continue;
#pragma unroll
            for (Index s = 0; s < g.size[1]; s++) {
                const Index w = at.column * g.stride[1] + s * g.dilation[1] - g.before[1];
                if (w < 0 || w >= g.in[1]) continue;
                const int64_t from = ((at.plane * g.in[0] + h) * g.in[1] + w) * of.vectors.number + vector;
                const bits8<T> bits = reinterpret_cast<const bits8<T> *>(x)[from];
                if constexpr (MAXIMUM) {
                    most = larger8(most, bits);
                } else {
                    const float8 value = unpack8<T>(bits);
#pragma unroll
                    for (int v = 0; v < VECTOR; v++) sum.at[v] += value.at[v];
                }
            }
        }
        if constexpr (MAXIMUM) {
            reinterpret_cast<bits8<T> *>(y)[e] = most;
        } else {
            const float by = divisor(g, at.row, at.column);
#pragma unroll
            for (int v = 0; v < VECTOR; v++) sum.at[v] /= by;
            store8(y, e, sum);
        }
    }
}

template <typename T, typename Index>
static __global__ void __launch_bounds__(THREADS) avg_pool_backward_nhwc(const T *dy, T *dx, const pool_nhwc<Index> of)
{
    const pooling<Index> &g = of.windows;
    wait_and_launch_dependent_grids();
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

sdlf_status pool2d_forward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    with_pool(op, x, y, [&](auto zero, auto index) {
        using T = decltype(zero);
        const auto of = pool_of<decltype(index)>(op, x, y, y);
        with_pool_form(op->pool2d.window, [&](auto form) {
            const bool maximum = op->kind == SDLF_MAX_POOL2D_FORWARD;
            auto kernel = maximum ? pool_forward_nhwc<true, T, decltype(index), decltype(form)>
                                  : pool_forward_nhwc<false, T, decltype(index), decltype(form)>;
            launch_overlapped(calculator, kernel, cuda_blocks(calculator, of.count, THREADS), THREADS, 0, data_of<T>(x),
                              data_of<T>(y), of);
        });
    });
    return cuda_check_launch("pooling");
}

sdlf_status pool2d_backward_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (op->kind == SDLF_MAX_POOL2D_BACKWARD) return max_pool2d_backward_nhwc(calculator, op);
    const sdlf_tensor &dx = op->out[0], &dy = op->in[0];
    with_pool(op, dx, dy, [&](auto zero, auto index) {
        using T = decltype(zero);
        const auto of = pool_of<decltype(index)>(op, dx, dy, dx);
        launch_overlapped(calculator, avg_pool_backward_nhwc<T, decltype(index)>,
                          cuda_blocks(calculator, of.count, THREADS), THREADS, 0, data_of<T>(dy), data_of<T>(dx), of);
    });
    return cuda_check_launch("pooling");
}
