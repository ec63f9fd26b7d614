/* SPDX-License-Identifier: MIT */
/* Tiles of gemm_backward_sgd on Tensor Cores (gemm/backward_sgd_tensor.cu): how a block is divided, and how w, v, dy and x are
 * loaded for its GEMMs.
 *
 * A block owns COLUMNS columns i and part of the units u. Its warps are arranged in STRIPS of 32 columns and, along the units,
 * in LANES; HALVES warps share a tile of 16 HALVES units and 32 columns, of which each computes 16 units of the gradient and a
 * part of dx's rows. A round is a tile of every lane. w's and v's tiles are loaded by cp.async, STAGES - 1 rounds ahead, in
 * rows of 128 bytes. dy's part of a round, rounded once for the whole block, is loaded through registers a round ahead. All of
 * them are stored in shared memory without padding, in chunks of 16 bytes that are swizzled from row to row, so that row and
 * column accesses of a warp are free of bank conflicts. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_TILES_CUH
#define SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_TILES_CUH

#include "calculators/cuda/gemm/backward_sgd.cuh"

enum { BAND = 16, WIDTH = 32 /* units and columns of a warp's gradient tile */, WAITING = 4 };

template <int ROWS_, int STRIPS_, int LANES_, int HALVES_, int STAGES_> struct backward_sgd_shape {
    static const int ROWS = ROWS_, STRIPS = STRIPS_, LANES = LANES_, HALVES = HALVES_, STAGES = STAGES_;
    static const int TILES = STRIPS * LANES, THREADS = TILES * HALVES * WARP, COLUMNS = STRIPS * WIDTH;
    static const int MINE = ROWS / HALVES;                        /* a warp's rows of dx */
    static const int UNITS = HALVES * BAND, STEP = LANES * UNITS; /* units of a tile, of a round */
    static const bool X_SHARED = ROWS > 16;                       /* else x's fragments are in registers */
    static const int X_STEPS = X_SHARED ? 1 : ROWS / 8;           /* k-steps of 8 rows held there */
    static const int X_CHUNKS = X_SHARED ? STRIPS * ROWS * WIDTH / 4 : 0,
                     X_EACH = X_SHARED ? (X_CHUNKS + THREADS - 1) / THREADS
                                       : 1; /* vectors of four in shared memory, and per thread */
    static const int CHUNKS = ROWS * STEP / 4,
                     EACH = (CHUNKS + THREADS - 1) / THREADS; /* of dy in a round, and per thread */
    static const int PITCH = COLUMNS + 8;                     /* row stride of the sums */
};

template <class S> struct backward_sgd_tiles {
    float w[S::TILES][S::STAGES][S::UNITS * WIDTH], v[S::TILES][S::STAGES][S::UNITS * WIDTH];
    uint32_t dy[2][S::STEP / BAND][S::ROWS][BAND];
    uint32_t x[S::X_SHARED ? S::STRIPS * S::ROWS * WIDTH : 4];
};

/* This warp's part of the block's work. */
struct backward_sgd_place {
    int strip, lane, part;
    template <class S> static __device__ __forceinline__ backward_sgd_place of()
    {
        int warp = threadIdx.x / WARP;
        return {warp % S::STRIPS, warp / S::STRIPS % S::LANES, warp / S::TILES};
    }
};

/* The offset of unit u's chunk of 4 columns in a tile. */
static __device__ __forceinline__ int place_in_tile(int u, int chunk)
{
    return u * WIDTH + (chunk ^ ((u & 1) << 2 | (u & 2))) * 4;
}

/* The swizzle of row n's chunks of 4 units of dy. */
static __device__ __forceinline__ int turn(int n)
{
    return (n >> 1 & 1) << 1 | (n >> 2 & 1);
}

/* The column that index m of the j-th mma's 8 columns stands for: chosen so that a thread's accumulators are four adjacent columns. */
static __device__ __forceinline__ int column_of(int j, int m)
{
    return 16 * (j / 2) + 4 * (m / 2) + 2 * (j % 2) + m % 2;
}

/* Prefetch the first tiles of a warp into L2: one row of w or of v per lane. */
template <class S>
static __device__ __forceinline__ void prefetch_tiles(const backward_sgd &s, int u0, int last, int i0)
{
    int lane = threadIdx.x % WARP;
    const float *from = lane < BAND ? s.w : s.v;
    for (int k = 0; k < WAITING; k++) {
        int u = u0 + k * S::STEP + lane % BAND;
        if (u < last && i0 < s.inputs) prefetch_line(from + static_cast<int64_t>(u) * s.inputs + i0);
    }
}

/* Load a tile's w and v; each of its warps loads 16 units. */
template <class S>
static __device__ __forceinline__ void load_tile(float *w, float *v, const backward_sgd &s, int u0, int i0, int part)
{
    int lane = threadIdx.x % WARP, row = lane / 8 + part * BAND, i = i0 + lane % 8 * 4,
        to = place_in_tile(row, lane % 8);
    int64_t from = static_cast<int64_t>(u0 + row) * s.inputs + i;
#pragma unroll
    for (int r = 0; r < BAND; r += 4) {
        bool valid = u0 + row + r < s.units && i < s.inputs;
        int64_t at = valid ? from + r * static_cast<int64_t>(s.inputs) : 0;
        copy_async(w + to + r * WIDTH, s.w + at, valid);
        copy_async_once(v + to + r * WIDTH, s.v + at, valid);
    }
}

/* A round's dy, from unit u0 on: load it into registers, then write it, rounded, to shared memory. */
template <class S>
static __device__ __forceinline__ void read_dy(float4 (&held)[S::EACH], const backward_sgd &s, int u0)
{
#pragma unroll
    for (int q = 0; q < S::EACH; q++) {
        int e = threadIdx.x + q * S::THREADS, n = e / (S::STEP / 4), u = u0 + e % (S::STEP / 4) * 4;
        bool valid = n < s.rows && n < S::ROWS && u < s.units;
        held[q] = valid ? *reinterpret_cast<const float4 *>(s.dy + static_cast<int64_t>(n) * s.units + u)
                        : make_float4(0, 0, 0, 0);
    }
}

template <sdlf_math MATH, class S>
static __device__ __forceinline__ void write_dy(uint32_t (&to)[S::STEP / BAND][S::ROWS][BAND],
                                                const float4 (&held)[S::EACH])
{
#pragma unroll
    for (int q = 0; q < S::EACH; q++) {
        int e = threadIdx.x + q * S::THREADS, n = e / (S::STEP / 4), c = e % (S::STEP / 4);
        if (S::CHUNKS % S::THREADS != 0 && e >= S::CHUNKS) break;
        *reinterpret_cast<uint4 *>(&to[c / 4][n][(c % 4 ^ turn(n)) * 4]) =
            make_uint4(operand_bits<MATH>(held[q].x), operand_bits<MATH>(held[q].y), operand_bits<MATH>(held[q].z),
                       operand_bits<MATH>(held[q].w));
    }
}

static __device__ __forceinline__ float x_at(const backward_sgd &s, int n, int i)
{
    return n < s.rows && i < s.inputs ? s.x[static_cast<int64_t>(n) * s.inputs + i] : 0.0f;
}

/* What a thread reads of x, before rounding: no instruction waits for it yet. */
template <class S> struct backward_sgd_x {
    float4 shared[S::X_EACH];
    float held[S::X_STEPS][4][2];
};

/* x of the block's columns as B fragments: for shared memory (strip, k-step, pair of 8 columns, lane) of 4 elements; or, for the warp's
 * strip only, for registers. */
template <class S>
static __device__ __forceinline__ void read_x(backward_sgd_x<S> &to, const backward_sgd &s, int i0, int strip)
{
    if constexpr (S::X_SHARED) {
#pragma unroll
        for (int q = 0; q < S::X_EACH; q++) {
            int e = threadIdx.x + q * S::THREADS;
            int lane = e % WARP, pair = e / WARP % 2, n = e / WARP / 2 % (S::ROWS / 8) * 8 + lane % 4;
            int i = i0 + e / WARP / 2 / (S::ROWS / 8) * WIDTH;
            int low = i + column_of(2 * pair, lane / 4), high = i + column_of(2 * pair + 1, lane / 4);
            to.shared[q] = make_float4(x_at(s, n, low), x_at(s, n + 4, low), x_at(s, n, high), x_at(s, n + 4, high));
        }
    } else {
        int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
        for (int step = 0; step < S::X_STEPS; step++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                int i = i0 + strip * WIDTH + column_of(j, g);
                to.held[step][j][0] = x_at(s, step * 8 + t, i);
                to.held[step][j][1] = x_at(s, step * 8 + t + 4, i);
            }
        }
    }
}

template <sdlf_math MATH, class S>
static __device__ __forceinline__ void write_x(uint32_t *shared, uint32_t (&held)[S::X_STEPS][4][2],
                                               const backward_sgd_x<S> &from)
{
    if constexpr (S::X_SHARED) {
#pragma unroll
        for (int q = 0; q < S::X_EACH; q++) {
            int e = threadIdx.x + q * S::THREADS;
            const float4 four = from.shared[q];
            if (e < S::X_CHUNKS)
                *reinterpret_cast<uint4 *>(shared + e * 4) =
                    make_uint4(operand_bits<MATH>(four.x), operand_bits<MATH>(four.y), operand_bits<MATH>(four.z),
                               operand_bits<MATH>(four.w));
        }
    } else {
#pragma unroll
        for (int e = 0; e < S::X_STEPS * 8; e++)
            held[e / 8][e / 2 % 4][e % 2] = operand_bits<MATH>(from.held[e / 8][e / 2 % 4][e % 2]);
    }
}

#endif
