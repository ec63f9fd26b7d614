/* SPDX-License-Identifier: MIT */
/* Max-pool over RxS windows. x (N,C,H,W) -> y (N,C,P,Q): one thread an output; a warp covers 32 neighbours in q, so
 * that loads coalesce. Moves 4 (NCHW + NCPQ) bytes. Backward gathers: the thread of an input element visits the windows
 * that contain it, and no atomics are needed; windows that do not overlap are visited once each. 2x2 windows that tile
 * the planes have kernels of their own (pool2d/window2x2.h). Padding is never a maximum, NaN always is. */
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/pool2d/nhwc.h"
#include "calculators/cuda/pool2d/pool2d.cuh"
#include "calculators/cuda/pool2d/window2x2.h"

enum { THREADS = 256 };

static __device__ bool same(double a, double b)
{
    return a == b || (a != a && b != b);
}

static __device__ bool same(float a, float b)
{
    return a == b || (a != a && b != b);
}

template <typename T, typename Index, int SIDE>
static __global__ void max_pool_forward(const T *x, T *y, int64_t outputs, pooling<Index> g)
{
    wait_and_launch_dependent_grids();
    for (int64_t e = grid_first(); e < outputs; e += grid_step()) {
        const pool_place<Index> at(static_cast<Index>(e), g.by_out);
        const T *image = x + at.plane * g.in[0] * g.in[1];
        Index h0 = at.row * g.stride[0] - g.before[0], w0 = at.column * g.stride[1] - g.before[1];
        Index rows = SIDE ? Index(SIDE) : g.size[0], columns = SIDE ? Index(SIDE) : g.size[1];
        T largest = -INFINITY;
#pragma unroll
        for (Index r = 0; r < rows; r++) {
            Index h = h0 + r * g.dilation[0];
#pragma unroll
            for (Index s = 0; s < columns; s++) {
                Index w = w0 + s * g.dilation[1];
                if (h < 0 || h >= g.in[0] || w < 0 || w >= g.in[1]) continue;
                T value = image[h * g.in[1] + w];
                if (value > largest || value != value) largest = value;
            }
        }
        y[e] = largest;
    }
}

/* The share of window (p, q)'s gradient that goes to input (h, w), which attains its maximum. */
template <typename T, typename Index>
static __device__ T share_of(const T *image, T largest, const pooling<Index> &g, Index p, Index q, Index h, Index w)
{
    int ties = 0;
    for (Index r = 0; r < g.size[0]; r++) {
        Index row = p * g.stride[0] + r * g.dilation[0] - g.before[0];
        if (row < 0 || row >= g.in[0]) continue;
        for (Index s = 0; s < g.size[1]; s++) {
            Index column = q * g.stride[1] + s * g.dilation[1] - g.before[1];
            if (column < 0 || column >= g.in[1] || !same(image[row * g.in[1] + column], largest)) continue;
            if (g.first) return row == h && column == w ? T(1) : T(0);
            ties++;
        }
    }
    return T(1) / static_cast<T>(ties);
}

template <typename T, typename Index, typename FORM>
static __global__ void max_pool_backward(const T *x, const T *y, const T *dy, T *dx, int64_t inputs, pooling<Index> g)
{
    FORM::fix(g);
    for (int64_t e = grid_first(); e < inputs; e += grid_step()) {
        const pool_place<Index> at(static_cast<Index>(e), g.by_in);
        const pool_windows<Index> down(g, 0, at.row), right(g, 1, at.column);
        const T *image = x + at.plane * g.in[0] * g.in[1];
        Index outputs = at.plane * g.out[0] * g.out[1];
        T value = x[e], sum = 0;
        for (Index p = down.last; p >= down.first; p--) {
            for (Index q = right.last; q >= right.first; q--) {
                Index window = outputs + p * g.out[1] + q;
                if (!same(value, y[window]) || !pool_holds(g, 0, p, at.row) || !pool_holds(g, 1, q, at.column))
                    continue;
                sum += dy[window] * share_of(image, value, g, p, q, at.row, at.column);
            }
        }
        dx[e] = sum;
    }
}

extern "C" sdlf_status max_pool2d_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (cuda_is_nhwc(op)) return pool2d_forward_nhwc(base, op);
    if (sdlf_operation_is_channels_last(op)) return pool2d_nhwc_cuda(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        with_pool_index(op, x, y, [&](auto index) {
            with_pool_side(op->pool2d.window, [&](auto side) {
                using T = decltype(zero);
                using Index = decltype(index);
                launch_overlapped(calculator, max_pool_forward<T, Index, side.value>,
                                  cuda_blocks(calculator, count, THREADS), THREADS, 0, data_of<T>(x), data_of<T>(y),
                                  count, pooling_of<Index>(op, x, y));
            });
        });
    });
    return cuda_check_launch("max_pool2d_forward");
}

extern "C" sdlf_status max_pool2d_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (cuda_is_nhwc(op)) return pool2d_backward_nhwc(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->in[1];
    int64_t count = sdlf_tensor_count(&x);
    if (count == 0) return SDLF_OK;
    if (pool2d_window2x2_takes(op, &x, &y)) return pool2d_window2x2_backward_cuda(base, op);
    with_float(x.dtype, [&](auto zero) {
        with_pool_index(op, x, y, [&](auto index) {
            with_pool_form(op->pool2d.window, [&](auto form) {
                using T = decltype(zero);
                using Index = decltype(index);
                max_pool_backward<T, Index, decltype(form)>
                    <<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                        data_of<T>(x), data_of<T>(y), data_of<T>(op->in[2]), data_of<T>(op->out[0]), count,
                        pooling_of<Index>(op, x, y));
            });
        });
    });
    return cuda_check_launch("max_pool2d_backward");
}
