/* SPDX-License-Identifier: MIT */
/* Direct convolution in one kernel, for every size, stride, dilation and group: the plain algorithm of the ladder.
 *
 * Forward: a thread computes an output; a warp covers 32 neighbours in q, so that loads of x coalesce and all lanes read the same weight.
 * Backward input: a thread computes an element of dx, gathering from the outputs that used it. Backward weights: a block computes a
 * weight, summing over n, p, q in a fixed order. Does 2 N K P Q (C/G) R S FLOPs with no reuse except in caches. */
#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

template <typename T>
static __global__ void conv2d_forward(const T *x, const T *w, const T *bias, const T *residual, T *y, cuda_conv2d g,
                                      sdlf_activation activation)
{
    const sdlf_window2d &window = g.window;
    int64_t outputs = g.batch * g.filters * g.out_height * g.out_width;
    for (int64_t e = grid_first(); e < outputs; e += grid_step()) {
        int64_t q = e % g.out_width, p = e / g.out_width % g.out_height;
        int64_t k = e / (g.out_width * g.out_height) % g.filters, n = e / (g.out_width * g.out_height * g.filters);
        const T *weight = w + k * g.group_channels * window.size[0] * window.size[1];
        const T *image = x + (n * g.channels + k / g.group_filters * g.group_channels) * g.height * g.width;
        T sum = 0;
        for (int64_t c = 0; c < g.group_channels; c++, image += g.height * g.width) {
            for (int r = 0; r < window.size[0]; r++) {
                int64_t row = p * window.stride[0] + r * window.dilation[0] - window.padding_before[0];
                for (int s = 0; s < window.size[1]; s++, weight++) {
                    int64_t column = q * window.stride[1] + s * window.dilation[1] - window.padding_before[1];
                    if (row < 0 || row >= g.height || column < 0 || column >= g.width) continue;
                    sum += image[row * g.width + column] * *weight;
                }
            }
        }
        if (bias != nullptr) sum += bias[k];
        if (residual != nullptr) sum += residual[e];
        y[e] = activate(activation, sum);
    }
}

template <typename T> static __global__ void conv2d_backward_input(const T *dy, const T *w, T *dx, cuda_conv2d g)
{
    const sdlf_window2d &window = g.window;
    int64_t inputs = g.batch * g.channels * g.height * g.width, area = g.out_height * g.out_width;
    int64_t kernel = static_cast<int64_t>(window.size[0]) * window.size[1];
    for (int64_t e = grid_first(); e < inputs; e += grid_step()) {
        int64_t column = e % g.width, row = e / g.width % g.height;
        int64_t c = e / (g.width * g.height) % g.channels, n = e / (g.width * g.height * g.channels);
        int64_t group = c / g.group_channels;
        const T *gradient = dy + (n * g.filters + group * g.group_filters) * area;
        const T *weight = w + (group * g.group_filters * g.group_channels + c % g.group_channels) * kernel;
        T sum = 0;
        for (int r = 0; r < window.size[0]; r++) {
            int64_t down = row + window.padding_before[0] - r * window.dilation[0];
            if (down < 0 || down % window.stride[0] != 0 || down / window.stride[0] >= g.out_height) continue;
            for (int s = 0; s < window.size[1]; s++) {
                int64_t right = column + window.padding_before[1] - s * window.dilation[1];
                if (right < 0 || right % window.stride[1] != 0 || right / window.stride[1] >= g.out_width) continue;
                int64_t at = down / window.stride[0] * g.out_width + right / window.stride[1];
                for (int64_t k = 0; k < g.group_filters; k++)
                    sum += gradient[k * area + at] * weight[k * g.group_channels * kernel + r * window.size[1] + s];
            }
        }
        dx[e] = sum;
    }
}

/* The sum over the block, in all threads. */
template <typename T> static __device__ T block_sum(T value)
{
    __shared__ T parts[THREADS];
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

template <typename T> static __global__ void conv2d_backward_weights(const T *x, const T *dy, T *dw, cuda_conv2d g)
{
    const sdlf_window2d &window = g.window;
    int64_t kernel = static_cast<int64_t>(window.size[0]) * window.size[1], area = g.out_height * g.out_width;
    int64_t weights = g.filters * g.group_channels * kernel;
    for (int64_t e = blockIdx.x; e < weights; e += gridDim.x) {
        int s = static_cast<int>(e % window.size[1]), r = static_cast<int>(e / window.size[1] % window.size[0]);
        int64_t k = e / kernel / g.group_channels,
                c = k / g.group_filters * g.group_channels + e / kernel % g.group_channels;
        T sum = 0;
        for (int64_t i = threadIdx.x; i < g.batch * area; i += THREADS) {
            int64_t n = i / area, q = i % g.out_width, p = i % area / g.out_width;
            int64_t row = p * window.stride[0] + r * window.dilation[0] - window.padding_before[0];
            int64_t column = q * window.stride[1] + s * window.dilation[1] - window.padding_before[1];
            if (row < 0 || row >= g.height || column < 0 || column >= g.width) continue;
            sum += dy[(n * g.filters + k) * area + i % area] *
                   x[((n * g.channels + c) * g.height + row) * g.width + column];
        }
        sum = block_sum(sum);
        if (threadIdx.x == 0) dw[e] = sum;
    }
}

/* A block a filter; a thread adds every 1024th of its elements, 8 at a time so that the loads overlap. */
enum { BIAS_THREADS = 1024, BIAS_READS = 8 };

template <typename T>
static __global__ void __launch_bounds__(BIAS_THREADS)
    bias_gradient(const T *dy, T *db, int64_t batch, int64_t filters, int64_t area)
{
    __shared__ double parts[BIAS_THREADS / 32];
    const T *gradient = dy + blockIdx.x * area;
    int64_t n = threadIdx.x / area, i = threadIdx.x % area;
    double sum = 0;
    for (int64_t e = threadIdx.x; e < batch * area; e += BIAS_THREADS * BIAS_READS) {
        T few = 0;
#pragma unroll
        for (int read = 0; read < BIAS_READS; read++) {
            if (e + read * BIAS_THREADS < batch * area) few += gradient[n * filters * area + i];
            i += BIAS_THREADS % area;
            n += BIAS_THREADS / area;
            if (i >= area) {
                i -= area;
                n++;
            }
        }
        sum += static_cast<double>(few);
    }
    for (int gap = 16; gap > 0; gap /= 2) sum += __shfl_down_sync(0xffffffffu, sum, gap);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < BIAS_THREADS / 32; warp++) sum += parts[warp];
    db[blockIdx.x] = static_cast<T>(sum);
}

extern "C" sdlf_status conv2d_forward_direct_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        conv2d_forward<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), optional<T>(op->in[2]), optional<T>(op->in[3]),
            data_of<T>(op->out[0]), g, op->conv2d.activation);
    });
    return cuda_check_launch("conv2d_forward, direct");
}

extern "C" sdlf_status conv2d_backward_input_direct_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    cuda_conv2d g = cuda_conv2d_of(op, &op->out[0], &op->in[1], &op->in[0]);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        conv2d_backward_input<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), g);
    });
    return cuda_check_launch("conv2d_backward_input, direct");
}

extern "C" sdlf_status cuda_bias_gradient(sdlf_calculator *base, const sdlf_tensor *dy, const sdlf_tensor *db)
{
    with_float(dy->dtype, [&](auto zero) {
        using T = decltype(zero);
        bias_gradient<T><<<(unsigned)dy->shape.dim[1], BIAS_THREADS, 0, cuda_stream(base)>>>(
            data_of<T>(*dy), data_of<T>(*db), dy->shape.dim[0], dy->shape.dim[1], dy->shape.dim[2] * dy->shape.dim[3]);
    });
    return cuda_check_launch("conv2d bias gradient");
}

extern "C" sdlf_status conv2d_backward_weights_direct_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->out[0], &op->in[1]);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        conv2d_backward_weights<T>
            <<<cuda_blocks(calculator, sdlf_tensor_count(&op->out[0]), 1), THREADS, 0, calculator->stream>>>(
                data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), g);
    });
    sdlf_status status = cuda_check_launch("conv2d_backward_weights, direct");
    if (status != SDLF_OK || !sdlf_tensor_present(&op->out[1])) return status;
    return cuda_bias_gradient(base, &op->in[1], &op->out[1]);
}
