/* A 1x1 convolution and the depthwise one behind it: what lies between stays in shared memory (pair.h).
 *
 *   h[k,i,j] = between(bias[k] + sum over c of x[c,i,j] w[k,c]), 0 outside;  y[k,p,q] = act(bias'[k] + sum over r,s of h[k,..] w'[k,r,s])
 *
 * Products: a task of a warp is 8 filters by 64 pixels, two pixels a lane, so that lanes read neighbours and a filter's weight goes to
 * all of them at once; where tasks are few, four warps share one's sum over the channels, and their parts are added in order.
 * Windows: up to 4 numbers of y a thread, one below the other. Moves x once for each group of filters, weights once for each band of rows, y once. */
#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/conv2d/pair.h"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

enum { WARP = 32, PREPARE_THREADS = 256 };

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

/* What an activation keeps numbers within. False: it is more than that. */
static bool is_range(const sdlf_activation &activation, float *low, float *high)
{
    *low = activation.function == SDLF_CLIP ? activation.low : activation.function == SDLF_RELU ? 0.0f : -INFINITY;
    *high = activation.function == SDLF_CLIP ? activation.high : INFINITY;
    return activation.function == SDLF_IDENTITY || activation.function == SDLF_RELU || activation.function == SDLF_CLIP;
}

extern "C" sdlf_status cuda_pair_run(sdlf_calculator *base, const cuda_pair *pair)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    pair_problem g;
    g.p = *pair;
    g.width = divider<int32_t>(pair->width);
    g.out_width = divider<int32_t>(pair->out_width);
    g.strips = divider<int32_t>((pair->rows + PAIR_STRIP - 1) / PAIR_STRIP);
    bool first = is_range(pair->between, &g.low[0], &g.high[0]);
    bool second = is_range(pair->activation, &g.low[1], &g.high[1]);
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
