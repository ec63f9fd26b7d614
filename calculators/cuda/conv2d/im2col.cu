/* SPDX-License-Identifier: MIT */
/* im2col and col2im, the first step of two-step convolution, and the sum over per-image partial gradients.
 *
 * columns[n][c][r][s][p][q] = x[n][c][p stride + r dilation - pad][q ...], 0 outside. A thread writes 16 bytes of a row of P Q columns;
 * where rows are no multiple of that, it writes element by element. Reads the image once from memory and R S times from caches, and
 * writes it R S times, or half as many bytes where columns are rounded (gemm/convert_operands.h).
 * col2im: a thread computes an element of dx by gathering. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/gemm/convert_operands.h"
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

static __device__ __forceinline__ void put(float x, float *to)
{
    *to = x;
}

static __device__ __forceinline__ void put(double x, double *to)
{
    *to = x;
}

static __device__ __forceinline__ void put(float x, __half *to)
{
    *to = __float2half_rn(x);
}

static __device__ __forceinline__ void put(float x, __nv_bfloat16 *to)
{
    *to = __float2bfloat16_rn(x);
}

/* `line` elements from one row of columns to the next, written by `chunks` threads; `lines` rows of all images. */
template <typename T, typename Column>
static __global__ void im2col(const T *x, Column *columns, cuda_conv2d g, int64_t lines, int64_t line, int64_t chunks)
{
    const int each = 16 / sizeof(Column);
    const sdlf_window2d &window = g.window;
    int area = static_cast<int>(g.out_height * g.out_width), width = static_cast<int>(g.out_width);
    int64_t kernel = static_cast<int64_t>(window.size[0]) * window.size[1];
    for (int64_t e = grid_first(); e < lines * chunks; e += grid_step()) {
        int64_t row = e / chunks, plane = row / kernel;
        int first = static_cast<int>(e - row * chunks) * each, position = static_cast<int>(row - plane * kernel);
        int p = first / width, q = first % width, r = position / window.size[1], s = position % window.size[1];
        const T *from = x + plane * g.height * g.width;
        __align__(16) Column made[each];
#pragma unroll
        for (int i = 0; i < each; i++) {
            int64_t h = static_cast<int64_t>(p) * window.stride[0] + static_cast<int64_t>(r) * window.dilation[0] -
                        window.padding_before[0];
            int64_t w = static_cast<int64_t>(q) * window.stride[1] + static_cast<int64_t>(s) * window.dilation[1] -
                        window.padding_before[1];
            bool inside = first + i < area && h >= 0 && h < g.height && w >= 0 && w < g.width;
            put(inside ? from[h * g.width + w] : T(0), &made[i]);
            if (++q == width) {
                q = 0;
                p++;
            }
        }
        Column *to = columns + row * line + first;
        if (line % each == 0) {
            *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<uint4 *>(made);
        } else {
            for (int i = 0; i < each && first + i < area; i++) to[i] = made[i];
        }
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

template <typename T, typename Column>
static void launch(const cuda_calculator *calculator, const cuda_conv2d &g, const void *x, void *columns,
                   int64_t images, int64_t line)
{
    const int each = 16 / sizeof(Column);
    int64_t lines = images * g.channels * g.window.size[0] * g.window.size[1];
    int64_t chunks = (g.out_height * g.out_width + each - 1) / each;
    im2col<T, Column><<<cuda_blocks(calculator, lines * chunks, THREADS), THREADS, 0, calculator->stream>>>(
        static_cast<const T *>(x), static_cast<Column *>(columns), g, lines, line, chunks);
}

extern "C" sdlf_status cuda_im2col(sdlf_calculator *base, const cuda_conv2d *g, sdlf_dtype dtype, bool rounded,
                                   const void *x, void *columns, int64_t images)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t area = g->out_height * g->out_width;
    if (!rounded)
        with_float(dtype, [&](auto zero) {
            launch<decltype(zero), decltype(zero)>(calculator, *g, x, columns, images, area);
        });
    else if (calculator->math == SDLF_MATH_FP16)
        launch<float, __half>(calculator, *g, x, columns, images, cuda_operand16_line(area));
    else
        launch<float, __nv_bfloat16>(calculator, *g, x, columns, images, cuda_operand16_line(area));
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
