/* softmax and log_softmax along one axis, and their gradients: lines of `length` elements, `inner` apart. Every line is read
 * twice or three times, from cache after the first, and written once.
 *
 * A warp a line; its lanes take every 32nd element. Neighbouring elements of a line are neighbours in memory only where the
 * axis is the last; elsewhere a thread a line coalesces across lines instead. Both orders are fixed. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256, WARP = 32 };

/* Who works on a line: lanes lane, lane + lanes, ... of it; lanes is 32 (a warp) or 1 (a thread). */
template <int LANES, typename T> static __device__ T sum_over(T value)
{
    for (int step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

template <int LANES, typename T> static __device__ T max_over(T value)
{
    for (int step = LANES / 2; step > 0; step /= 2) {
        T other = __shfl_xor_sync(0xffffffffu, value, step);
        if (other > value) value = other;
    }
    return value;
}

template <int LANES, typename T, bool LOG>
static __global__ void softmax_forward(const T *x, T *y, int64_t lines, int64_t length, int64_t inner)
{
    int64_t lane = threadIdx.x % LANES;
    for (int64_t line = grid_first() / LANES; line < lines; line += grid_step() / LANES) {
        int64_t first = line / inner * length * inner + line % inner;
        T largest = -INFINITY, sum = 0;
        for (int64_t j = lane; j < length; j += LANES) {
            T value = x[first + j * inner];
            if (value > largest) largest = value;
        }
        largest = max_over<LANES>(largest);
        for (int64_t j = lane; j < length; j += LANES) sum += exp(x[first + j * inner] - largest);
        sum = sum_over<LANES>(sum);
        T logarithm = LOG ? log(sum) : T(0);
        for (int64_t j = lane; j < length; j += LANES) {
            T shifted = x[first + j * inner] - largest;
            y[first + j * inner] = LOG ? shifted - logarithm : exp(shifted) / sum;
        }
    }
}

/* softmax: dx = y (dy - sum y dy). log_softmax: dx = dy - exp(y) sum dy. */
template <int LANES, typename T, bool LOG>
static __global__ void softmax_backward(const T *y, const T *dy, T *dx, int64_t lines, int64_t length, int64_t inner)
{
    int64_t lane = threadIdx.x % LANES;
    for (int64_t line = grid_first() / LANES; line < lines; line += grid_step() / LANES) {
        int64_t first = line / inner * length * inner + line % inner;
        T sum = 0;
        for (int64_t j = lane; j < length; j += LANES)
            sum += LOG ? dy[first + j * inner] : y[first + j * inner] * dy[first + j * inner];
        sum = sum_over<LANES>(sum);
        for (int64_t j = lane; j < length; j += LANES) {
            int64_t e = first + j * inner;
            dx[e] = LOG ? dy[e] - exp(y[e]) * sum : y[e] * (dy[e] - sum);
        }
    }
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
        if (inner == 1)
            softmax_forward<WARP, T, LOG>
                <<<cuda_blocks(calculator, lines * WARP, THREADS), THREADS, 0, calculator->stream>>>(
                    data_of<T>(x), data_of<T>(y), lines, length, inner);
        else
            softmax_forward<1, T, LOG><<<cuda_blocks(calculator, lines, THREADS), THREADS, 0, calculator->stream>>>(
                data_of<T>(x), data_of<T>(y), lines, length, inner);
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
        if (inner == 1)
            softmax_backward<WARP, T, LOG>
                <<<cuda_blocks(calculator, lines * WARP, THREADS), THREADS, 0, calculator->stream>>>(
                    data_of<T>(y), data_of<T>(dy), data_of<T>(dx), lines, length, inner);
        else
            softmax_backward<1, T, LOG><<<cuda_blocks(calculator, lines, THREADS), THREADS, 0, calculator->stream>>>(
                data_of<T>(y), data_of<T>(dy), data_of<T>(dx), lines, length, inner);
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
