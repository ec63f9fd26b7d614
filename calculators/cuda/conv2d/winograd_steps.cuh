/* SPDX-License-Identifier: MIT */
/* Winograd's transforms as separate kernels: filters, patches and outputs of MxM tiles; cuBLAS computes the GEMMs in
 * between. A thread computes one transform; neighbouring threads have neighbouring tiles, or filters. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_WINOGRAD_STEPS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_WINOGRAD_STEPS_CUH

#include "calculators/cuda/conv2d/winograd.cuh"
#include "calculators/cuda/launch.cuh"

enum { THREADS = 128 };

/* The 9 weights of a filter; zeros where there is none. */
static __device__ __forceinline__ void read_filter(float *g, const float *w, int k, int c, int filters, int channels)
{
    bool exists = k < filters && c < channels;
    const float *from = w + (static_cast<int64_t>(k) * channels + c) * 9;
#pragma unroll
    for (int i = 0; i < 9; i++) g[i] = exists ? from[i] : 0.0f;
}

/* Reads 9 K C elements, writes (M+2)^2 K C. */
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

/* Reads x, writes (M+2)^2 C tiles elements. */
template <int M>
static __global__ void __launch_bounds__(THREADS)
    winograd_input_transform(const __grid_constant__ cuda_winograd p, float *v)
{
    constexpr int POINTS = (M + 2) * (M + 2);
    int64_t count = static_cast<int64_t>(p.channels) * p.tiles, plane = static_cast<int64_t>(p.height) * p.width;
    wait_and_launch_dependent_grids();
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

/* Reads (M+2)^2 K tiles elements, writes y. */
template <int M>
static __global__ void __launch_bounds__(THREADS)
    winograd_output_transform(const __grid_constant__ cuda_winograd p, const float *products)
{
    constexpr int POINTS = (M + 2) * (M + 2);
    int64_t count = static_cast<int64_t>(p.filters) * p.tiles;
    wait_and_launch_dependent_grids();
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

/* ---- launching ---- */

template <int M> struct winograd_launch {
    static sdlf_status filters(sdlf_calculator *base, const float *w, float *u, int filters, int channels)
    {
        const cuda_calculator *calculator = cuda_calculator_from(base);
        int64_t count = static_cast<int64_t>(filters) * channels;
        winograd_filters<M><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            w, u, filters, channels, count);
        return cuda_check_launch("conv2d, Winograd's filters");
    }
    static sdlf_status patches(sdlf_calculator *base, const cuda_winograd *problem, float *v)
    {
        const cuda_calculator *calculator = cuda_calculator_from(base);
        int64_t count = static_cast<int64_t>(problem->channels) * problem->tiles;
        launch_overlapped(calculator, winograd_input_transform<M>, dim3(cuda_blocks(calculator, count, THREADS)),
                          dim3(THREADS), 0, *problem, v);
        return cuda_check_launch("conv2d, Winograd's patches");
    }
    static sdlf_status outputs(sdlf_calculator *base, const cuda_winograd *problem, const float *products)
    {
        const cuda_calculator *calculator = cuda_calculator_from(base);
        int64_t count = static_cast<int64_t>(problem->filters) * problem->tiles;
        launch_overlapped(calculator, winograd_output_transform<M>, dim3(cuda_blocks(calculator, count, THREADS)),
                          dim3(THREADS), 0, *problem, products);
        return cuda_check_launch("conv2d, Winograd's outputs");
    }
    static constexpr cuda_winograd_steps steps = {M, filters, patches, outputs};
};

#endif
