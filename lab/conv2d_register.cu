/* SPDX-License-Identifier: MIT */
/* Convolution with a tile of the results in registers: one thread computes 4 pixels of 8 filters. For each position of the window it loads
 * 4 elements of the image and 8 weights, and does 32 multiply-adds with these 12; with one thread an output, they take 64 loads.
 *
 * A block is 128 threads and 512 pixels of one image. The 4 pixels of a thread are 128 apart, so that a warp's loads coalesce; all
 * threads load the same weights. Threads share data only through the caches. Filters past the last of a group are computed and dropped. */
#include "lab/conv2d.cuh"

enum { THREADS = 128, PIXELS = 4, FILTERS = 8 };

template <typename T> static __global__ void __launch_bounds__(THREADS) registers(const __grid_constant__ operands<T> o)
{
    const cuda_conv2d &g = o.g;
    int height = static_cast<int>(g.height), width = static_cast<int>(g.width),
        out_width = static_cast<int>(g.out_width);
    int area = static_cast<int>(g.out_height) * out_width, window = g.window.size[0] * g.window.size[1];
    int filter_size = static_cast<int>(g.group_channels) * window;
    int64_t across = (area + THREADS * PIXELS - 1) / (THREADS * PIXELS);
    int64_t eights = (g.group_filters + FILTERS - 1) / FILTERS;
    for (int64_t block = blockIdx.x; block < across * eights * g.groups * g.batch; block += gridDim.x) {
        int64_t group = block / (across * eights) % g.groups, n = block / (across * eights * g.groups);
        int first = static_cast<int>(block % across) * THREADS * PIXELS + threadIdx.x;
        int64_t within = block / across % eights * FILTERS, k = group * g.group_filters + within;
        int filters = static_cast<int>(g.group_filters - within < FILTERS ? g.group_filters - within : FILTERS);
        const T *image = image_of(o, n, k), *weight = filter_of(o, k);
        int top[PIXELS], left[PIXELS];
        T sum[PIXELS][FILTERS] = {};
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            int pixel = first + i * THREADS;
            top[i] = static_cast<int>(reads(g, 0, pixel / out_width, 0));
            left[i] = static_cast<int>(reads(g, 1, pixel % out_width, 0));
        }
        for (int c = 0; c < static_cast<int>(g.group_channels); c++, image += g.height * g.width) {
            for (int r = 0; r < g.window.size[0]; r++) {
                for (int s = 0; s < g.window.size[1]; s++, weight++) {
                    T x[PIXELS], w[FILTERS];
#pragma unroll
                    for (int i = 0; i < PIXELS; i++) {
                        int row = top[i] + r * g.window.dilation[0], column = left[i] + s * g.window.dilation[1];
                        bool inside = row >= 0 && row < height && column >= 0 && column < width;
                        x[i] = inside ? image[row * width + column] : T(0);
                    }
#pragma unroll
                    for (int j = 0; j < FILTERS; j++) w[j] = weight[j < filters ? j * filter_size : 0];
#pragma unroll
                    for (int i = 0; i < PIXELS; i++) {
#pragma unroll
                        for (int j = 0; j < FILTERS; j++) sum[i][j] += x[i] * w[j];
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            int pixel = first + i * THREADS;
#pragma unroll
            for (int j = 0; j < FILTERS; j++) {
                if (pixel < area && j < filters) put(o, (n * g.filters + k + j) * area + pixel, k + j, sum[i][j]);
            }
        }
    }
}

extern "C" sdlf_status lab_conv2d_register(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    int64_t across = (g.out_height * g.out_width + THREADS * PIXELS - 1) / (THREADS * PIXELS);
    int64_t tiles = across * ((g.group_filters + FILTERS - 1) / FILTERS) * g.groups * g.batch;
    unsigned blocks = cuda_blocks(calculator, tiles * THREADS, THREADS);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        registers<T><<<blocks, THREADS, 0, calculator->stream>>>(operands_of<T>(op));
    });
    return cuda_check_launch("conv2d_forward, register");
}
