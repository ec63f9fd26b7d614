/* batch_norm2d. Training: a block a channel reads its n = N H W values three times (the mean, the variance, the result) and
 * writes them once; sums are double and meet in a fixed order. Inference: a thread an element, one pass. */
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 512 };

/* Value v of channel c: x is (N,C,area). */
static __device__ int64_t value_of(int64_t v, int64_t c, int64_t channels, int64_t area)
{
    return (v / area * channels + c) * area + v % area;
}

/* The sum over the block, for every thread. */
static __device__ double block_sum(double value)
{
    __shared__ double parts[THREADS];
    parts[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    value = parts[0];
    __syncthreads();
    return value;
}

template <typename T>
static __global__ void batch_norm_forward(const T *x, const T *scale, const T *shift, T *y, T *saved_mean,
                                          T *saved_inverse, T *running_mean, T *running_variance, int64_t n,
                                          int64_t channels, int64_t area, double epsilon, double momentum)
{
    int64_t c = blockIdx.x;
    double sum = 0, squares = 0;
    for (int64_t v = threadIdx.x; v < n; v += THREADS) sum += x[value_of(v, c, channels, area)];
    double mean = block_sum(sum) / static_cast<double>(n);
    for (int64_t v = threadIdx.x; v < n; v += THREADS) {
        double difference = x[value_of(v, c, channels, area)] - mean;
        squares += difference * difference;
    }
    squares = block_sum(squares);
    double variance = squares / static_cast<double>(n), inverse = 1 / sqrt(variance + epsilon);
    T factor = static_cast<T>(inverse * scale[c]), middle = static_cast<T>(mean), offset = shift[c];
    for (int64_t v = threadIdx.x; v < n; v += THREADS) {
        int64_t e = value_of(v, c, channels, area);
        y[e] = (x[e] - middle) * factor + offset;
    }
    if (threadIdx.x != 0) return;
    saved_mean[c] = static_cast<T>(mean);
    saved_inverse[c] = static_cast<T>(inverse);
    double unbiased = n > 1 ? squares / static_cast<double>(n - 1) : variance;
    running_mean[c] = static_cast<T>((1 - momentum) * running_mean[c] + momentum * mean);
    running_variance[c] = static_cast<T>((1 - momentum) * running_variance[c] + momentum * unbiased);
}

template <typename T>
static __global__ void batch_norm_infer(const T *x, const T *scale, const T *shift, const T *mean, const T *variance,
                                        T *y, int64_t count, int64_t channels, int64_t area, T epsilon,
                                        sdlf_activation activation)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t c = e / area % channels;
        y[e] = activate(activation, (x[e] - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + shift[c]);
    }
}

template <typename T>
static __global__ void batch_norm_backward(const T *x, const T *scale, const T *saved_mean, const T *saved_inverse,
                                           const T *dy, T *dx, T *dscale, T *dshift, int64_t n, int64_t channels,
                                           int64_t area)
{
    int64_t c = blockIdx.x;
    double mean = saved_mean[c], inverse = saved_inverse[c], sum = 0, product = 0;
    for (int64_t v = threadIdx.x; v < n; v += THREADS) {
        int64_t e = value_of(v, c, channels, area);
        sum += dy[e];
        product += dy[e] * (x[e] - mean) * inverse;
    }
    sum = block_sum(sum);
    product = block_sum(product);
    double factor = scale[c] * inverse, mean_sum = sum / static_cast<double>(n),
           mean_product = product / static_cast<double>(n);
    for (int64_t v = threadIdx.x; dx != nullptr && v < n; v += THREADS) {
        int64_t e = value_of(v, c, channels, area);
        dx[e] = static_cast<T>(factor * (dy[e] - mean_sum - (x[e] - mean) * inverse * mean_product));
    }
    if (threadIdx.x != 0) return;
    dscale[c] = static_cast<T>(product);
    dshift[c] = static_cast<T>(sum);
}

static int64_t area_of(const sdlf_tensor &x)
{
    return sdlf_shape_span(x.shape, 2, x.shape.rank);
}

extern "C" sdlf_status batch_norm2d_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0];
    int64_t channels = x.shape.dim[1], area = area_of(x);
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        batch_norm_forward<T><<<(unsigned)channels, THREADS, 0, cuda_stream(base)>>>(
            data_of<T>(x), data_of<T>(op->in[1]), data_of<T>(op->in[2]), data_of<T>(op->out[0]), data_of<T>(op->out[1]),
            data_of<T>(op->out[2]), data_of<T>(op->out[3]), data_of<T>(op->out[4]), x.shape.dim[0] * area, channels,
            area, op->batch_norm.epsilon, op->batch_norm.momentum);
    });
    return cuda_check_launch("batch_norm2d_forward");
}

extern "C" sdlf_status batch_norm2d_infer_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0];
    int64_t count = sdlf_tensor_count(&x);
    if (count == 0) return SDLF_OK;
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        batch_norm_infer<T><<<cuda_blocks(calculator, count, 256), 256, 0, calculator->stream>>>(
            data_of<T>(x), data_of<T>(op->in[1]), data_of<T>(op->in[2]), data_of<T>(op->in[3]), data_of<T>(op->in[4]),
            data_of<T>(op->out[0]), count, x.shape.dim[1], area_of(x), static_cast<T>(op->batch_norm.epsilon),
            op->batch_norm.activation);
    });
    return cuda_check_launch("batch_norm2d_infer");
}

extern "C" sdlf_status batch_norm2d_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0];
    int64_t channels = x.shape.dim[1], area = area_of(x);
    with_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        T *dx = sdlf_tensor_present(&op->out[0]) ? data_of<T>(op->out[0]) : nullptr;
        batch_norm_backward<T><<<(unsigned)channels, THREADS, 0, cuda_stream(base)>>>(
            data_of<T>(x), data_of<T>(op->in[1]), data_of<T>(op->in[2]), data_of<T>(op->in[3]), data_of<T>(op->in[4]),
            dx, data_of<T>(op->out[1]), data_of<T>(op->out[2]), x.shape.dim[0] * area, channels, area);
    });
    return cuda_check_launch("batch_norm2d_backward");
}
