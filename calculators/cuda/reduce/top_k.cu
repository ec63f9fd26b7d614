/* SPDX-License-Identifier: MIT */
/* top_k: y[o,r,i] = the r-th of the line x[o,.,i], and its index. One warp per line.
 *
 * Short lines are held in registers as keys, unsigned integers in the requested order, and read once: for each rank, the largest key of all
 * lanes is selected and removed. Longer lines are read again, from cache, for each rank: it is the first element that comes after the
 * previous one. */
#include <type_traits>

#include "calculators/cuda/reduce/candidates.cuh"

enum { THREADS = 256, WARP = 32, HELD = 32 };

/* ---- lines held in registers ---- */

/* Larger if x comes earlier; never 0, which marks an empty slot. NaN is first, and -0 equals 0. */
static __device__ __forceinline__ uint32_t key_of(float x, bool smallest)
{
    if (x != x) return UINT32_MAX;
    uint32_t bits = __float_as_uint(x == 0 ? 0.0f : x);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return smallest ? ~bits : bits;
}

static __device__ __forceinline__ uint64_t key_of(double x, bool smallest)
{
    if (x != x) return UINT64_MAX;
    uint64_t bits = static_cast<uint64_t>(__double_as_longlong(x == 0 ? 0.0 : x));
    bits = bits >> 63 ? ~bits : bits | static_cast<uint64_t>(1) << 63;
    return smallest ? ~bits : bits;
}

template <typename N> static __device__ __forceinline__ N largest_of_warp(N mine)
{
    for (int half = WARP / 2; half > 0; half /= 2) {
        N other = __shfl_xor_sync(0xffffffffu, mine, half);
        if (other > mine) mine = other;
    }
    return mine;
}

/* Up to VALUES elements per lane. */
template <typename T, int VALUES>
static __global__ void __launch_bounds__(THREADS)
    top_k_held(const T *x, T *y, int64_t *index, int64_t lines, int length, int k, int64_t inner, bool smallest)
{
    using Key = decltype(key_of(T(0), false));
    const int lane = threadIdx.x % WARP;
    for (int64_t line = grid_first() / WARP; line < lines; line += grid_step() / WARP) {
        const T *from = x + line / inner * length * inner + line % inner;
        int64_t to = line / inner * k * inner + line % inner;
        Key key[VALUES];
#pragma unroll
        for (int v = 0; v < VALUES; v++)
            key[v] = lane + v * WARP < length ? key_of(from[(lane + v * WARP) * inner], smallest) : Key(0);
        for (int rank = 0; rank < k; rank++, to += inner) {
            Key best = 0;
            int at = 0;
#pragma unroll
            for (int v = 0; v < VALUES; v++) {
                if (key[v] > best) {
                    best = key[v];
                    at = v;
                }
            }
            const bool first = best == largest_of_warp(best) && best != 0;
            const int place = lane + at * WARP,
                      taken = -largest_of_warp(first ? -place : INT32_MIN); /* the lowest index */
            if (taken == place) {
#pragma unroll
                for (int v = 0; v < VALUES; v++) {
                    if (v == at) key[v] = 0;
                }
            }
            if (lane == 0) {
                y[to] = from[taken * inner];
                index[to] = taken;
            }
        }
    }
}

/* ---- lines of any length ---- */

template <typename T>
static __global__ void top_k(const T *x, T *y, int64_t *index, int64_t lines, int64_t length, int64_t k, int64_t inner,
                             sdlf_arg_reduce_options options)
{
    int lane = threadIdx.x % WARP;
    int64_t warps = grid_step() / WARP;
    for (int64_t line = grid_first() / WARP; line < lines; line += warps) {
        const T *from = x + line / inner * length * inner + line % inner;
        int64_t to = line / inner * k * inner + line % inner;
        candidate<T> last = {T(0), -1};
        for (int64_t rank = 0; rank < k; rank++, to += inner) {
            candidate<T> best = {T(0), -1};
            for (int64_t j = lane; j < length; j += WARP) {
                candidate<T> next = {from[j * inner], j};
                if (last.index >= 0 && !beats(last, next, options)) continue;
                if (beats(next, best, options)) best = next;
            }
            last = best = first_of_warp(best, options);
            if (lane == 0) {
                y[to] = best.value;
                index[to] = best.index;
            }
        }
    }
}

/* ---- launching ---- */

/* Call function(VALUES), the elements per lane, as a compile-time constant, up to MOST; 0: the line is longer. */
template <int MOST, typename Function> static void with_values(int64_t length, Function function)
{
    if (length <= 4 * WARP)
        function(std::integral_constant<int, 4>());
    else if (length <= 16 * WARP)
        function(std::integral_constant<int, 16>());
    else if (length <= MOST * WARP)
        function(std::integral_constant<int, MOST>());
    else
        function(std::integral_constant<int, 0>());
}

extern "C" sdlf_status top_k_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int axis = op->top_k.axis;
    int64_t length = x.shape.dim[axis], k = y.shape.dim[axis];
    int64_t inner = sdlf_shape_span(x.shape, axis + 1, x.shape.rank);
    int64_t lines = sdlf_shape_span(x.shape, 0, axis) * inner;
    if (lines * k == 0) return SDLF_OK;
    sdlf_arg_reduce_options order = {};
    order.smallest = op->top_k.smallest;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        const unsigned blocks = cuda_blocks(calculator, lines * WARP, THREADS);
        const T *from = data_of<T>(x);
        T *to = data_of<T>(y);
        int64_t *index = data_of<int64_t>(op->out[1]);
        with_values<sizeof(T) == sizeof(float) ? HELD : HELD / 2>(length, [&](auto values) {
            if constexpr (values.value > 0)
                top_k_held<T, values.value><<<blocks, THREADS, 0, calculator->stream>>>(
                    from, to, index, lines, (int)length, (int)k, inner, order.smallest);
            else
                top_k<T><<<blocks, THREADS, 0, calculator->stream>>>(from, to, index, lines, length, k, inner, order);
        });
    });
    return cuda_check_launch("top_k");
}
