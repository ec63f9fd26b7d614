/* SPDX-License-Identifier: MIT */
/* What a warp of pointwise_warps.cu makes: the part of the sum, where its pixels lie, its sums, and where its results go. */
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

/* A warp's part: steps [first, last) of the sum, whose weights lie from `w` on; the weights of the first `early` steps are there at phase 0
 * of barrier[0], those of the others of barrier[1]. */
struct warps_part {
    const float *w;
    int first, last, early;
    uint64_t *barrier;
};

/* The place in x of channel 0 of a pixel of all images; of pixel 0 where there is none. */
static __device__ __forceinline__ const float *warps_pixel(const warps_problem &g, int pixel)
{
    int at, image = divide<int32_t>(pixel < g.p.pixels ? pixel : 0, g.area, at);
    return g.p.x + static_cast<int64_t>(image) * g.p.channels * g.p.area + at;
}

/* Where results of a pixel go, of the filters from one on. */
struct warps_spot {
    int64_t to;
    bool inside;
};

static __device__ __forceinline__ warps_spot warps_spot_of(const warps_problem &g, int pixel, int filter)
{
    int at, image = divide<int32_t>(pixel, g.area, at);
    return {(static_cast<int64_t>(image) * g.p.filters + filter) * g.p.area + at, pixel < g.p.pixels};
}

/* WIDE neighbouring results of a filter. */
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

/* A lane makes PIECES x WIDE pixels of 4 QUADS filters; ACROSS lanes have filters of the same pixels. Pieces are 32 / ACROSS reads apart,
 * quads of filters 4 ACROSS. AREA: 0, or what a plane has.
 *
 * A warp has GROUP filters and TILE pixels, a lane UNITS quads of results, of SPOTS places in a plane, KEPT results side by side each.
 * HALVES: sums begin when half of their weights are there. */
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

    /* The lane's first filter; and those of its quads of results from there on, and the pieces that they are of. */
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

    /* A step, of which the first WARPS_AHEAD channels are there. MORE: another follows, whose first channels are asked for. */
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

    /* Quad u: of filter u / (PIXELS / 4), 4 of its pixels. */
    __device__ __forceinline__ float4 quad(int u) const
    {
        const int f = u / (PIXELS / 4), at = u % (PIXELS / 4) * 4;
        return make_float4(sum[f][at], sum[f][at + 1], sum[f][at + 2], sum[f][at + 3]);
    }

    /* Number e of a group's prepacked weights: filters of a channel beside each other. */
    static __device__ __forceinline__ void place(int e, int &filter, int &channel)
    {
        filter = e % GROUP;
        channel = e / GROUP;
    }
};

#endif
