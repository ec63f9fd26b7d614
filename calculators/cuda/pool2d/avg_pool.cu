/* SPDX-License-Identifier: MIT */
/* avg_pool2d and global_avg_pool2d. A thread computes an output (forward) or an input gradient (backward, which gathers: no atomics);
 * in global averages a warp computes a channel. Every tensor is moved once, except for overlapping windows, which hit the cache. */
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/pool2d/nhwc.h"
#include "calculators/cuda/pool2d/pool2d.cuh"
#include "calculators/cuda/pool2d/window2x2.h"
#include "calculators/cuda/vectorized.cuh"

enum { THREADS = 256, WARP = 32 };

/* Number of positions of a window along an axis that are inside the input. */
template <typename Index> static __device__ int inside(const pooling<Index> &g, int axis, Index window)
{
    Index first = window * g.stride[axis] - g.before[axis];
    if (g.dilation[axis] == 1) return static_cast<int>(min(first + g.size[axis], g.in[axis]) - max(first, Index(0)));
    int count = 0;
    for (Index r = 0; r < g.size[axis]; r++) {
        Index at = first + r * g.dilation[axis];
        count += at >= 0 && at < g.in[axis];
    }
    return count;
}

template <typename T, typename Index> static __device__ T divisor(const pooling<Index> &g, Index p, Index q)
{
    if (g.count_padding) return static_cast<T>(g.size[0] * g.size[1]);
    return static_cast<T>(inside(g, 0, p) * inside(g, 1, q));
}

template <typename T, typename Index, int SIDE>
static __global__ void avg_pool_forward(const T *x, T *y, int64_t outputs, pooling<Index> g)
{
    wait_and_launch_dependent_grids();
    for (int64_t e = grid_first(); e < outputs; e += grid_step()) {
        const pool_place<Index> at(static_cast<Index>(e), g.by_out);
        const T *image = x + at.plane * g.in[0] * g.in[1];
        Index h0 = at.row * g.stride[0] - g.before[0], w0 = at.column * g.stride[1] - g.before[1];
        Index rows = SIDE ? Index(SIDE) : g.size[0], columns = SIDE ? Index(SIDE) : g.size[1];
        T sum = 0;
#pragma unroll
        for (Index r = 0; r < rows; r++) {
            Index h = h0 + r * g.dilation[0];
#pragma unroll
            for (Index s = 0; s < columns; s++) {
                Index w = w0 + s * g.dilation[1];
                if (h >= 0 && h < g.in[0] && w >= 0 && w < g.in[1]) sum += image[h * g.in[1] + w];
            }
        }
        y[e] = sum / divisor<T>(g, at.row, at.column);
    }
}

template <typename T, typename Index, typename FORM>
static __global__ void avg_pool_backward(const T *dy, T *dx, int64_t inputs, pooling<Index> g)
{
    FORM::fix(g);
    for (int64_t e = grid_first(); e < inputs; e += grid_step()) {
        const pool_place<Index> at(static_cast<Index>(e), g.by_in);
        const pool_windows<Index> down(g, 0, at.row), right(g, 1, at.column);
        Index outputs = at.plane * g.out[0] * g.out[1];
        T sum = 0;
        for (Index p = down.last; p >= down.first; p--) {
            for (Index q = right.last; q >= right.first; q--) {
                if (pool_holds(g, 0, p, at.row) && pool_holds(g, 1, q, at.column))
                    sum += dy[outputs + p * g.out[1] + q] / divisor<T>(g, p, q);
            }
        }
        dx[e] = sum;
    }
}

template <typename T> static __global__ void global_avg_pool_forward(const T *x, T *y, int64_t planes, int64_t area)
{
    int64_t lane = threadIdx.x % WARP;
    wait_and_launch_dependent_grids();
    for (int64_t plane = grid_first() / WARP; plane < planes; plane += grid_step() / WARP) {
        T sum = 0;
        for (int64_t i = lane; i < area; i += WARP) sum += x[plane * area + i];
        for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0) y[plane] = sum / static_cast<T>(area);
    }
}

/* count and area are in vectors of N elements. */
template <typename T, typename Index, int N>
static __global__ void global_avg_pool_backward(const T *dy, T *dx, int64_t count, divider<Index> area)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        T share = dy[area.quotient(static_cast<Index>(e))] / static_cast<T>(area.number * N);
        vec<T, N> values;
#pragma unroll
        for (int v = 0; v < N; v++) values.at[v] = share;
        write_vec<N>(dx, e, values);
    }
}

extern "C" sdlf_status avg_pool2d_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
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
                launch_overlapped(calculator, avg_pool_forward<T, Index, side.value>,
                                  cuda_blocks(calculator, count, THREADS), THREADS, 0, data_of<T>(x), data_of<T>(y),
                                  count, pooling_of<Index>(op, x, y));
            });
        });
    });
    return cuda_check_launch("avg_pool2d_forward");
}

extern "C" sdlf_status avg_pool2d_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (cuda_is_nhwc(op)) return pool2d_backward_nhwc(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &dy = op->in[0], &dx = op->out[0];
    int64_t count = sdlf_tensor_count(&dx);
    if (count == 0) return SDLF_OK;
    if (pool2d_window2x2_takes(op, &dx, &dy)) return pool2d_window2x2_backward_cuda(base, op);
    with_float(dx.dtype, [&](auto zero) {
        with_pool_index(op, dx, dy, [&](auto index) {
            with_pool_form(op->pool2d.window, [&](auto form) {
                using T = decltype(zero);
                using Index = decltype(index);
                avg_pool_backward<T, Index, decltype(form)>
                    <<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                        data_of<T>(dy), data_of<T>(dx), count, pooling_of<Index>(op, dx, dy));
            });
        });
    });
    return cuda_check_launch("avg_pool2d_backward");
}

extern "C" sdlf_status global_avg_pool2d_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (cuda_is_nhwc(op)) return global_avg_pool2d_forward_nhwc(base, op);
    if (sdlf_operation_is_channels_last(op)) return global_avg_pool2d_nhwc_cuda(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0];
    int64_t area = x.shape.dim[2] * x.shape.dim[3], planes = sdlf_tensor_count(&op->out[0]);
    if (planes == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        launch_overlapped(calculator, global_avg_pool_forward<T>, cuda_blocks(calculator, planes * WARP, THREADS),
                          THREADS, 0, data_of<T>(x), data_of<T>(op->out[0]), planes, area);
    });
    return cuda_check_launch("global_avg_pool2d_forward");
}

extern "C" sdlf_status global_avg_pool2d_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (cuda_is_nhwc(op)) return global_avg_pool2d_backward_nhwc(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &dx = op->out[0];
    int64_t area = dx.shape.dim[2] * dx.shape.dim[3], count = sdlf_tensor_count(&dx);
    if (count == 0) return SDLF_OK;
    with_float(dx.dtype, [&](auto zero) {
        with_narrow_index(count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            T *to = data_of<T>(dx);
            auto spread = [&](auto n) {
                global_avg_pool_backward<T, Index, n.value>
                    <<<cuda_blocks(calculator, count / n.value, THREADS), THREADS, 0, calculator->stream>>>(
                        data_of<T>(op->in[0]), to, count / n.value, divider<Index>(area / n.value));
            };
            with_vec_width(area, spread, to);
        });
    });
    return cuda_check_launch("global_avg_pool2d_backward");
}
