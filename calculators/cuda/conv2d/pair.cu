/* SPDX-License-Identifier: MIT */
/* A 1x1 convolution and the depthwise one behind it: what lies between stays in shared memory (pair.h).
 *
 *   h[k,i,j] = between(bias[k] + sum over c of x[c,i,j] w[k,c]), 0 outside;  y[k,p,q] = act(bias'[k] + sum over r,s of h[k,..] w'[k,r,s])
 *
 * Products: pair.cuh. Windows: up to 4 numbers of y a thread, one below the other. Moves x once for each group of filters, weights once for
 * each band of rows, y once. */
#include "calculators/cuda/conv2d/pair.cuh"
#include "calculators/cuda/conv2d/range.h"
#include "calculators/cuda/launch.cuh"

enum { PREPARE_THREADS = 256 };

/* The depthwise convolution of what is held: a thread makes a strip of rows of one column. */
template <int SIDE, int STRIDE, int GROUP, bool RARE>
static __device__ __forceinline__ void windows(const float *held, const float *w, const pair_problem &g)
{
    const cuda_pair &p = g.p;
    const int first_filter = static_cast<int>(blockIdx.x) * GROUP, first_row = static_cast<int>(blockIdx.y) * p.rows;
    const float *own = w + (p.channels + 1) * GROUP, *bias = own + SIDE * SIDE * GROUP;
    const int plane = p.out_height * p.out_width,
              end = first_row + p.rows < p.out_height ? first_row + p.rows : p.out_height;
    float *y = p.y + (static_cast<int64_t>(blockIdx.z) * p.filters + first_filter) * plane;
    for (int e = threadIdx.x; e < GROUP * g.strips.number * p.out_width; e += blockDim.x) {
        int q, strip, filter = divide<int32_t>(divide<int32_t>(e, g.out_width, q), g.strips, strip),
                      row = strip * PAIR_STRIP;
        if (first_filter + filter >= p.filters) break;
        const float *from = held + (filter * p.held_rows + row * STRIDE) * p.pitch + q * STRIDE;
        float tap[SIDE * SIDE], sum[PAIR_STRIP] = {};
#pragma unroll
        for (int i = 0; i < SIDE * SIDE; i++) tap[i] = own[i * GROUP + filter];
#pragma unroll
        for (int r = 0; r < (PAIR_STRIP - 1) * STRIDE + SIDE; r++, from += p.pitch) {
#pragma unroll
            for (int s = 0; s < SIDE; s++) {
                const float value = from[s];
#pragma unroll
                for (int i = 0; i < PAIR_STRIP; i++) {
                    if (r >= i * STRIDE && r < i * STRIDE + SIDE) sum[i] += value * tap[(r - i * STRIDE) * SIDE + s];
                }
            }
        }
        float *to = y + filter * plane + (first_row + row) * p.out_width + q;
        const float shift = bias[filter];
#pragma unroll
        for (int i = 0; i < PAIR_STRIP; i++, to += p.out_width) {
            if (first_row + row + i >= end) break;
            *to = activate_within<RARE>(p.activation, g.low[1], g.high[1], sum[i] + shift);
        }
    }
}

template <int SIDE, int STRIDE, int GROUP, bool SHARED, bool RARE>
static __global__ void __launch_bounds__(PAIR_WARPS *WARP, 2)
    pointwise_depthwise(const __grid_constant__ pair_problem g)
{
    extern __shared__ __align__(16) float memory[];
    const cuda_pair &p = g.p;
    float *w = memory, *x = w + p.chunk, *held = x + p.room;
    const pair_place at = place_of(p);
    let_next_start();
    if (p.fresh) await_inputs();
    bring(w, p.w + static_cast<int64_t>(blockIdx.x) * p.chunk, p.chunk);
    for (int e = threadIdx.x * 4; e < GROUP * p.held_rows * p.pitch; e += blockDim.x * 4)
        *reinterpret_cast<float4 *>(held + e) = make_float4(0, 0, 0, 0); /* outside of the image */
    if (!p.fresh) await_inputs();
    bring_x(x, p, at);
    close_copies();
    await_copies<0>();
    __syncthreads();
    if constexpr (SHARED)
        shared_products<GROUP, RARE>(held, w, x, g, at);
    else
        products<GROUP, RARE>(held, w, x, g, at);
    __syncthreads();
    windows<SIDE, STRIDE, GROUP, RARE>(held, w, g);
}

template <int SIDE, int STRIDE, int GROUP, bool SHARED, bool RARE>
static sdlf_status launch(const cuda_calculator *calculator, const pair_problem &g)
{
    auto kernel = pointwise_depthwise<SIDE, STRIDE, GROUP, SHARED, RARE>;
    dim3 blocks(static_cast<unsigned>(g.p.groups), static_cast<unsigned>(g.p.bands), static_cast<unsigned>(g.p.images));
    sdlf_status status = allow_shared(kernel, g.p.shared);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, kernel, blocks, dim3(static_cast<unsigned>(g.p.warps * WARP)),
                      static_cast<int>(g.p.shared), g);
    return cuda_check_launch("conv2d, pointwise and depthwise");
}

template <int SIDE, int STRIDE, bool RARE>
static sdlf_status launch_cut(const cuda_calculator *calculator, const pair_problem &g)
{
    bool shared = g.p.slices > 1;
    if (g.p.group == PAIR_DOWN)
        return shared ? launch<SIDE, STRIDE, PAIR_DOWN, true, RARE>(calculator, g)
                      : launch<SIDE, STRIDE, PAIR_DOWN, false, RARE>(calculator, g);
    return shared ? launch<SIDE, STRIDE, PAIR_GROUP, true, RARE>(calculator, g)
                  : launch<SIDE, STRIDE, PAIR_GROUP, false, RARE>(calculator, g);
}

template <bool RARE> static sdlf_status launch_window(const cuda_calculator *calculator, const pair_problem &g)
{
    if (g.p.side == 3)
        return g.p.stride[0] == 1 ? launch_cut<3, 1, RARE>(calculator, g) : launch_cut<3, 2, RARE>(calculator, g);
    return g.p.stride[0] == 1 ? launch_cut<5, 1, RARE>(calculator, g) : launch_cut<5, 2, RARE>(calculator, g);
}

extern "C" sdlf_status cuda_pair_run(sdlf_calculator *base, const cuda_pair *pair)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    pair_problem g;
    g.p = *pair;
    g.width = divider<int32_t>(pair->width);
    g.out_width = divider<int32_t>(pair->out_width);
    g.strips = divider<int32_t>((pair->rows + PAIR_STRIP - 1) / PAIR_STRIP);
    bool first = activation_range(&pair->between, &g.low[0], &g.high[0]);
    bool second = activation_range(&pair->activation, &g.low[1], &g.high[1]);
    return first && second ? launch_window<false>(calculator, g) : launch_window<true>(calculator, g);
}

/* A number a thread: line l of a group's chunk is channel l's weights, then biases, taps, biases. */
static __global__ void make_ready(cuda_pair p, const float *w, const float *bias, const float *own,
                                  const float *own_bias, float *to)
{
    const int taps = p.side * p.side;
    for (int64_t e = grid_first(); e < static_cast<int64_t>(p.groups) * p.chunk; e += grid_step()) {
        int at = static_cast<int>(e % p.chunk), line = at / p.group;
        int64_t filter = e / p.chunk * p.group + at % p.group;
        float value = 0;
        if (filter < p.filters) {
            if (line < p.channels)
                value = w[filter * p.channels + line];
            else if (line == p.channels)
                value = bias != nullptr ? bias[filter] : 0;
            else if (line <= p.channels + taps)
                value = own[filter * taps + line - p.channels - 1];
            else
                value = own_bias != nullptr ? own_bias[filter] : 0;
        }
        to[e] = value;
    }
}

extern "C" sdlf_status cuda_pair_prepare(sdlf_calculator *base, const cuda_pair *pair, const sdlf_operation *op,
                                         void *to)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = static_cast<int64_t>(pair->groups) * pair->chunk;
    make_ready<<<cuda_blocks(calculator, count, PREPARE_THREADS), PREPARE_THREADS, 0, calculator->stream>>>(
        *pair, data_of<float>(op->in[1]), optional<float>(op->in[3]), data_of<float>(op->in[2]),
        optional<float>(op->in[4]), static_cast<float *>(to));
    return cuda_check_launch("conv2d, pointwise and depthwise, weights");
}
