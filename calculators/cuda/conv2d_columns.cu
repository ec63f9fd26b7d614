/* im2col and col2im, the first step of two-step convolution, and the sum of per-image parts.
 *
 * columns[n][c][r][s][p][q] = x[n][c][p stride + r dilation - pad][q ...], 0 outside. A thread an element of the columns (or
 * of dx, which gathers); neighbours in q are neighbours in memory on both sides where the stride is 1. Moves
 * R S times the image out and the image in. */
#include "calculators/cuda/conv2d.h"
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

template <typename T> static __global__ void im2col(const T *x, T *columns, cuda_conv2d g, int64_t count)
{
    const sdlf_window2d &window = g.window;
    int64_t area = g.out_height * g.out_width, kernel = static_cast<int64_t>(window.size[0]) * window.size[1];
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t q = e % g.out_width, p = e / g.out_width % g.out_height, plane = e / area;
        int64_t position = plane % kernel, r = position / window.size[1], s = position % window.size[1];
        int64_t row = p * window.stride[0] + r * window.dilation[0] - window.padding_before[0];
        int64_t column = q * window.stride[1] + s * window.dilation[1] - window.padding_before[1];
        bool inside = row >= 0 && row < g.height && column >= 0 && column < g.width;
        columns[e] = inside ? x[(plane / kernel * g.height + row) * g.width + column] : T(0);
    }
}

template <typename T> static __global__ void col2im(const T *columns, T *dx, cuda_conv2d g, int64_t count)
{
    const sdlf_window2d &window = g.window;
    int64_t area = g.out_height * g.out_width, kernel = static_cast<int64_t>(window.size[0]) * window.size[1];
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int64_t column = e % g.width, row = e / g.width % g.height, plane = e / (g.width * g.height);
        T sum = 0;
        for (int r = 0; r < window.size[0]; r++) {
            int64_t down = row + window.padding_before[0] - r * window.dilation[0];
            if (down < 0 || down % window.stride[0] != 0 || down / window.stride[0] >= g.out_height) continue;
            for (int s = 0; s < window.size[1]; s++) {
                int64_t right = column + window.padding_before[1] - s * window.dilation[1];
                if (right < 0 || right % window.stride[1] != 0 || right / window.stride[1] >= g.out_width) continue;
                sum += columns[(plane * kernel + r * window.size[1] + s) * area +
                               down / window.stride[0] * g.out_width + right / window.stride[1]];
            }
        }
        dx[e] = sum;
    }
}

template <typename T>
static __global__ void sum_parts(const T *from, T *to, int64_t count, int64_t parts, bool accumulate)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        T sum = accumulate ? to[e] : T(0);
        for (int64_t i = 0; i < parts; i++) sum += from[i * count + e];
        to[e] = sum;
    }
}

extern "C" sdlf_status cuda_im2col(sdlf_calculator *base, const cuda_conv2d *g, sdlf_dtype dtype, const void *x,
                                   void *columns, int64_t images)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = images * g->channels * g->window.size[0] * g->window.size[1] * g->out_height * g->out_width;
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        im2col<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            static_cast<const T *>(x), static_cast<T *>(columns), *g, count);
    });
    return cuda_check_launch("im2col");
}

extern "C" sdlf_status cuda_col2im(sdlf_calculator *base, const cuda_conv2d *g, sdlf_dtype dtype, const void *columns,
                                   void *dx, int64_t images)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = images * g->channels * g->height * g->width;
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        col2im<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            static_cast<const T *>(columns), static_cast<T *>(dx), *g, count);
    });
    return cuda_check_launch("col2im");
}

extern "C" sdlf_status cuda_sum_parts(sdlf_calculator *base, sdlf_dtype dtype, const void *from, void *to,
                                      int64_t count, int64_t parts, bool accumulate)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        sum_parts<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            static_cast<const T *>(from), static_cast<T *>(to), count, parts, accumulate);
    });
    return cuda_check_launch("conv2d weights gradient");
}
