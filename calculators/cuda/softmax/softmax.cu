/* SPDX-License-Identifier: MIT */
/* softmax and log_softmax along one axis, and their gradients: lines of `length` elements, `inner` apart.
 *
 * If the axis is the last, a warp processes a line; its lanes have every 32nd element, and up to HELD of them stay in registers, so
 * that the line is read once; longer lines are read again, from cache. Otherwise adjacent elements of a line are far apart, and one
 * thread processes a line, which coalesces across lines: the maximum and the sum are computed in one pass, the result in a second. The
 * order of all reductions is fixed. */
#include <type_traits>

#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256, WARP = 32, HELD = 32 };

template <typename T> static __device__ T warp_sum(T value)
{
    for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

template <typename T> static __device__ T warp_max(T value)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        T other = __shfl_xor_sync(0xffffffffu, value, step);
        if (other > value) value = other;
    }
    return value;
}

/* ---- one warp per line, VALUES elements per lane in registers ---- */

template <typename T, bool LOG, int VALUES>
static __global__ void __launch_bounds__(THREADS) softmax_forward_held(const T *x, T *y, int64_t lines, int length)
{
    int lane = threadIdx.x % WARP;
    for (int64_t line = grid_first() / WARP; line < lines; line += grid_step() / WARP) {
        T value[VALUES], largest = -INFINITY, sum = 0;
#pragma unroll
        for (int k = 0; k < VALUES; k++)
            value[k] = lane + k * WARP < length ? x[line * length + lane + k * WARP] : T(-INFINITY);
#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            if (value[k] > largest) largest = value[k];
        }
        largest = warp_max(largest);
#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            T power = exp(value[k] - largest);
            if (lane + k * WARP < length) sum += power;
            value[k] = LOG ? value[k] - largest : power;
        }
        sum = warp_sum(sum);
        T logarithm = LOG ? log(sum) : T(0), share = T(1) / sum;
#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            if (lane + k * WARP < length)
                y[line * length + lane + k * WARP] = LOG ? value[k] - logarithm : value[k] * share;
        }
    }
}

template <typename T, bool LOG, int VALUES>
static __global__ void __launch_bounds__(THREADS, 2 /* blocks, so that enough loads are in flight */)
    softmax_backward_held(const T *y, const T *dy, T *dx, int64_t lines, int length)
{
    int lane = threadIdx.x % WARP;
    for (int64_t line = grid_first() / WARP; line < lines; line += grid_step() / WARP) {
        T value[VALUES], gradient[VALUES], sum = 0;
#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            bool inside = lane + k * WARP < length;
            value[k] = inside ? y[line * length + lane + k * WARP] : T(0);
            gradient[k] = inside ? dy[line * length + lane + k * WARP] : T(0);
        }
#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            if (lane + k * WARP < length) sum += LOG ? gradient[k] : value[k] * gradient[k];
        }
        sum = warp_sum(sum);
#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            if (lane + k * WARP < length)
                dx[line * length + lane + k * WARP] =
                    LOG ? gradient[k] - exp(value[k]) * sum : value[k] * (gradient[k] - sum);
        }
    }
}

/* ---- one warp per line of any length ---- */

template <typename T, bool LOG>
static __global__ void __launch_bounds__(THREADS) softmax_forward_long(const T *x, T *y, int64_t lines, int64_t length)
{
    int lane = threadIdx.x % WARP;
    for (int64_t line = grid_first() / WARP; line < lines; line += grid_step() / WARP) {
        const T *from = x + line * length;
        T largest = -INFINITY, sum = 0;
#pragma unroll 8
        for (int64_t j = lane; j < length; j += WARP) {
            T value = from[j];
            if (value > largest) largest = value;
        }
        largest = warp_max(largest);
#pragma unroll 4
        for (int64_t j = lane; j < length; j += WARP) sum += exp(from[j] - largest);
        sum = warp_sum(sum);
        T logarithm = LOG ? log(sum) : T(0);
#pragma unroll 4
        for (int64_t j = lane; j < length; j += WARP) {
            T shifted = from[j] - largest;
            y[line * length + j] = LOG ? shifted - logarithm : exp(shifted) / sum;
        }
    }
}

template <typename T, bool LOG>
static __global__ void __launch_bounds__(THREADS)
    softmax_backward_long(const T *y, const T *dy, T *dx, int64_t lines, int64_t length)
{
    int lane = threadIdx.x % WARP;
    for (int64_t line = grid_first() / WARP; line < lines; line += grid_step() / WARP) {
        T sum = 0;
#pragma unroll 4
        for (int64_t e = line * length + lane; e < (line + 1) * length; e += WARP) sum += LOG ? dy[e] : y[e] * dy[e];
        sum = warp_sum(sum);
#pragma unroll 4
        for (int64_t e = line * length + lane; e < (line + 1) * length; e += WARP)
            dx[e] = LOG ? dy[e] - exp(y[e]) * sum : y[e] * (dy[e] - sum);
    }
}

/* ---- one thread per line ---- */

template <typename T, bool LOG>
static __global__ void __launch_bounds__(THREADS)
    softmax_forward_across(const T *x, T *y, int64_t lines, int64_t length, int64_t inner)
{
    for (int64_t line = grid_first(); line < lines; line += grid_step()) {
        int64_t first = line / inner * length * inner + line % inner;
        T largest = -INFINITY, sum = 0; /* of the exponentials, relative to the largest value so far */
#pragma unroll 4
        for (int64_t j = 0; j < length; j++) {
            T value = x[first + j * inner];
            bool grows = value > largest, empty = value == T(-INFINITY) && largest == T(-INFINITY);
            T power = exp(grows ? largest - value : value - largest);
            sum = grows ? sum * power + T(1) : sum + (empty ? T(0) : power);
            if (grows) largest = value;
        }
        T logarithm = LOG ? log(sum) : T(0), share = T(1) / sum;
        bool wrong = largest == T(INFINITY) || largest == T(-INFINITY); /* an infinity would otherwise go unnoticed */
        if (wrong) logarithm = share = T(NAN);
#pragma unroll 4
        for (int64_t j = 0; j < length; j++) {
            T shifted = x[first + j * inner] - largest;
            y[first + j * inner] = LOG ? shifted - logarithm : exp(shifted) * share;
        }
    }
}

template <typename T, bool LOG>
static __global__ void __launch_bounds__(THREADS)
    softmax_backward_across(const T *y, const T *dy, T *dx, int64_t lines, int64_t length, int64_t inner)
{
    for (int64_t line = grid_first(); line < lines; line += grid_step()) {
        int64_t first = line / inner * length * inner + line % inner;
        T sum = 0;
#pragma unroll 8
        for (int64_t j = 0; j < length; j++) {
            int64_t e = first + j * inner;
            sum += LOG ? dy[e] : y[e] * dy[e];
        }
#pragma unroll 4
        for (int64_t j = 0; j < length; j++) {
            int64_t e = first + j * inner;
            dx[e] = LOG ? dy[e] - exp(y[e]) * sum : y[e] * (dy[e] - sum);
        }
    }
}

/* ---- launching ---- */

template <int VALUES> using held = std::integral_constant<int, VALUES>;

/* Call function(VALUES), the elements per lane, as a compile-time constant, up to MOST; 0: the line is longer. */
template <int MOST, typename Function> static void with_values(int64_t length, Function function)
{
    constexpr int some = MOST < 16 ? MOST : 16;
    if (length <= 4 * WARP)
        function(held<4>());
    else if (length <= some * WARP)
        function(held<some>());
    else if (length <= MOST * WARP)
        function(held<MOST>());
    else
        function(held<0>());
}

template <bool LOG> static sdlf_status forward(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int axis = op->softmax.axis;
    int64_t length = y.shape.dim[axis], inner = sdlf_shape_span(y.shape, axis + 1, y.shape.rank);
    int64_t lines = sdlf_shape_span(y.shape, 0, axis) * inner;
    if (lines * length == 0) return SDLF_OK;
    with_float(y.dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *from = data_of<T>(x);
        T *to = data_of<T>(y);
        const unsigned warps = cuda_blocks(calculator, lines * WARP, THREADS);
        if (inner > 1)
            softmax_forward_across<T, LOG><<<cuda_blocks(calculator, lines, THREADS), THREADS, 0, calculator->stream>>>(
                from, to, lines, length, inner);
        else
            with_values<sizeof(T) == sizeof(float) ? HELD : HELD / 2>(length, [&](auto values) {
                if constexpr (values.value > 0)
                    softmax_forward_held<T, LOG, values.value>
                        <<<warps, THREADS, 0, calculator->stream>>>(from, to, lines, (int)length);
                else
                    softmax_forward_long<T, LOG><<<warps, THREADS, 0, calculator->stream>>>(from, to, lines, length);
            });
    });
    return cuda_check_launch("softmax_forward");
}

template <bool LOG> static sdlf_status backward(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &y = op->in[0], &dy = op->in[1], &dx = op->out[0];
    int axis = op->softmax.axis;
    int64_t length = y.shape.dim[axis], inner = sdlf_shape_span(y.shape, axis + 1, y.shape.rank);
    int64_t lines = sdlf_shape_span(y.shape, 0, axis) * inner;
    if (lines * length == 0) return SDLF_OK;
    with_float(y.dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *of = data_of<T>(y), *from = data_of<T>(dy);
        T *to = data_of<T>(dx);
        const unsigned warps = cuda_blocks(calculator, lines * WARP, THREADS);
        if (inner > 1)
            softmax_backward_across<T, LOG>
                <<<cuda_blocks(calculator, lines, THREADS), THREADS, 0, calculator->stream>>>(of, from, to, lines,
                                                                                              length, inner);
        else
            with_values<sizeof(T) == sizeof(float) ? HELD : 4>(length, [&](auto values) {
                if constexpr (values.value > 0)
                    softmax_backward_held<T, LOG, values.value>
                        <<<warps, THREADS, 0, calculator->stream>>>(of, from, to, lines, (int)length);
                else
                    softmax_backward_long<T, LOG>
                        <<<warps, THREADS, 0, calculator->stream>>>(of, from, to, lines, length);
            });
    });
    return cuda_check_launch("softmax_backward");
}

extern "C" sdlf_status softmax_forward_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return forward<false>(calculator, op);
}

extern "C" sdlf_status softmax_backward_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return backward<false>(calculator, op);
}

extern "C" sdlf_status log_softmax_forward_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return forward<true>(calculator, op);
}

extern "C" sdlf_status log_softmax_backward_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return backward<true>(calculator, op);
}
