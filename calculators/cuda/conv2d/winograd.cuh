/* SPDX-License-Identifier: MIT */
/* Winograd's transforms along one axis and two: columns first, then rows. M outputs; M + 2 points: 0, 1, -1 and
 * infinity for M = 2. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_WINOGRAD_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_WINOGRAD_CUH

#include "calculators/cuda/conv2d/winograd.h"
#include "calculators/cuda/kernels.cuh"

template <int M> struct winograd_axis;

template <> struct winograd_axis<2> {
    /* B^T d, G g, A^T p; elements are `gap` apart. */
    static __device__ __forceinline__ void patch(float *d, int gap)
    {
        float d1 = d[gap], d2 = d[2 * gap];
        d[0] -= d2;
        d[3 * gap] = d1 - d[3 * gap];
        d[gap] = d1 + d2;
        d[2 * gap] = d2 - d1;
    }
    static __device__ __forceinline__ void filter(float *to, const float *g, int to_gap, int gap)
    {
        float outer = 0.5f * (g[0] + g[2 * gap]), inner = 0.5f * g[gap];
        to[0] = g[0];
        to[to_gap] = outer + inner;
        to[2 * to_gap] = outer - inner;
        to[3 * to_gap] = g[2 * gap];
    }
    static __device__ __forceinline__ void output(float *to, const float *p, int to_gap, int gap)
    {
        to[0] = p[0] + p[gap] + p[2 * gap];
        to[to_gap] = p[gap] - p[2 * gap] - p[3 * gap];
    }
};

/* (M+2,M+2) in place. */
template <int M> static __device__ __forceinline__ void winograd_patch(float *d)
{
#pragma unroll
    for (int j = 0; j < M + 2; j++) winograd_axis<M>::patch(d + j, M + 2);
#pragma unroll
    for (int i = 0; i < M + 2; i++) winograd_axis<M>::patch(d + i * (M + 2), 1);
}

/* (3,3) to (M+2,M+2) */
template <int M> static __device__ __forceinline__ void winograd_filter(float *to, const float *g)
{
    float half[(M + 2) * 3];
#pragma unroll
    for (int j = 0; j < 3; j++) winograd_axis<M>::filter(half + j, g + j, 3, 3);
#pragma unroll
    for (int i = 0; i < M + 2; i++) winograd_axis<M>::filter(to + i * (M + 2), half + i * 3, 1, 1);
}

/* (M+2,M+2) to (M,M) */
template <int M> static __device__ __forceinline__ void winograd_output(float *to, const float *p)
{
    float half[M * (M + 2)];
#pragma unroll
    for (int j = 0; j < M + 2; j++) winograd_axis<M>::output(half + j, p + j, M + 2, M + 2);
#pragma unroll
    for (int i = 0; i < M; i++) winograd_axis<M>::output(to + i * M, half + i * (M + 2), 1, 1);
}

/* A tile of MxM outputs: its image, and its first row and column of y. */
struct winograd_tile {
    int image, row, column;
    __device__ winograd_tile(const cuda_winograd &p, int tile, int m)
    {
        column = tile % p.tiles_across * m;
        tile /= p.tiles_across;
        row = tile % p.tiles_down * m;
        image = tile / p.tiles_down;
    }
};

/* Load a patch of one plane, zeros outside the image. Bit i (M+2) + j of `inside` is for pixel (i, j). */
template <int M>
static __device__ __forceinline__ void winograd_read(float *d, const float *from, int width, uint64_t inside)
{
#pragma unroll
    for (int i = 0; i < M + 2; i++) {
#pragma unroll
        for (int j = 0; j < M + 2; j++)
            d[i * (M + 2) + j] = inside >> (i * (M + 2) + j) & 1 ? __ldg(from + i * width + j) : 0.0f;
    }
}

template <int M> static __device__ uint64_t winograd_inside(const cuda_winograd &p, int top, int left)
{
    uint64_t inside = 0;
#pragma unroll
    for (int i = 0; i < M + 2; i++) {
#pragma unroll
        for (int j = 0; j < M + 2; j++) {
            bool in = static_cast<unsigned>(top + i) < static_cast<unsigned>(p.height) &&
                      static_cast<unsigned>(left + j) < static_cast<unsigned>(p.width);
            inside |= static_cast<uint64_t>(in) << (i * (M + 2) + j);
        }
    }
    return inside;
}

/* Store a tile of y: act(sums + bias + residual), cropped to y. */
template <int M>
static __device__ __forceinline__ void winograd_write(const cuda_winograd &p, const winograd_tile &at, int filter,
                                                      const float *sum)
{
    float bias = p.bias != nullptr ? p.bias[filter] : 0.0f;
    int64_t to = (static_cast<int64_t>(at.image) * p.filters + filter) * p.out_height * p.out_width +
                 static_cast<int64_t>(at.row) * p.out_width + at.column;
#pragma unroll
    for (int i = 0; i < M; i++, to += p.out_width) {
        if (at.row + i >= p.out_height) break;
        float value[M];
#pragma unroll
        for (int j = 0; j < M; j++) {
            value[j] = sum[i * M + j] + bias;
            if (p.residual != nullptr && at.column + j < p.out_width) value[j] += p.residual[to + j];
            value[j] = activate_often(p.activation, value[j]);
        }
        if (p.out_width % 2 == 0 && (reinterpret_cast<uintptr_t>(p.y + to) & 7) == 0) {
#pragma unroll
            for (int j = 0; j < M; j += 2)
                if (at.column + j < p.out_width)
                    *reinterpret_cast<float2 *>(p.y + to + j) = make_float2(value[j], value[j + 1]);
        } else {
#pragma unroll
            for (int j = 0; j < M; j++)
                if (at.column + j < p.out_width) p.y[to + j] = value[j];
        }
    }
}

#endif
