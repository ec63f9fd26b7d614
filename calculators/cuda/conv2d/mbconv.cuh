/* SPDX-License-Identifier: MIT */
/* Fused MBConv, an inverted residual block (mbconv.h): x (C,H,W) -> y (K,P,Q), M expanded channels.
 *
 *   h[m,i,j] = act(b[m] + sum over c of w[m,c] x[c,i,j]), 0 outside
 *   z[m,p,q] = act'(b'[m] + sum over r,s of w'[m,r,s] h[m,..])
 *   y[k,p,q] = act''(b''[k] + sum over m of w''[k,m] z[m,p,q] + residual[k,p,q])
 *
 * (without the expansion h = x). Both GEMMs use tensor cores, in tiles of 16 filters by 8 pixels, 2 tiles side by side a warp. A row of 32
 * bytes has the B operands of one pixel and one k-step: 16 channels in fp16 and bf16, 8 in tf32; a lane reads 8 bytes of it, which are
 * neighbouring channels, and weights are prepacked in that order. Depthwise: a thread computes two channels of 2 or 4 pixels of a row;
 * neighbouring lanes have neighbouring channels. Blocks exchange partial sums of y through distributed shared memory; each adds those of
 * some filters, in order, and stores them.
 *
 * Shared memory, in this order: a slice's weights (of the expansion, 512 bytes for a tile of 16 filters and a k-step; biases, 9 taps a
 * channel, biases; of the projection, and its biases), x, h (pixels, channels), z, and the table of pixels' offsets in h. Loads x once for
 * each block of a cluster and weights once for each band of rows; stores y once. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_CUH

#include "calculators/cuda/conv2d/mbconv_epilogue.cuh"
#include "calculators/cuda/conv2d/mbconv_load.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mbarrier.cuh"

/* Multiply: 16 filters by up to 2 tiles of pixels from `tile` on. */
template <typename F>
static __device__ __forceinline__ void mbconv_multiply(float (&sum)[MBCONV_ACROSS][4], const char *w, const char *x,
                                                       int steps, int tile, int tiles)
{
    const int lane = threadIdx.x % MBCONV_WARP;
    w += lane * 16;
    const char *from[MBCONV_ACROSS];
#pragma unroll
    for (int j = 0; j < MBCONV_ACROSS; j++)
        from[j] = x + (tile + j < tiles ? tile + j : tiles - 1) * MBCONV_ROWS + lane * 8;
#pragma unroll 4
    for (int step = 0; step < steps; step++) {
        const uint4 four = *reinterpret_cast<const uint4 *>(w + step * MBCONV_TILE);
        const uint32_t a[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < MBCONV_ACROSS; j++) {
            const uint2 two = *reinterpret_cast<const uint2 *>(from[j] + step * tiles * MBCONV_ROWS);
            const uint32_t b[2] = {two.x, two.y};
            F::multiply(sum[j], a, b);
        }
    }
}

/* The expansion: h from x. */
template <typename F>
static __device__ __forceinline__ void mbconv_expand(float *held, const char *w, const char *x, const int *places,
                                                     const mbconv_problem &g)
{
    const cuda_mbconv &p = g.p;
    const int warps = blockDim.x / MBCONV_WARP, lane = threadIdx.x % MBCONV_WARP;
    const int tasks = p.slice / 16 * g.groups_in.number;
    const float *bias = reinterpret_cast<const float *>(w + p.slice / 16 * p.deep_in * MBCONV_TILE);
    for (int task = threadIdx.x / MBCONV_WARP; task < tasks; task += warps) {
        int group, row = divide<int32_t>(task, g.groups_in, group);
        float sum[MBCONV_ACROSS][4] = {};
        const int filter = row * 16 + lane / 4;
        const float shift[2] = {bias[filter], bias[filter + 8]};
        int2 place[MBCONV_ACROSS];
#pragma unroll
        for (int j = 0; j < MBCONV_ACROSS; j++) {
            const int tile = min(group * MBCONV_ACROSS + j, p.tiles_in - 1);
            place[j] = reinterpret_cast<const int2 *>(places)[tile * 4 + lane % 4];
        }
        mbconv_multiply<F>(sum, w + row * p.deep_in * MBCONV_TILE, x, p.deep_in, group * MBCONV_ACROSS, p.tiles_in);
#pragma unroll
        for (int j = 0; j < MBCONV_ACROSS; j++) {
            const int pixel[2] = {place[j].x, place[j].y};
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float *to = held + pixel[i] + filter;
                if (pixel[i] < 0) continue;
                to[0] = mbconv_within(sum[j][i] + shift[0], p.low[0], p.high[0]);
                to[8] = mbconv_within(sum[j][2 + i] + shift[1], p.low[0], p.high[0]);
            }
        }
    }
}

/* The depthwise convolution: z from h. The part of a strip past the end of its row is computed from what is there, and not stored. */
template <typename F, int STRIDE, int STRIP>
static __device__ __forceinline__ void mbconv_windows(char *to, const float *held, const float *w,
                                                      const mbconv_problem &g)
{
    constexpr int SIDE = MBCONV_SIDE, ACROSS = (STRIP - 1) * STRIDE + SIDE;
    const cuda_mbconv &p = g.p;
    const int tasks = g.pairs.number * g.strips.number * p.rows, step = p.slice + MBCONV_PAD;
    for (int e = threadIdx.x; e < tasks; e += blockDim.x) {
        int pair, strip, row = divide<int32_t>(divide<int32_t>(e, g.pairs, pair), g.strips, strip);
        const int channel = pair * 2, q = strip * STRIP;
        const float *own = w + channel, *from = held + (row * STRIDE * p.pitch + q * STRIDE) * step + channel;
        const float2 first = *reinterpret_cast<const float2 *>(own + 9 * p.slice);
        float2 sum[STRIP];
#pragma unroll
        for (int i = 0; i < STRIP; i++) sum[i] = first;
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
            float2 value[ACROSS];
#pragma unroll
            for (int i = 0; i < ACROSS; i++)
                value[i] = *reinterpret_cast<const float2 *>(from + (r * p.pitch + i) * step);
#pragma unroll
            for (int s = 0; s < SIDE; s++) {
                const float2 tap = *reinterpret_cast<const float2 *>(own + (r * SIDE + s) * p.slice);
#pragma unroll
                for (int i = 0; i < STRIP; i++) {
                    sum[i].x += value[i * STRIDE + s].x * tap.x;
                    sum[i].y += value[i * STRIDE + s].y * tap.y;
                }
            }
        }
        char *target = to + channel / F::DEEP * p.tiles_out * MBCONV_ROWS + channel % F::DEEP * F::BYTES +
                       (row * p.out_width + q) * MBCONV_ROW;
#pragma unroll
        for (int i = 0; i < STRIP; i++, target += MBCONV_ROW) {
            if (q + i >= p.out_width) break;
            F::keep_two(target, mbconv_within(sum[i].x, p.low[1], p.high[1]),
                        mbconv_within(sum[i].y, p.low[1], p.high[1]));
        }
    }
}

/* The projection: this block's partial sums of y, `line` pixels a filter. */
template <typename F>
static __device__ __forceinline__ void mbconv_project(float *part, const char *w, const char *z,
                                                      const mbconv_problem &g)
{
    const cuda_mbconv &p = g.p;
    const int warps = blockDim.x / MBCONV_WARP, lane = threadIdx.x % MBCONV_WARP;
    const int tasks = p.filter_tiles * g.groups_out.number;
    for (int task = threadIdx.x / MBCONV_WARP; task < tasks; task += warps) {
        int group, row = divide<int32_t>(task, g.groups_out, group);
        float sum[MBCONV_ACROSS][4] = {};
        mbconv_multiply<F>(sum, w + row * p.deep_out * MBCONV_TILE, z, p.deep_out, group * MBCONV_ACROSS, p.tiles_out);
        float *to = part + (row * 16 + lane / 4) * p.line + group * MBCONV_ACROSS * 8 + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < MBCONV_ACROSS; j++) {
            if (group * MBCONV_ACROSS + j >= p.tiles_out) break;
            *reinterpret_cast<float2 *>(to + j * 8) = make_float2(sum[j][0], sum[j][1]);
            *reinterpret_cast<float2 *>(to + j * 8 + 8 * p.line) = make_float2(sum[j][2], sum[j][3]);
        }
    }
}

template <typename F, int STRIDE>
static __global__ void __launch_bounds__(MBCONV_THREADS, 2) inverted_residual(const __grid_constant__ mbconv_problem g)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) char memory[];
    __shared__ uint64_t here;
    const cuda_mbconv &p = g.p;
    float *held = reinterpret_cast<float *>(memory + p.at_middle);
    if (threadIdx.x == 0) {
        barrier_init(&here, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    launch_dependent_grids();
    if (p.fresh) wait_on_dependent_grids();
    if (threadIdx.x == 0) copy_bulk(memory, p.w + static_cast<int64_t>(blockIdx.x) * p.chunk, p.chunk, &here);
    const int numbers = p.held_rows * p.pitch * (p.slice + MBCONV_PAD);
    for (int e = threadIdx.x * 4; e < numbers; e += blockDim.x * 4)
        *reinterpret_cast<float4 *>(held + e) = make_float4(0, 0, 0, 0); /* h outside the image */
    const mbconv_place at = mbconv_place_of(p);
    int *places = reinterpret_cast<int *>(memory + p.at_places);
    mbconv_find_places(places, g, at);
    __syncthreads();
    if (!p.fresh) wait_on_dependent_grids();
    if (p.deep_in > 0)
        mbconv_load_x<F>(memory + p.at_x, g, at);
    else
        mbconv_bring_middle(held, places, g, at);
    __syncthreads();
    barrier_await(&here, 0);
    if (p.deep_in > 0) mbconv_expand<F>(held, memory, memory + p.at_x, places, g);
    const char *own = memory + p.slice / 16 * p.deep_in * MBCONV_TILE + p.slice * 4;
    const char *last = own + 10 * p.slice * 4;
    __syncthreads();
    if (p.strip == MBCONV_STRIP)
        mbconv_windows<F, STRIDE, MBCONV_STRIP>(memory + p.at_own, held, reinterpret_cast<const float *>(own), g);
    else
        mbconv_windows<F, STRIDE, 2>(memory + p.at_own, held, reinterpret_cast<const float *>(own), g);
    __syncthreads();
    mbconv_project<F>(held, last, memory + p.at_own, g);
    arrive_at_cluster();
    mbconv_epilogue(held, reinterpret_cast<const float *>(last + p.filter_tiles * p.deep_out * MBCONV_TILE), g);
#endif
}

#endif
