/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool_forward in float32, for batches that keep the device busy (see conv2d_pool/forward.cu).
 *
 * A thread makes two windows side by side of 8 filters: 64 sums in registers, and of each channel the (R+1) x (R+3) patch of x
 * that its eight convolutions share, read in pairs of columns where these lie on multiples of 8 bytes. All weights lie in the
 * block's shared memory, filters innermost; of a tap a thread reads two vectors, the same for all lanes, for 64 FMAs. A warp has 32
 * neighbouring pairs of windows and a group of filters at a time, and goes on to others; the warps of a block have the groups of the
 * same windows. 8 N K P Q C R R FLOPs, 1.3 GFLOP for simple_cnn's layer at batch 1,024: 26 us at 50 TFLOP/s. */
#include "calculators/cuda/conv2d_pool/forward.cuh"

enum { THREADS = 128, WARP = 32, FILTERS = 8, BLOCKS = 4 /* a multiprocessor */, MOST_WEIGHTS = 12288 };

struct pair_work {
    int groups, tasks, pairs; /* of filters; groups times 32 pairs; of windows, in all */
};

/* The patch's rows and columns from (row, column) on, 0 outside. VECTORS: pairs of columns lie on multiples of 8 bytes, and are inside
 * or outside together. */
template <int R, bool VECTORS>
static __device__ __forceinline__ void load_patch(float (&patch)[R + 1][R + 3], const float *plane,
                                                  const pool_geometry &g, int row, int column)
{
    const float *corner = plane + row * g.width + column; /* may lie outside */
#pragma unroll
    for (int r = 0; r <= R; r++) {
        bool inside = static_cast<unsigned>(row + r) < static_cast<unsigned>(g.height);
        const float *line = corner + r * g.width;
#pragma unroll
        for (int s = 0; s < R + 3; s += 2) {
            bool first = inside && static_cast<unsigned>(column + s) < static_cast<unsigned>(g.width);
            if (VECTORS) {
                float2 two = first ? *reinterpret_cast<const float2 *>(line + s) : make_float2(0, 0);
                patch[r][s] = two.x;
                patch[r][s + 1] = two.y;
            } else {
                bool second = inside && static_cast<unsigned>(column + s + 1) < static_cast<unsigned>(g.width);
                patch[r][s] = first ? line[s] : 0.0f;
                patch[r][s + 1] = second ? line[s + 1] : 0.0f;
            }
        }
    }
}

/* The sums of a channel: sums[f][0 to 3] of the left window, [4 to 7] of the right one. */
template <int R>
static __device__ __forceinline__ void add_channel(float (&sums)[FILTERS][8], const float (&patch)[R + 1][R + 3],
                                                   const float *weights, int filters)
{
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int s = 0; s < R; s++) {
            const float4 *at = reinterpret_cast<const float4 *>(weights + (r * R + s) * filters);
            const float4 low = at[0], high = at[1];
            const float w[FILTERS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
            for (int f = 0; f < FILTERS; f++) {
#pragma unroll
                for (int i = 0; i < 8; i++) sums[f][i] += patch[r + i / 2 % 2][s + i % 2 + i / 4 * 2] * w[f];
            }
        }
    }
}

static __device__ __forceinline__ float larger_of(const float *four)
{
    return larger(larger(four[0], four[1]), larger(four[2], four[3]));
}

static __device__ __forceinline__ float rectified(float x)
{
    return larger(x, 0.0f);
}

/* Which of the four are their largest, where that is above 0. */
static __device__ __forceinline__ uint8_t marks_of(const float *four, float largest, bool first_alone)
{
    unsigned marks = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) marks |= four[i] == largest ? 1u << i : 0u;
    if (first_alone) marks &= 0u - marks;
    return static_cast<uint8_t>(largest > 0 ? marks : 0u);
}

/* Two neighbours, as a vector where that is possible, or the first alone. */
template <bool EVEN> static __device__ __forceinline__ void store_two(float *to, float a, float b, bool both)
{
    if (EVEN) {
        *reinterpret_cast<float2 *>(to) = make_float2(a, b);
    } else {
        to[0] = a;
        if (both) to[1] = b;
    }
}

template <bool EVEN> static __device__ __forceinline__ void store_two(uint8_t *to, uint8_t a, uint8_t b, bool both)
{
    if (EVEN) {
        *reinterpret_cast<uchar2 *>(to) = make_uchar2(a, b);
    } else {
        to[0] = a;
        if (both) to[1] = b;
    }
}

/* Grid: tasks, in turns. MARKED: there is a mask. EVEN: as VECTORS above, and for pairs of y and of the mask too. */
template <int R, bool MARKED, bool EVEN>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv2d_pool_forward_pairs(pool_forward<float> p, pair_work work)
{
    extern __shared__ __align__(16) float weights[]; /* (channels, taps, filters), 0 past the last filter */
    const pool_geometry &g = p.g;
    int filters = work.groups * FILTERS, taps = g.channels * R * R, area = g.out_height * g.out_width;
    int across = (g.out_width + 1) / 2, pairs = g.out_height * across;
    await_kernels();
    for (int e = threadIdx.x; e < filters * taps; e += THREADS) {
        int k = e / taps, tap = e % taps;
        weights[tap * filters + k] = k < g.filters ? p.w[k * taps + tap] : 0.0f;
    }
    __syncthreads();
    for (int task = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP; task < work.tasks;
         task += gridDim.x * (THREADS / WARP)) {
        int k0 = task % work.groups * FILTERS, pair = task / work.groups * WARP + threadIdx.x % WARP;
        if (pair >= work.pairs) continue;
        int n = pair / pairs, at = pair % pairs, out_row = at / across, q = at % across * 2;
        float sums[FILTERS][8];
#pragma unroll
        for (int f = 0; f < FILTERS; f++) {
            float offset = p.bias != nullptr && k0 + f < g.filters ? p.bias[k0 + f] : 0.0f;
#pragma unroll
            for (int i = 0; i < 8; i++) sums[f][i] = offset;
        }
#pragma unroll 1
        for (int c = 0; c < g.channels; c++) {
            float patch[R + 1][R + 3];
            load_patch<R, EVEN>(patch, p.x + (n * g.channels + c) * g.height * g.width, g, 2 * out_row - g.top,
                                2 * q - g.left);
            add_channel<R>(sums, patch, weights + c * R * R * filters + k0, filters);
        }
        int e = (n * g.filters + k0) * area + out_row * g.out_width + q;
        bool both = EVEN || q + 1 < g.out_width;
#pragma unroll
        for (int f = 0; f < FILTERS; f++) {
            float left = larger_of(&sums[f][0]), right = larger_of(&sums[f][4]);
            if (k0 + f < g.filters) {
                if (MARKED) {
                    uint8_t low = marks_of(&sums[f][0], left, g.first), high = marks_of(&sums[f][4], right, g.first);
                    store_two<EVEN>(p.mask + e, low, high, both);
                }
                store_two<EVEN>(p.y + e, rectified(left), rectified(right), both);
            }
            e += area;
        }
    }
}

static int groups_of(const pool_geometry &g)
{
    return (g.filters + FILTERS - 1) / FILTERS;
}

/* A task for each of the warps that the device holds: with fewer, threads that make one window are less idle. */
bool cuda_conv2d_pool_forward_pairs_suits(const cuda_calculator *calculator, const pool_geometry &g, int side)
{
    int64_t pairs = static_cast<int64_t>(g.batch) * g.out_height * ((g.out_width + 1) / 2);
    int64_t warps = static_cast<int64_t>(BLOCKS) * (THREADS / WARP) * calculator->multiprocessors;
    return static_cast<int64_t>(groups_of(g)) * FILTERS * g.channels * side * side <= MOST_WEIGHTS &&
           pairs * groups_of(g) / WARP >= warps && pairs * groups_of(g) <= INT32_MAX / 2;
}

template <int R, bool MARKED, bool EVEN>
static void launch(const cuda_calculator *calculator, const pool_forward<float> &p)
{
    const pool_geometry &g = p.g;
    pair_work work = {.groups = groups_of(g)};
    work.pairs = g.batch * g.out_height * ((g.out_width + 1) / 2);
    work.tasks = work.groups * ((work.pairs + WARP - 1) / WARP);
    int blocks = (work.tasks + THREADS / WARP - 1) / (THREADS / WARP), most = BLOCKS * calculator->multiprocessors;
    int bytes = work.groups * FILTERS * g.channels * R * R * (int)sizeof(float);
    launch_overlapped(calculator, conv2d_pool_forward_pairs<R, MARKED, EVEN>, (unsigned)(blocks < most ? blocks : most),
                      THREADS, bytes, p, work);
}

template <int R, bool MARKED> static void launch_even(const cuda_calculator *calculator, const pool_forward<float> &p)
{
    const pool_geometry &g = p.g;
    uintptr_t addresses =
        reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.y) | reinterpret_cast<uintptr_t>(p.mask);
    if (g.width % 2 == 0 && g.left % 2 == 0 && g.out_width % 2 == 0 && addresses % 8 == 0)
        launch<R, MARKED, true>(calculator, p);
    else
        launch<R, MARKED, false>(calculator, p);
}

sdlf_status cuda_conv2d_pool_forward_pairs(const cuda_calculator *calculator, const pool_forward<float> &p, int side)
{
    with_side(side, [&](auto r) {
        if (p.mask != nullptr)
            launch_even<r.value, true>(calculator, p);
        else
            launch_even<r.value, false>(calculator, p);
    });
    return cuda_check_launch("conv2d_relu_max_pool_forward");
}
