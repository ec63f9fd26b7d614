/* normalize, forward and backward. A block a row: its threads stride over the row, sums are taken in float64 and meet in a tree, in
 * the same order every time. The row is read again from the cache. The gradients of a channel are a block's too. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

/* The sum over the block, for all of its threads. */
static __device__ double block_sum(double value, double *parts)
{
    __syncthreads();
    parts[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    return parts[0];
}

struct rows {
    int64_t count, length, inner, channels; /* channels 0: neither scale nor shift */
};

static __device__ int64_t channel_of(const rows &at, int64_t e)
{
    return e / at.inner % at.channels;
}

template <typename T>
static __global__ void normalize_forward(const T *x, const T *scale, const T *shift, T *y, T *mean_out, T *inverse_out,
                                         rows at, double epsilon)
{
    __shared__ double parts[THREADS];
    for (int64_t row = blockIdx.x; row < at.count; row += gridDim.x) {
        int64_t first = row * at.length;
        double sum = 0, squares = 0;
        for (int64_t i = threadIdx.x; i < at.length; i += THREADS) sum += static_cast<double>(x[first + i]);
        double mean = block_sum(sum, parts) / static_cast<double>(at.length);
        for (int64_t i = threadIdx.x; i < at.length; i += THREADS) {
            double distance = static_cast<double>(x[first + i]) - mean;
            squares += distance * distance;
        }
        double variance = block_sum(squares, parts) / static_cast<double>(at.length);
        T centre = static_cast<T>(mean), inverse = static_cast<T>(1 / sqrt(variance + epsilon));
        for (int64_t i = threadIdx.x; i < at.length; i += THREADS) {
            int64_t e = first + i;
            T value = (x[e] - centre) * inverse;
            if (scale != nullptr) value *= scale[channel_of(at, e)];
            if (shift != nullptr) value += shift[channel_of(at, e)];
            y[e] = value;
        }
        if (threadIdx.x == 0) {
            mean_out[row] = centre;
            inverse_out[row] = inverse;
        }
    }
}

template <typename T>
static __global__ void normalize_input(const T *x, const T *scale, const T *mean, const T *inverse_std, const T *dy,
                                       T *dx, rows at)
{
    __shared__ double parts[THREADS];
    for (int64_t row = blockIdx.x; row < at.count; row += gridDim.x) {
        int64_t first = row * at.length;
        T centre = mean[row], inverse = inverse_std[row];
        double sum = 0, projection = 0;
        for (int64_t i = threadIdx.x; i < at.length; i += THREADS) {
            int64_t e = first + i;
            T g = scale != nullptr ? dy[e] * scale[channel_of(at, e)] : dy[e];
            sum += static_cast<double>(g);
            projection += static_cast<double>(g) * static_cast<double>((x[e] - centre) * inverse);
        }
        T share = static_cast<T>(block_sum(sum, parts) / static_cast<double>(at.length));
        T along = static_cast<T>(block_sum(projection, parts) / static_cast<double>(at.length));
        for (int64_t i = threadIdx.x; i < at.length; i += THREADS) {
            int64_t e = first + i;
            T g = scale != nullptr ? dy[e] * scale[channel_of(at, e)] : dy[e];
            dx[e] = inverse * (g - share - (x[e] - centre) * inverse * along);
        }
    }
}

/* Channel c's elements: runs of `inner`, one every channels * inner. */
template <typename T>
static __global__ void normalize_channels(const T *x, const T *mean, const T *inverse_std, const T *dy, T *dscale,
                                          T *dshift, rows at)
{
    __shared__ double parts[THREADS];
    int64_t mine = at.count * at.length / at.channels;
    for (int64_t c = blockIdx.x; c < at.channels; c += gridDim.x) {
        double by_scale = 0, by_shift = 0;
        for (int64_t i = threadIdx.x; i < mine; i += THREADS) {
            int64_t e = (i / at.inner * at.channels + c) * at.inner + i % at.inner, row = e / at.length;
            double gradient = static_cast<double>(dy[e]);
            by_scale += gradient * static_cast<double>((x[e] - mean[row]) * inverse_std[row]);
            by_shift += gradient;
        }
        by_scale = block_sum(by_scale, parts);
        by_shift = block_sum(by_shift, parts);
        if (threadIdx.x == 0 && dscale != nullptr) dscale[c] = static_cast<T>(by_scale);
        if (threadIdx.x == 0 && dshift != nullptr) dshift[c] = static_cast<T>(by_shift);
    }
}

/* `channel` operands have one number a channel; the first that is there says how many. */
static rows rows_of(const sdlf_operation *op, const sdlf_tensor *const *channel, int channels)
{
    rows at = {};
    at.length = op->normalize.length;
    at.inner = op->normalize.inner;
    at.count = sdlf_tensor_count(&op->in[0]) / at.length;
    for (int i = 0; i < channels && at.channels == 0; i++) at.channels = sdlf_tensor_count(channel[i]);
    return at;
}

template <typename T> static T *maybe(const sdlf_tensor &tensor)
{
    return sdlf_tensor_present(&tensor) ? data_of<T>(tensor) : nullptr;
}

extern "C" sdlf_status normalize_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor *const channel[] = {&op->in[1], &op->in[2]};
    rows at = rows_of(op, channel, 2);
    if (at.count == 0) return SDLF_OK;
    with_float(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        normalize_forward<T><<<cuda_blocks(calculator, at.count * THREADS, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), maybe<T>(op->in[1]), maybe<T>(op->in[2]), data_of<T>(op->out[0]),
            data_of<T>(op->out[1]), data_of<T>(op->out[2]), at, static_cast<double>(op->normalize.epsilon));
    });
    return cuda_check_launch("normalize_forward");
}

extern "C" sdlf_status normalize_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor *const channel[] = {&op->in[1], &op->out[1], &op->out[2]};
    rows at = rows_of(op, channel, 3);
    if (at.count == 0) return SDLF_OK;
    with_float(op->in[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *x = data_of<T>(op->in[0]), *mean = data_of<T>(op->in[2]), *inverse = data_of<T>(op->in[3]);
        const T *dy = data_of<T>(op->in[4]);
        T *dx = maybe<T>(op->out[0]), *dscale = maybe<T>(op->out[1]), *dshift = maybe<T>(op->out[2]);
        if (dx != nullptr)
            normalize_input<T>
                <<<cuda_blocks(calculator, at.count * THREADS, THREADS), THREADS, 0, calculator->stream>>>(
                    x, maybe<T>(op->in[1]), mean, inverse, dy, dx, at);
        if (dscale != nullptr || dshift != nullptr)
            normalize_channels<T>
                <<<cuda_blocks(calculator, at.channels * THREADS, THREADS), THREADS, 0, calculator->stream>>>(
                    x, mean, inverse, dy, dscale, dshift, at);
    });
    return cuda_check_launch("normalize_backward");
}
