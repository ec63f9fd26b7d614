/* What a warp of pointwise_warps.cuh makes, and how: on the ordinary cores, or on tensor cores.
 *
 * Both have: GROUP filters and TILE pixels of a warp; run(), its sums over some steps of 8 channels; UNITS quads of results a lane,
 * quad(), which are of SPOTS places in a plane, KEPT results side by side each. HALVES: sums begin when half of their weights are there. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_FACTORS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_FACTORS_CUH

#include "calculators/cuda/bundle.cuh"
#include "calculators/cuda/conv2d/pointwise_warps.h"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/mma.cuh"
#include "calculators/cuda/wgmma.cuh"

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
                                                  const bundle<float, WIDE> &sums)
{
    const float shift = p.bias != nullptr ? __ldg(p.bias + filter) : 0;
    bundle<float, WIDE> all = sums, more = {};
    if (p.residual != nullptr) more = read_bundle<WIDE>(p.residual + to, 0);
#pragma unroll
    for (int i = 0; i < WIDE; i++) all.at[i] = clamp(all.at[i] + shift + more.at[i], p.low, p.high);
    write_bundle<WIDE>(p.y + to, 0, all);
}

/* A lane makes PIECES x WIDE pixels of 4 QUADS filters; ACROSS lanes have filters of the same pixels. Pieces are 32 / ACROSS reads apart,
 * quads of filters 4 ACROSS. AHEAD channels are on their way. AREA: 0, or what a plane has. */
template <int WIDE, int PIECES, int QUADS, int ACROSS, int AREA, int MOST, int BLOCKS> struct warps_fma {
    static constexpr int LANES = 32 / ACROSS, PIXELS = WIDE * PIECES, FILTERS = 4 * QUADS;
    static constexpr int GROUP = ACROSS * FILTERS, TILE = LANES * PIXELS, UNITS = FILTERS * PIXELS / 4;
    static constexpr int THREADS = 32 * MOST, RESIDENT = BLOCKS, SPOTS = PIECES, KEPT = WIDE;
    static constexpr int AHEAD = WARPS_CHANNELS / 2; /* so that a step's channels meet their registers */
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

    static __device__ __forceinline__ int filter_of(int u, int)
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
        bundle<float, WIDE> ring[AHEAD][PIECES];
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            from[i] = warps_pixel(g, pixel_of(tile, i)) + static_cast<int64_t>(part.first) * WARPS_CHANNELS * area;
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
#pragma unroll
            for (int i = 0; i < PIECES; i++) ring[u][i] = read_bundle<WIDE>(from[i] + u * area, 0);
        }
#pragma unroll
        for (int i = 0; i < PIECES; i++) from[i] += AHEAD * area;
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

    /* A step, of which the first AHEAD channels are there. MORE: another follows, whose first channels are asked for. */
    template <bool MORE>
    __device__ __forceinline__ void multiply(const float *w, bundle<float, WIDE> (&ring)[AHEAD][PIECES],
                                             const float *(&from)[PIECES], int area)
    {
#pragma unroll
        for (int u = 0; u < WARPS_CHANNELS; u++) {
            float factor[FILTERS];
#pragma unroll
            for (int i = 0; i < QUADS; i++) {
                const float4 four = *reinterpret_cast<const float4 *>(w + u * GROUP + i * 4 * ACROSS);
                factor[4 * i] = four.x;
                factor[4 * i + 1] = four.y;
                factor[4 * i + 2] = four.z;
                factor[4 * i + 3] = four.w;
            }
#pragma unroll
            for (int f = 0; f < FILTERS; f++) {
#pragma unroll
                for (int i = 0; i < PIXELS; i++) sum[f][i] += factor[f] * ring[u % AHEAD][i / WIDE].at[i % WIDE];
            }
            if (!MORE && u + AHEAD >= WARPS_CHANNELS) continue;
#pragma unroll
            for (int i = 0; i < PIECES; i++) {
                ring[u % AHEAD][i] = read_bundle<WIDE>(from[i] + (AREA > 0 ? u * AREA : 0), 0);
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

    /* Number e of a group's weights made ready: filters of a channel beside each other. */
    static __device__ __forceinline__ void place(int e, int &filter, int &channel)
    {
        filter = e % GROUP;
        channel = e / GROUP;
    }

    static __device__ __forceinline__ float ready(float weight)
    {
        return weight;
    }
};

/* A warp makes PIECES x 8 WIDE pixels of 16 ROWS filters by mma (mma.cuh; lane = 4 g + t): its g-th lanes read WIDE pixels side by side of
 * the channels t and t + 4, which are column g of WIDE products; so 8 WIDE pixels of a channel are one run of memory, and so are the
 * results. Of WIDE 4 and 1, even columns are the first half of these pixels and odd ones the other, so that the t-th lanes, which get the
 * columns 2 t and 2 t + 1, store whole sectors of memory. AHEAD steps of 8 channels are on their way. */
template <int WIDE, int PIECES, int ROWS, int AHEAD, int AREA, int MOST, int BLOCKS> struct warps_mma {
    static constexpr int GROUP = 16 * ROWS, TILE = 8 * WIDE * PIECES, COLUMNS = WIDE * PIECES, UNITS = ROWS * COLUMNS;
    static constexpr int THREADS = 32 * MOST, RESIDENT = BLOCKS, KEPT = WIDE == 1 ? 1 : 4;
    static constexpr int SPOTS = WIDE == 2 ? PIECES : 2 * PIECES;
    static constexpr bool HALVES = WIDE < 4;

    float sum[ROWS][COLUMNS][4] = {};

    static __device__ __forceinline__ int column_of(int tile, int piece, int column)
    {
        const int place = WIDE == 2 ? column : column % 2 * 4 + column / 2;
        return ((tile * PIECES + piece) * 8 + place) * WIDE;
    }

    static __device__ __forceinline__ int pixel_of(int tile, int spot)
    {
        const int t = static_cast<int>(threadIdx.x) % 4;
        return WIDE == 2 ? column_of(tile, spot, 2 * t) : column_of(tile, spot / 2, 2 * t + spot % 2);
    }

    static __device__ __forceinline__ int lane_filter()
    {
        return static_cast<int>(threadIdx.x) % 32 / 4;
    }

    static __device__ __forceinline__ int filter_of(int u, int i)
    {
        const int half = WIDE == 4 ? u % 4 / 2 : WIDE == 2 ? u % 2 : i / 2;
        return u / COLUMNS * 16 + half * 8;
    }

    static __device__ __forceinline__ int spot_of(int u, int i)
    {
        const int at = u % COLUMNS;
        return WIDE == 4 ? at / 4 * 2 + at % 2 : WIDE == 2 ? at / 2 : at * 2 + i % 2;
    }

    __device__ __forceinline__ void run(const warps_problem &g, const warps_part &part, int tile)
    {
        const int area = AREA > 0 ? AREA : g.p.area, steps = part.last - part.first;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const float *from[PIECES];
        const float4 *w = reinterpret_cast<const float4 *>(part.w) + lane;
        bundle<float, WIDE> ring[AHEAD][PIECES][2];
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            from[i] = warps_pixel(g, column_of(tile, i, lane / 4)) +
                      (static_cast<int64_t>(part.first) * WARPS_CHANNELS + lane % 4) * area;
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            if (u < steps) bring(ring[u], from, area);
        }
        barrier_await(part.barrier, 0);
        int left = steps, late = part.early;
#pragma unroll 1
        for (; left >= 2 * AHEAD; left -= AHEAD) {
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                if (HALVES && late-- == 0) barrier_await(part.barrier + 1, 0);
                multiply(w, ring[u]);
                w += ROWS * 32;
                bring(ring[u], from, area);
            }
        }
#pragma unroll
        for (int u = 0; u < 2 * AHEAD - 1; u++) {
            if (u >= left) break;
            if (HALVES && late-- == 0) barrier_await(part.barrier + 1, 0);
            multiply(w, ring[u % AHEAD]);
            w += ROWS * 32;
            if (u + AHEAD < left) bring(ring[u % AHEAD], from, area);
        }
    }

    static __device__ __forceinline__ void bring(bundle<float, WIDE> (&to)[PIECES][2], const float *(&from)[PIECES],
                                                 int area)
    {
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            to[i][0] = read_bundle<WIDE>(from[i], 0);
            to[i][1] = read_bundle<WIDE>(from[i] + 4 * area, 0);
            from[i] += WARPS_CHANNELS * area;
        }
    }

    __device__ __forceinline__ void multiply(const float4 *w, const bundle<float, WIDE> (&x)[PIECES][2])
    {
        uint32_t b[COLUMNS][2];
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
#pragma unroll
            for (int i = 0; i < 2; i++) b[j][i] = factor_bits<SDLF_MATH_TF32>(x[j / WIDE][i].at[j % WIDE]);
        }
#pragma unroll
        for (int m = 0; m < ROWS; m++) {
            const float4 four = w[m * 32];
            const uint32_t a[4] = {__float_as_uint(four.x), __float_as_uint(four.y), __float_as_uint(four.z),
                                   __float_as_uint(four.w)};
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) mma_tf32(sum[m][j], a, b[j]);
        }
    }

    /* Quad u, WIDE 4: columns 2 t or 2 t + 1 of WIDE products, 4 pixels; 2: both columns of two products, 4 pixels; 1: both columns of a
     * product, 2 pixels of two filters. */
    __device__ __forceinline__ float4 quad(int u) const
    {
        const int m = u / COLUMNS, at = u % COLUMNS;
        if constexpr (WIDE == 4) {
            const int piece = at / 4 * 4, half = at % 4;
            return make_float4(sum[m][piece][half], sum[m][piece + 1][half], sum[m][piece + 2][half],
                               sum[m][piece + 3][half]);
        } else if constexpr (WIDE == 2) {
            const int piece = at / 2 * 2, half = at % 2 * 2;
            return make_float4(sum[m][piece][half], sum[m][piece + 1][half], sum[m][piece][half + 1],
                               sum[m][piece + 1][half + 1]);
        } else {
            return make_float4(sum[m][at][0], sum[m][at][1], sum[m][at][2], sum[m][at][3]);
        }
    }

    /* Number e of a group's weights made ready: steps of ROWS fragments A of 32 lanes. */
    static __device__ __forceinline__ void place(int e, int &filter, int &channel)
    {
        const int word = e % 4, lane = e / 4 % 32, m = e / 128 % ROWS, step = e / (128 * ROWS);
        filter = m * 16 + lane / 4 + word % 2 * 8;
        channel = step * WARPS_CHANNELS + lane % 4 + word / 2 * 4;
    }

    static __device__ __forceinline__ float ready(float weight)
    {
        return __uint_as_float(factor_bits<SDLF_MATH_TF32>(weight));
    }
};

#endif
