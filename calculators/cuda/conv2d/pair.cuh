/* SPDX-License-Identifier: MIT */
/* The first half of a pair (pair.h): its part of x brought into shared memory, and the numbers between the convolutions made of it.
 *
 * Products: a task of a warp is 8 filters by 64 pixels, two pixels a lane, so that lanes read neighbours and a filter's weight goes to
 * all of them at once; where tasks are few, four warps share one's sum over the channels, and their parts are added in order. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PAIR_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_PAIR_CUH

#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/conv2d/pair.h"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/mma.cuh"

enum { WARP = 32 };

struct pair_problem {
    cuda_pair p;
    divider<int32_t> width, out_width, strips; /* strips: of a block's rows */
    float low[2], high[2]; /* what the two activations keep numbers within, where they are that simple */
};

/* Where a block stands. */
struct pair_place {
    int first;  /* row of the image that is the first one held; may lie above it */
    int top;    /* the first row that is there */
    int pixels; /* in the rows that are there, of a channel */
};

static __device__ __forceinline__ pair_place place_of(const cuda_pair &p)
{
    pair_place at;
    at.first = static_cast<int>(blockIdx.y) * p.rows * p.stride[0] - p.padding[0];
    at.top = at.first > 0 ? at.first : 0;
    at.pixels = ((at.first + p.held_rows < p.height ? at.first + p.held_rows : p.height) - at.top) * p.width;
    return at;
}

/* Activations but identity, ReLU and clipping are called. */
template <bool RARE>
static __device__ __forceinline__ float activate_within(const sdlf_activation &activation, float low, float high,
                                                        float x)
{
    if constexpr (RARE) return activate_by_call(activation, x);
    return x < low ? low : x > high ? high : x;
}

/* All channels of the rows that are there, N numbers at a time; lines and planes begin at multiples of that. */
template <int N>
static __device__ __forceinline__ void bring_rows(float *to, const float *from, int channels, int pixels, int plane)
{
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int at = threadIdx.x % WARP * N; at < pixels; at += WARP * N) {
        const float *source = from + warp * plane + at;
        float *target = to + warp * pixels + at;
#pragma unroll 4
        for (int c = warp; c < channels; c += warps, source += warps * plane, target += warps * pixels) {
            if constexpr (N == 4)
                copy_async(target, source, true);
            else
                copy_async_number(target, source, true);
        }
    }
}

static __device__ __forceinline__ void bring(float *to, const float *from, int count)
{
#pragma unroll 4
    for (int e = threadIdx.x * 4; e < count; e += blockDim.x * 4) copy_async(to + e, from + e, true);
}

static __device__ __forceinline__ void bring_x(float *to, const cuda_pair &p, const pair_place &at)
{
    const int plane = p.height * p.width;
    const float *image = p.x + static_cast<int64_t>(blockIdx.z) * p.channels * plane, *from = image + at.top * p.width;
    const bool lies = (reinterpret_cast<uintptr_t>(from) & 15) == 0;
    if (lies && at.pixels == plane && (p.channels * plane & 3) == 0)
        bring(to, from, p.channels * plane);
    else if (lies && ((at.pixels | plane) & 3) == 0)
        bring_rows<4>(to, from, p.channels, at.pixels, plane);
    else
        bring_rows<1>(to, from, p.channels, at.pixels, plane);
}

/* The place between the convolutions of a pixel of the rows that are there. */
static __device__ __forceinline__ int place_between(const pair_problem &g, const pair_place &at, int pixel)
{
    int column, row = divide<int32_t>(pixel, g.width, column);
    return (row + at.top - at.first) * g.p.pitch + column + g.p.padding[1];
}

/* A warp's part of the sums of 8 filters by 64 pixels, two a lane. What it reads of pixels that are not there is not used. */
template <int GROUP>
static __device__ __forceinline__ void multiply(float (&sum)[PAIR_DOWN][2], const float *w, const float *x,
                                                int channels, int pixels)
{
#pragma unroll 4
    for (int c = 0; c < channels; c++, w += GROUP, x += pixels) {
        const float a = x[0], b = x[WARP];
        const float4 low = *reinterpret_cast<const float4 *>(w), high = *reinterpret_cast<const float4 *>(w + 4);
        const float factor[PAIR_DOWN] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int i = 0; i < PAIR_DOWN; i++) {
            sum[i][0] += factor[i] * a;
            sum[i][1] += factor[i] * b;
        }
    }
}

/* Between the convolutions, where each sum is one warp's. */
template <int GROUP, bool RARE>
static __device__ __forceinline__ void products(float *held, const float *w, const float *x, const pair_problem &g,
                                                const pair_place &at)
{
    constexpr int DOWN = GROUP / PAIR_DOWN;
    const cuda_pair &p = g.p;
    const int warp = threadIdx.x / WARP, filter = warp % DOWN * PAIR_DOWN, area = p.held_rows * p.pitch;
    const int step = blockDim.x / (WARP * DOWN) * PAIR_ACROSS;
    const float *bias = w + p.channels * GROUP + filter;
    for (int pixel = warp / DOWN * PAIR_ACROSS + threadIdx.x % WARP; pixel < at.pixels; pixel += step) {
        float sum[PAIR_DOWN][2] = {};
        multiply<GROUP>(sum, w + filter, x + pixel, p.channels, at.pixels);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            if (pixel + j * WARP >= at.pixels) break;
            float *to = held + filter * area + place_between(g, at, pixel + j * WARP);
#pragma unroll
            for (int i = 0; i < PAIR_DOWN; i++, to += area)
                *to = activate_within<RARE>(p.between, g.low[0], g.high[0], sum[i][j] + bias[i]);
        }
    }
}

/* The same where several warps share a sum, each with one task: their parts take the place of x, and are added in order. */
template <int GROUP, bool RARE>
static __device__ __forceinline__ void shared_products(float *held, const float *w, float *x, const pair_problem &g,
                                                       const pair_place &at)
{
    constexpr int DOWN = GROUP / PAIR_DOWN;
    const cuda_pair &p = g.p;
    const int warp = threadIdx.x / WARP, slice = warp % PAIR_SLICES, filter = warp / PAIR_SLICES % DOWN * PAIR_DOWN;
    const int pixel = warp / (PAIR_SLICES * DOWN) * PAIR_ACROSS + threadIdx.x % WARP, area = p.held_rows * p.pitch;
    const int line = blockDim.x / (WARP * PAIR_SLICES * DOWN) * PAIR_ACROSS;
    const int each = (p.channels + PAIR_SLICES - 1) / PAIR_SLICES, first = slice * each;
    const int channels = first + each < p.channels ? each : p.channels - first;
    const float *bias = w + p.channels * GROUP;
    float sum[PAIR_DOWN][2] = {};
    if (pixel < at.pixels)
        multiply<GROUP>(sum, w + first * GROUP + filter, x + first * at.pixels + pixel, channels, at.pixels);
    __syncthreads();
    float *part = x + (slice * GROUP + filter) * line + pixel;
#pragma unroll
    for (int i = 0; i < PAIR_DOWN; i++, part += line) {
        part[0] = sum[i][0];
        part[WARP] = sum[i][1];
    }
    __syncthreads();
    const int fours = line / 4;
    for (int e = threadIdx.x; e < GROUP * fours; e += blockDim.x) {
        const int own = e / fours, start = e % fours * 4;
        const float4 *from = reinterpret_cast<const float4 *>(x) + e;
        float4 total = from[0];
#pragma unroll
        for (int i = 1; i < PAIR_SLICES; i++) total = plus(total, from[i * GROUP * fours]);
        const float value[4] = {total.x, total.y, total.z, total.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (start + i >= at.pixels) break;
            held[own * area + place_between(g, at, start + i)] =
                activate_within<RARE>(p.between, g.low[0], g.high[0], value[i] + bias[own]);
        }
    }
}

#endif
