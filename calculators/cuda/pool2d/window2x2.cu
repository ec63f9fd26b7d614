/* SPDX-License-Identifier: MIT */
/* Gradients of 2x2 pooling (pool2d/window2x2.h). A thread has N neighbouring windows of a row: it loads what they need
 * and stores 2 N elements of two rows of dx, each once, so that whole cache lines are moved. In planes with an odd
 * number of rows, the last one belongs to no window and gets zeros. Moves dx, dy and, for a maximum, x and y. */
#include <type_traits>

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/pool2d/window2x2.h"

enum { THREADS = 256 };

template <typename T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) run {
    T at[N];
};

template <typename T, typename Index> struct pooling2x2 {
    const T *x, *y, *dy; /* x and y: only of a maximum */
    T *dx;
    int64_t
        count; /* threads' tasks: planes, rows of windows (one more where the height is odd), vectors of N windows */
    divider<Index> rows, vectors;
    Index height, out_height;
    bool first; /* of tied maxima only the first counts */
};

template <typename T> static __device__ __forceinline__ bool same(T a, T b)
{
    return a == b || (a != a && b != b);
}

/* Distribute dy to the four elements of a window. */
template <typename T>
static __device__ __forceinline__ void share(const T (&x)[4], T largest, T dy, bool first, T (&dx)[4])
{
    int ties = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) ties += same(x[i], largest);
    T part = dy * (T(1) / static_cast<T>(first ? 1 : ties));
    bool given = false;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool mine = same(x[i], largest) && !(first && given);
        given = given || mine;
        dx[i] = mine ? T(0) + part : T(0); /* no -0 */
    }
}

template <typename T, typename Index, int N, bool MAXIMUM>
static __global__ void __launch_bounds__(THREADS) pool_window2x2(pooling2x2<T, Index> g)
{
    for (int64_t e = grid_first(); e < g.count; e += grid_step()) {
        Index column, p, plane = divide(divide(static_cast<Index>(e), g.vectors, column), g.rows, p);
        int64_t window =
            (static_cast<int64_t>(plane) * g.out_height + p) * g.vectors.number + column; /* in vectors of N */
        int64_t upper =
            (static_cast<int64_t>(plane) * g.height + 2 * p) * g.vectors.number + column; /* in vectors of 2 N */
        int64_t lower = upper + g.vectors.number;
        run<T, 2 *N> top = {}, bottom = {};
        if (p >= g.out_height) {
            reinterpret_cast<run<T, 2 * N> *>(g.dx)[upper] = top;
            continue;
        }
        const run<T, N> dy = reinterpret_cast<const run<T, N> *>(g.dy)[window];
        if constexpr (MAXIMUM) {
            const run<T, N> y = reinterpret_cast<const run<T, N> *>(g.y)[window];
            const run<T, 2 *N> x_top = reinterpret_cast<const run<T, 2 * N> *>(g.x)[upper];
            const run<T, 2 *N> x_bottom = reinterpret_cast<const run<T, 2 * N> *>(g.x)[lower];
#pragma unroll
            for (int w = 0; w < N; w++) {
                const T x[4] = {x_top.at[2 * w], x_top.at[2 * w + 1], x_bottom.at[2 * w], x_bottom.at[2 * w + 1]};
                T dx[4];
                share<T>(x, y.at[w], dy.at[w], g.first, dx);
                top.at[2 * w] = dx[0];
                top.at[2 * w + 1] = dx[1];
                bottom.at[2 * w] = dx[2];
                bottom.at[2 * w + 1] = dx[3];
            }
        } else {
#pragma unroll
            for (int w = 0; w < N; w++)
                top.at[2 * w] = top.at[2 * w + 1] = bottom.at[2 * w] = bottom.at[2 * w + 1] = T(0) + dy.at[w] / T(4);
        }
        reinterpret_cast<run<T, 2 * N> *>(g.dx)[upper] = top;
        reinterpret_cast<run<T, 2 * N> *>(g.dx)[lower] = bottom;
    }
}

extern "C" bool pool2d_window2x2_takes(const sdlf_operation *op, const sdlf_tensor *in, const sdlf_tensor *out)
{
    const sdlf_window2d *window = &op->pool2d.window;
    for (int axis = 0; axis < 2; axis++) {
        if (window->size[axis] != 2 || window->stride[axis] != 2 || window->dilation[axis] != 1) return false;
        if (window->padding_before[axis] != 0) return false;
    }
    const uintptr_t pair = 2 * sdlf_dtype_size(in->dtype);
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (reinterpret_cast<uintptr_t>(op->in[i].data) % pair != 0) return false;
    }
    if (reinterpret_cast<uintptr_t>(op->out[0].data) % pair != 0) return false;
    int64_t height = in->shape.dim[2], width = in->shape.dim[3];
    return 2 * out->shape.dim[3] == width && height / 2 == out->shape.dim[2];
}

template <typename T, typename Index, int N>
static void launch(const cuda_calculator *calculator, const sdlf_operation *op, pooling2x2<T, Index> g, int64_t planes,
                   int64_t rows, int64_t columns)
{
    g.count = planes * rows * (columns / N);
    g.rows = divider<Index>(rows);
    g.vectors = divider<Index>(columns / N);
    const unsigned blocks = cuda_blocks(calculator, g.count, THREADS);
    if (op->kind == SDLF_MAX_POOL2D_BACKWARD)
        pool_window2x2<T, Index, N, true><<<blocks, THREADS, 0, calculator->stream>>>(g);
    else
        pool_window2x2<T, Index, N, false><<<blocks, THREADS, 0, calculator->stream>>>(g);
}

extern "C" sdlf_status pool2d_window2x2_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const bool maximum = op->kind == SDLF_MAX_POOL2D_BACKWARD;
    const sdlf_tensor &dx = op->out[0], &dy = op->in[maximum ? 2 : 0];
    int64_t planes = dx.shape.dim[0] * dx.shape.dim[1], rows = (dx.shape.dim[2] + 1) / 2, columns = dy.shape.dim[3];
    with_float(dx.dtype, [&](auto zero) {
        with_narrow_index(sdlf_tensor_count(&dx), [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            pooling2x2<T, Index> g = {};
            g.dx = data_of<T>(dx);
            g.dy = data_of<T>(dy);
            if (maximum) {
                g.x = data_of<T>(op->in[0]);
                g.y = data_of<T>(op->in[1]);
            }
            g.height = static_cast<Index>(dx.shape.dim[2]);
            g.out_height = static_cast<Index>(dy.shape.dim[2]);
            g.first = op->pool2d.ties == SDLF_TIES_FIRST;
            uintptr_t all = reinterpret_cast<uintptr_t>(g.dx) | reinterpret_cast<uintptr_t>(g.dy) |
                            reinterpret_cast<uintptr_t>(g.x) | reinterpret_cast<uintptr_t>(g.y);
            if (columns % 2 == 0 && all % 16 == 0)
                launch<T, Index, 2>(calculator, op, g, planes, rows, columns);
            else
                launch<T, Index, 1>(calculator, op, g, planes, rows, columns);
        });
    });
    return cuda_check_launch("pooling 2x2, backward");
}
