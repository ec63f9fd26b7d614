/* SPDX-License-Identifier: MIT */
/* What a warp of pointwise_warps.cu makes on tensor cores. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_MMA_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_MMA_CUH

#include "calculators/cuda/conv2d/pointwise_warps_common.cuh"
#include "calculators/cuda/mma.cuh"

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
            if (u < steps) load(ring[u], from, area);
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
                load(ring[u], from, area);
            }
        }
#pragma unroll
        for (int u = 0; u < 2 * AHEAD - 1; u++) {
            if (u >= left) break;
            if (HALVES && late-- == 0) barrier_await(part.barrier + 1, 0);
            multiply(w, ring[u % AHEAD]);
            w += ROWS * 32;
            if (u + AHEAD < left) load(ring[u % AHEAD], from, area);
        }
    }

    static __device__ __forceinline__ void load(bundle<float, WIDE> (&to)[PIECES][2], const float *(&from)[PIECES],
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
