/* SPDX-License-Identifier: MIT */
/* dgrad of strided NHWC depthwise convolution (nhwc/depthwise.cuh): g.x is dy, g.y dx. */
#include "calculators/cuda/nhwc/depthwise_runs.cuh"

template <typename T>
static __device__ __forceinline__ void store_gradient(const depthwise_conv &g, float8 sum, int64_t to)
{
    if (g.residual != nullptr) {
        const float8 more = load8(static_cast<const T *>(g.residual), to);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.at[v] += more.at[v];
    }
    store8(static_cast<T *>(g.y), to, sum);
}

/* Any stride; a run is one pixel. */
template <typename T>
static __global__ void __launch_bounds__(RUN_THREADS) depthwise_dgrad_strided(const __grid_constant__ depthwise_conv g)
{
    extern __shared__ float4 weights[];
    float *shared = reinterpret_cast<float *>(weights);
    const int lines = RUN_THREADS / g.across, line = static_cast<int>(threadIdx.x) / g.across;
    const int mine = static_cast<int>(threadIdx.x) - line * g.across;
    const int first = static_cast<int>(blockIdx.x) * g.across, vector = first + mine;
    wait_and_launch_dependent_grids();
    bring_weights<T>(g, shared, first);
    __syncthreads();
    if (line >= lines || vector >= g.vectors) return;
    for (int64_t run = blockIdx.y * lines + line; run < g.runs; run += gridDim.y * lines) {
        int h, w;
        const int n = divide(divide(static_cast<int32_t>(run), g.run_columns, w), g.run_rows, h);
        float8 sum = {};
        for (int r = 0; r < g.size[0]; r++) {
            const int from_top = h + g.padding[0] - r * g.dilation[0], p = from_top / g.stride[0];
            if (from_top < 0 || p * g.stride[0] != from_top || p >= g.height) continue;
            for (int s = 0; s < g.size[1]; s++) {
                const int from_left = w + g.padding[1] - s * g.dilation[1], q = from_left / g.stride[1];
                if (from_left < 0 || q * g.stride[1] != from_left || q >= g.width) continue;
                const int64_t at = ((static_cast<int64_t>(n) * g.height + p) * g.width + q) * g.vectors + vector;
                multiply(sum, load8(static_cast<const T *>(g.x), at),
                         shared + (r * g.size[1] + s) * g.across * VECTOR + mine * VECTOR);
            }
        }
        store_gradient<T>(g, sum, run * g.vectors + vector);
    }
}

/* SIZE x SIZE taps and a stride of 2 both ways, no dilation: a run is 2 x 2 pixels that begin at an even pixel of the padded image, and tap (r, s)
 * contributes to the pixel of its parity. */
template <typename T, int SIZE>
static __global__ void __launch_bounds__(RUN_THREADS) depthwise_dgrad_strided2(const __grid_constant__ depthwise_conv g)
{
    extern __shared__ float4 weights[];
    constexpr int SEEN = (SIZE + 1) / 2;
    float *shared = reinterpret_cast<float *>(weights);
    const int lines = RUN_THREADS / g.across, line = static_cast<int>(threadIdx.x) / g.across;
    const int mine = static_cast<int>(threadIdx.x) - line * g.across;
    const int first = static_cast<int>(blockIdx.x) * g.across, vector = first + mine;
    wait_and_launch_dependent_grids();
    bring_weights<T>(g, shared, first);
    __syncthreads();
    if (line >= lines || vector >= g.vectors) return;
    const float *w = shared + mine * VECTOR;
    for (int64_t run = blockIdx.y * lines + line; run < g.runs; run += gridDim.y * lines) {
        int i, j;
        const int n = divide(divide(static_cast<int32_t>(run), g.run_columns, j), g.run_rows, i);
        i += g.padding[0] / 2;
        j += g.padding[1] / 2;
        bits8<T> seen[SEEN][SEEN]; /* dy, from its pixel (i, j) upwards and to the left */
#pragma unroll
        for (int a = 0; a < SEEN; a++) {
#pragma unroll
            for (int b = 0; b < SEEN; b++) {
                const int p = i - a, q = j - b;
                const bool is_there = p >= 0 && p < g.height && q >= 0 && q < g.width;
                const int64_t at = ((static_cast<int64_t>(n) * g.height + p) * g.width + q) * g.vectors + vector;
                seen[a][b] = is_there ? load_bits8(static_cast<const T *>(g.x), at) : bits8<T>{};
            }
        }
        float8 sum[2][2] = {};
#pragma unroll
        for (int r = 0; r < SIZE; r++) {
#pragma unroll
            for (int s = 0; s < SIZE; s++)
                multiply(sum[r % 2][s % 2], unpack8<T>(seen[r / 2][s / 2]), w + (r * SIZE + s) * g.across * VECTOR);
        }
#pragma unroll
        for (int a = 0; a < 2; a++) {
#pragma unroll
            for (int b = 0; b < 2; b++) {
                const int row = 2 * i + a - g.padding[0], column = 2 * j + b - g.padding[1];
                if (row < 0 || row >= g.rows || column < 0 || column >= g.columns) continue;
                const int64_t pixel = (static_cast<int64_t>(n) * g.rows + row) * g.columns + column;
                store_gradient<T>(g, sum[a][b], pixel * g.vectors + vector);
            }
        }
    }
}

/* The number of pairs along a padded axis that contain a pixel of the image. */
static int pairs_of(int padding, int length)
{
    return (padding + length - 1) / 2 - padding / 2 + 1;
}

template <typename T> void depthwise_dgrad_strided_launch(const cuda_calculator *calculator, const depthwise_conv &g)
{
    const bool three = depthwise_conv_is_square(g, 3, 2), five = depthwise_conv_is_square(g, 5, 2);
    if (three || five)
        launch_runs<T>(calculator, g, three ? depthwise_dgrad_strided2<T, 3> : depthwise_dgrad_strided2<T, 5>,
                       pairs_of(g.padding[0], g.rows), pairs_of(g.padding[1], g.columns));
    else
        launch_runs<T>(calculator, g, depthwise_dgrad_strided<T>, g.rows, g.columns);
}

template void depthwise_dgrad_strided_launch<float>(const cuda_calculator *calculator, const depthwise_conv &g);
template void depthwise_dgrad_strided_launch<__half>(const cuda_calculator *calculator, const depthwise_conv &g);
template void depthwise_dgrad_strided_launch<__nv_bfloat16>(const cuda_calculator *calculator, const depthwise_conv &g);
