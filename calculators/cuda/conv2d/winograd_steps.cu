/* SPDX-License-Identifier: MIT */
/* Winograd's transforms as kernels of their own: filters, patches and outputs. The products in between are cuBLAS's, or the fused
 * kernel's. A thread makes a transform; neighbours are neighbouring tiles, or filters. */
#include "calculators/cuda/conv2d/winograd.cuh"
#include "calculators/cuda/launch.cuh"

enum { THREADS = 128 };

/* The 9 numbers of a filter; zeros where there is none. */
static __device__ __forceinline__ void read_filter(float *g, const float *w, int k, int c, int filters, int channels)
{
    bool exists = k < filters && c < channels;
    const float *from = w + (static_cast<int64_t>(k) * channels + c) * 9;
#pragma unroll
    for (int i = 0; i < 9; i++) g[i] = exists ? from[i] : 0.0f;
}

/* Reads 9 K C numbers, writes 16 of both rounded up. */
static __global__ void __launch_bounds__(THREADS)
    winograd_filters_fused(const float *w, float *u, int filters, int channels, int steps, int64_t count)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int local_k = static_cast<int>(e % WINOGRAD_FILTERS),
            local_c = static_cast<int>(e / WINOGRAD_FILTERS % WINOGRAD_CHANNELS);
        int64_t step = e / (WINOGRAD_FILTERS * WINOGRAD_CHANNELS);
        float g[9], points[WINOGRAD_POINTS];
        read_filter(g, w, static_cast<int>(step / steps) * WINOGRAD_FILTERS + local_k,
                    static_cast<int>(step % steps) * WINOGRAD_CHANNELS + local_c, filters, channels);
        winograd_filter<2>(points, g);
        float *to = u + (step * WINOGRAD_POINTS * WINOGRAD_CHANNELS + local_c) * WINOGRAD_FILTERS + local_k;
#pragma unroll
        for (int i = 0; i < WINOGRAD_POINTS; i++) to[i * WINOGRAD_CHANNELS * WINOGRAD_FILTERS] = points[i];
    }
}

/* Reads 9 K C numbers, writes (M+2)^2 K C. */
template <int M>
static __global__ void __launch_bounds__(THREADS)
    winograd_filters(const float *w, float *u, int filters, int channels, int64_t count)
{
    constexpr int POINTS = (M + 2) * (M + 2);
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        float g[9], points[POINTS];
        read_filter(g, w, static_cast<int>(e / channels), static_cast<int>(e % channels), filters, channels);
        winograd_filter<M>(points, g);
#pragma unroll
        for (int i = 0; i < POINTS; i++) u[e + i * count] = points[i];
    }
}

/* Reads x, writes (M+2)^2 C tiles numbers. */
template <int M>
static __global__ void __launch_bounds__(THREADS) winograd_patches(const __grid_constant__ cuda_winograd p, float *v)
{
    constexpr int POINTS = (M + 2) * (M + 2);
    int64_t count = static_cast<int64_t>(p.channels) * p.tiles, plane = static_cast<int64_t>(p.height) * p.width;
    await_kernels();
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int c = static_cast<int>(e / p.tiles);
        winograd_tile at(p, static_cast<int>(e - static_cast<int64_t>(c) * p.tiles), M);
        int top = at.row - p.padding[0], left = at.column - p.padding[1];
        const float *image = p.x + (static_cast<int64_t>(at.image) * p.channels + c) * plane;
        float d[POINTS];
        winograd_read<M>(d, image + static_cast<int64_t>(top) * p.width + left, p.width,
                         winograd_inside<M>(p, top, left));
        winograd_patch<M>(d);
#pragma unroll
        for (int i = 0; i < POINTS; i++) v[e + i * count] = d[i];
    }
}

/* Reads (M+2)^2 K tiles numbers, writes y. */
template <int M>
static __global__ void __launch_bounds__(THREADS)
    winograd_outputs(const __grid_constant__ cuda_winograd p, const float *products)
{
    constexpr int POINTS = (M + 2) * (M + 2);
    int64_t count = static_cast<int64_t>(p.filters) * p.tiles;
    await_kernels();
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int filter = static_cast<int>(e / p.tiles);
        winograd_tile at(p, static_cast<int>(e - static_cast<int64_t>(filter) * p.tiles), M);
        float points[POINTS], y[M * M];
#pragma unroll
        for (int i = 0; i < POINTS; i++) points[i] = products[e + i * count];
        winograd_output<M>(y, points);
        winograd_write<M>(p, at, filter, y);
    }
}

extern "C" sdlf_status cuda_winograd_filters_fused(sdlf_calculator *base, const float *w, float *u, int filters,
                                                   int channels)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int steps = (channels + WINOGRAD_CHANNELS - 1) / WINOGRAD_CHANNELS;
    int64_t blocks = (static_cast<int64_t>(filters) + WINOGRAD_FILTERS - 1) / WINOGRAD_FILTERS;
    int64_t count = blocks * steps * WINOGRAD_FILTERS * WINOGRAD_CHANNELS;
    winograd_filters_fused<<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
        w, u, filters, channels, steps, count);
    return cuda_check_launch("conv2d, Winograd's filters");
}

extern "C" sdlf_status cuda_winograd_filters(sdlf_calculator *base, const float *w, float *u, int filters, int channels,
                                             int m)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = static_cast<int64_t>(filters) * channels;
    auto kernel = m == 2 ? winograd_filters<2> : winograd_filters<4>;
    kernel<<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(w, u, filters, channels, count);
    return cuda_check_launch("conv2d, Winograd's filters");
}

extern "C" sdlf_status cuda_winograd_patches(sdlf_calculator *base, const cuda_winograd *problem, float *v, int m)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = static_cast<int64_t>(problem->channels) * problem->tiles;
    auto kernel = m == 2 ? winograd_patches<2> : winograd_patches<4>;
    launch_overlapped(calculator, kernel, dim3(cuda_blocks(calculator, count, THREADS)), dim3(THREADS), 0, *problem, v);
    return cuda_check_launch("conv2d, Winograd's patches");
}

extern "C" sdlf_status cuda_winograd_outputs(sdlf_calculator *base, const cuda_winograd *problem, const float *products,
                                             int m)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = static_cast<int64_t>(problem->filters) * problem->tiles;
    auto kernel = m == 2 ? winograd_outputs<2> : winograd_outputs<4>;
    launch_overlapped(calculator, kernel, dim3(cuda_blocks(calculator, count, THREADS)), dim3(THREADS), 0, *problem,
                      products);
    return cuda_check_launch("conv2d, Winograd's outputs");
}
