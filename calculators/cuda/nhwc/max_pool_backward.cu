/* SPDX-License-Identifier: MIT */
/* Backward pass of max pooling of images (N,H,W,C). Padding never wins, NaN does. */
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/nhwc/pool2d.cuh"

enum { THREADS = 256 };

static __device__ __forceinline__ bool same(float a, float b)
{
    return a == b || (a != a && b != b);
}

/* What a window adds to the gradient of its maximum: dy / number of ties, for each of these; or dy, and the first tap that attains it. */
struct pool_shares {
    float *share;    /* same shape as y */
    uint16_t *first; /* same shape as y; NULL: all ties share */
};

/* ---- non-overlapping windows without gaps ---- */

/* Adjacent windows, covering the image from its first row and column to its last ones. */
template <typename Index> struct pool_tiles {
    divider<Index> down, across;
};

/* Max pooling, backward, with adjacent windows, which leave out only pixels past the last window: one thread per window, including the
 * positions past the last one. */
template <typename T, typename Index, typename Form>
static __global__ void __launch_bounds__(THREADS)
    max_pool_backward_tiles_nhwc(const T *x, const T *y, const T *dy, T *dx, int64_t count, const pool_tiles<Index> by,
                                 const pool_nhwc<Index> of)
{
    pooling<Index> g = of.windows;
    Form::fix(g);
    const Index height = g.size[0], width = g.size[1];
    wait_and_launch_dependent_grids();
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        Index vector, p, q;
        const Index plane = divide(divide(divide(static_cast<Index>(e), of.vectors, vector), by.across, q), by.down, p);
        const bool is_window = p < g.out[0] && q < g.out[1];
        float8 largest = {}, share = {};
        if (is_window) {
            const Index window = ((plane * g.out[0] + p) * g.out[1] + q) * of.vectors.number + vector;
            largest = load8(y, window);
            share = load8(dy, window);
        }
        const Index top = p * height - g.before[0], left = q * width - g.before[1];
        auto for_pixels = [&](auto function) {
#pragma unroll
            for (Index r = 0; r < height; r++) {
#pragma unroll
                for (Index s = 0; s < width; s++) {
                    const Index h = top + r, w = left + s;
                    if (h < 0 || h >= g.in[0] || w < 0 || w >= g.in[1]) continue;
                    function(((plane * g.in[0] + h) * g.in[1] + w) * of.vectors.number + vector, r * width + s);
                }
            }
        };
        auto winners = [&](Index at) {
            const float8 value = load8(x, at);
            unsigned wins = 0;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) wins |= static_cast<unsigned>(same(value.at[v], largest.at[v])) << v;
            return wins;
        };
        const bool keeps = height * width <= 8; /* store the winners of a window as bits, for 8 channels each */
        uint64_t all = 0;
        int ties[VECTOR] = {};
        if (is_window && (keeps || !g.first)) {
            for_pixels([&](Index at, Index number) {
                const unsigned wins = winners(at);
                if (keeps) all |= static_cast<uint64_t>(wins) << 8 * number;
#pragma unroll
                for (int v = 0; v < VECTOR; v++) ties[v] += wins >> v & 1;
            });
        }
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            if (is_window && !g.first) share.at[v] /= static_cast<float>(ties[v]);
        }
        unsigned taken = 0;
        for_pixels([&](Index at, Index number) {
            unsigned wins = 0;
            if (is_window) wins = keeps ? static_cast<unsigned>(all >> 8 * number) & 255 : winners(at);
            if (g.first) wins &= ~taken;
            taken |= wins;
            float8 gradient;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) gradient.at[v] = wins >> v & 1 ? share.at[v] : 0.0f;
            store8(dx, at, gradient);
        });
    }
}

static bool lie_side_by_side(const sdlf_operation *op)
{
    const sdlf_window2d &w = op->pool2d.window;
    return w.stride[0] == w.size[0] && w.stride[1] == w.size[1] && w.dilation[0] == 1 && w.dilation[1] == 1;
}

template <typename T, typename Index>
static void run_side_by_side(const cuda_calculator *calculator, const sdlf_operation *op, const pool_nhwc<Index> &of)
{
    const pooling<Index> &g = of.windows;
    const int64_t down = cuda_ceil_div(g.in[0] + g.before[0], g.size[0]);
    const int64_t across = cuda_ceil_div(g.in[1] + g.before[1], g.size[1]);
    const int64_t count = op->in[1].shape.dim[0] * down * across * of.vectors.number;
    const pool_tiles<Index> by = {divider<Index>(down), divider<Index>(across)};
    const auto kernel = g.size[0] == 2 && g.size[1] == 2 ? max_pool_backward_tiles_nhwc<T, Index, pool_form<2, 2>>
                                                         : max_pool_backward_tiles_nhwc<T, Index, pool_form<0, 0>>;
    launch_overlapped(calculator, kernel, cuda_blocks(calculator, count, THREADS), THREADS, 0, data_of<T>(op->in[0]),
                      data_of<T>(op->in[1]), data_of<T>(op->in[2]), data_of<T>(op->out[0]), count, by, of);
}

/* ---- windows that overlap, or leave pixels out ---- */

/* Two kernels; the first has one thread per window, and computes the shares. */
template <typename T, typename Index>
static __global__ void __launch_bounds__(THREADS)
    share_gradient_nhwc(const T *x, const T *y, const T *dy, const pool_shares to, int64_t count,
                        const pool_nhwc<Index> of)
{
    const pooling<Index> &g = of.windows;
    wait_and_launch_dependent_grids();
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

/* The second has one thread per input pixel, and adds the shares of those windows that contain it and whose maximum it attains. */
template <typename T, typename Index>
static __global__ void __launch_bounds__(THREADS)
    max_pool_backward_nhwc(const T *x, const T *y, const pool_shares from, T *dx, const pool_nhwc<Index> of)
{
    const pooling<Index> &g = of.windows;
    wait_and_launch_dependent_grids();
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

/* ---- launches ---- */

int64_t pool2d_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    if (!cuda_is_nhwc(op) || op->kind != SDLF_MAX_POOL2D_BACKWARD || lie_side_by_side(op)) return 0;
    const int64_t tap = op->pool2d.ties == SDLF_TIES_FIRST ? sizeof(uint16_t) : 0;
    return sdlf_tensor_count(&op->in[1]) * (static_cast<int64_t>(sizeof(float)) + tap);
}

sdlf_status max_pool2d_backward_nhwc(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0], &y = op->in[1], &dx = op->out[0];
    with_pool(op, dx, y, [&](auto zero, auto index) {
        using T = decltype(zero);
        using Index = decltype(index);
        const auto of = pool_of<Index>(op, dx, y, dx);
        if (lie_side_by_side(op)) {
            run_side_by_side<T, Index>(calculator, op, of);
            return;
        }
        const int64_t windows = sdlf_tensor_count(&y) / VECTOR;
        pool_shares shares = {static_cast<float *>(op->workspace.data), nullptr};
        if (of.windows.first) shares.first = reinterpret_cast<uint16_t *>(shares.share + windows * VECTOR);
        launch_overlapped(calculator, share_gradient_nhwc<T, Index>, cuda_blocks(calculator, windows, THREADS), THREADS,
                          0, data_of<T>(x), data_of<T>(y), data_of<T>(op->in[2]), shares, windows, of);
        launch_overlapped(calculator, max_pool_backward_nhwc<T, Index>, cuda_blocks(calculator, of.count, THREADS),
                          THREADS, 0, data_of<T>(x), data_of<T>(y), shares, data_of<T>(dx), of);
    });
    return cuda_check_launch("pooling");
}
