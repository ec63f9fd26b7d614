/* SPDX-License-Identifier: MIT */
/* The share of a warp of pointwise_warps.cu: its range of K, addresses of its pixels, its accumulators, and where its results go. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_CUH

#include "calculators/cuda/conv2d/pointwise_warps.h"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/mbarrier.cuh"
#include "calculators/cuda/vectorized.cuh"

struct warps_problem {
    cuda_pointwise_warps p;
    divider<int32_t> area;
};

/* A warp's range of K: k-steps [first, last), whose weights begin at `w`. The weights of the first `early` k-steps are
 * complete at phase 0 of barrier[0], those of the others at phase 0 of barrier[1]. */
struct warps_part {
    const float *w;
    int first, last, early;
    uint64_t *barrier;
};

/* The address in x of channel 0 of a pixel, counted over all images; of pixel 0 where there is none. */
static __device__ __forceinline__ const float *warps_pixel(const warps_problem &g, int pixel)
{
    int at, image = divide<int32_t>(pixel < g.p.pixels ? pixel : 0, g.area, at);
    return g.p.x + static_cast<int64_t>(image) * g.p.channels * g.p.area + at;
}

/* Offset in y of a pixel for some filter, and whether the pixel exists. */
struct warps_spot {
    int64_t to;
    bool inside;
};

static __device__ __forceinline__ warps_spot warps_spot_of(const warps_problem &g, int pixel, int filter)
{
    int at, image = divide<int32_t>(pixel, g.area, at);
    return {(static_cast<int64_t>(image) * g.p.filters + filter) * g.p.area + at, pixel < g.p.pixels};
}

/* Store WIDE neighbouring results of a filter after bias, residual and clamp. */
template <int WIDE>
static __device__ __forceinline__ void warps_keep(const cuda_pointwise_warps &p, int64_t to, int filter,
                                                  const vec<float, WIDE> &sums)
{
    const float shift = p.bias != nullptr ? __ldg(p.bias + filter) : 0;
    vec<float, WIDE> all = sums, more = {};
    if (p.residual != nullptr) more = read_vec<WIDE>(p.residual + to, 0);
#pragma unroll
    for (int i = 0; i < WIDE; i++) all.at[i] = clamp(all.at[i] + shift + more.at[i], p.low, p.high);
    write_vec<WIDE>(p.y + to, 0, all);
}

/* A lane computes PIECES x WIDE pixels of 4 QUADS filters; ACROSS lanes have filters of the same pixels. Its pieces are
 * 32 / ACROSS loads apart, its quads of filters 4 ACROSS. AREA: 0, or the pixels of a plane.
 *
 * A warp has GROUP filters and TILE pixels, a lane UNITS quads of results: of SPOTS positions in a plane, with KEPT
 * neighbouring results each. HALVES: multiplication begins when half of the weights are loaded. */
template <int WIDE, int PIECES, int QUADS, int ACROSS, int AREA, int MOST, int BLOCKS> struct warps_fma {
    static constexpr int LANES = 32 / ACROSS, PIXELS = WIDE * PIECES, FILTERS = 4 * QUADS;
    static constexpr int GROUP = ACROSS * FILTERS, TILE = LANES * PIXELS, UNITS = FILTERS * PIXELS / 4;
    static constexpr int THREADS = 32 * MOST, RESIDENT = BLOCKS, SPOTS = PIECES, KEPT = WIDE;
    static constexpr bool HALVES = AREA > 0;

    float sum[FILTERS][PIXELS] = {};

    static __device__ __forceinline__ int pixel_of(int tile, int piece)
    {
        return ((tile * PIECES + piece) * LANES + static_cast<int>(threadIdx.x) % LANES) * WIDE;
    }

    /* The lane's first filter; the filter of its quad u relative to that, and the piece of its i-th result. */
    static __device__ __forceinline__ int lane_filter()
    {
        return static_cast<int>(threadIdx.x) % 32 / LANES * 4;
    }

    static __device__ __forceinline__ int filter_of(int u)
    {
        const int f = u / (PIXELS / 4);
        return f / 4 * 4 * ACROSS + f % 4;
    }

    static __device__ __forceinline__ int spot_of(int u, int i)
    {
        return WIDE == 4 ? u % PIECES : u % (PIXELS / 4) * 4 + i;
    }

    __device__ __forceinline__ void run(const warps_problem &g, const warps_part &part, int tile)
    {
        const int area = AREA > 0 ? AREA : g.p.area;
        const float *from[PIECES], *w = part.w + static_cast<int>(threadIdx.x) % 32 / LANES * 4;
        vec<float, WIDE> ring[WARPS_AHEAD][PIECES];
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            from[i] = warps_pixel(g, pixel_of(tile, i)) + static_cast<int64_t>(part.first) * WARPS_CHANNELS * area;
#pragma unroll
        for (int u = 0; u < WARPS_AHEAD; u++) {
#pragma unroll
            for (int i = 0; i < PIECES; i++) ring[u][i] = read_vec<WIDE>(from[i] + u * area, 0);
        }
#pragma unroll
        for (int i = 0; i < PIECES; i++) from[i] += WARPS_AHEAD * area;
        barrier_await(part.barrier, 0);
#pragma unroll 1
        for (int step = part.first; step < part.last - 1; step++) {
            if (HALVES && step == part.first + part.early) barrier_await(part.barrier + 1, 0);
            multiply<true>(w, ring, from, area);
            w += WARPS_CHANNELS * GROUP;
        }
        if (HALVES && part.last - 1 == part.first + part.early) barrier_await(part.barrier + 1, 0);
        multiply<false>(w, ring, from, area);
    }

    /* Multiply a k-step, whose first WARPS_AHEAD channels are in `ring`. MORE: another follows; load its first channels. */
    template <bool MORE>
    __device__ __forceinline__ void multiply(const float *w, vec<float, WIDE> (&ring)[WARPS_AHEAD][PIECES],
                                             const float *(&from)[PIECES], int area)
    {
#pragma unroll
        for (int u = 0; u < WARPS_CHANNELS; u++) {
            float operand[FILTERS];
#pragma unroll
            for (int i = 0; i < QUADS; i++) {
                const float4 four = *reinterpret_cast<const float4 *>(w + u * GROUP + i * 4 * ACROSS);
                operand[4 * i] = four.x;
                operand[4 * i + 1] = four.y;
                operand[4 * i + 2] = four.z;
                operand[4 * i + 3] = four.w;
            }
#pragma unroll
            for (int f = 0; f < FILTERS; f++) {
#pragma unroll
                for (int i = 0; i < PIXELS; i++) sum[f][i] += operand[f] * ring[u % WARPS_AHEAD][i / WIDE].at[i % WIDE];
            }
            if (!MORE && u + WARPS_AHEAD >= WARPS_CHANNELS) continue;
#pragma unroll
            for (int i = 0; i < PIECES; i++) {
                ring[u % WARPS_AHEAD][i] = read_vec<WIDE>(from[i] + (AREA > 0 ? u * AREA : 0), 0);
                if (AREA == 0) from[i] += area;
            }
        }
        if (AREA > 0) {
#pragma unroll
            for (int i = 0; i < PIECES; i++) from[i] += WARPS_CHANNELS * AREA;
        }
    }

    /* Quad u: 4 pixels of filter u / (PIXELS / 4). */
    __device__ __forceinline__ float4 quad(int u) const
    {
        const int f = u / (PIXELS / 4), at = u % (PIXELS / 4) * 4;
        return make_float4(sum[f][at], sum[f][at + 1], sum[f][at + 2], sum[f][at + 3]);
    }

    /* Filter and channel of element e of a group's prepacked weights: the filters of a channel are neighbours. */
    static __device__ __forceinline__ void place(int e, int &filter, int &channel)
    {
        filter = e % GROUP;
        channel = e / GROUP;
    }
};

#endif
