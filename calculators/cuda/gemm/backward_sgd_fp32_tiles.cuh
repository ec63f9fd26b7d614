/* SPDX-License-Identifier: MIT */
/* Tiles of gemm_backward_sgd in float32 (gemm/backward_sgd_fp32.cu): their shapes, and the loads of x, w, dy and v into shared
 * memory and registers. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_FP32_TILES_CUH
#define SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_FP32_TILES_CUH

#include "calculators/cuda/gemm/backward_sgd.cuh"

enum {
    THREADS = 256,
    HALF = THREADS / 2,
    LANES = 4 /* threads that share a row of the strip */,
    GROUPS = HALF / LANES,
    BAND = 8 /* rows n per thread */
};

/* Tile shapes, for ROWS 16, 64 and 128 and STRIP 16 and 48. */
template <int ROWS, int STRIP> struct shape {
    static const int rows = ROWS, strip = STRIP, tile = STRIP == 16 ? 64 : 128, stages = ROWS * STRIP > 64 * 48 ? 2 : 3;
    static const int vectors = STRIP / 4 / LANES;          /* of a row, per thread */
    static const int units = tile / GROUPS;                /* of g, per thread */
    static const int lines = ROWS / BAND;                  /* threads that share the rows n */
    static const int parts = GROUPS / lines;               /* of the units, for dx */
    static const int line = STRIP + 4, dy_line = tile + 4; /* padded against bank conflicts */
};

template <class S> struct stage {
    float w[S::tile][S::line], dy[S::rows][S::dy_line];
};

template <class S> struct shared_memory {
    union {
        stage<S> stages[S::stages];
        float dx[S::parts][S::rows][S::strip]; /* at the end */
    };
    float x[S::rows][S::strip];
};

/* The column of a lane's j-th vector of a row. */
static __device__ __forceinline__ int column_of(int lane, int j)
{
    return 4 * (lane + LANES * j);
}

static __device__ __forceinline__ float4 vector_at(const float *at)
{
    return *reinterpret_cast<const float4 *>(at);
}

template <class S>
static __device__ __forceinline__ void load_strip(float (&to)[S::rows][S::strip], const backward_sgd &s, int i0)
{
    const int chunks = S::strip / 4;
    for (int e = threadIdx.x; e < S::rows * chunks; e += THREADS) {
        int n = e / chunks, i = i0 + e % chunks * 4;
        bool valid = n < s.rows && i < s.inputs;
        copy_async(&to[n][e % chunks * 4], s.x + (valid ? static_cast<int64_t>(n) * s.inputs + i : 0), valid);
    }
}

/* Load a tile's rows of w, by HALF threads. */
template <class S>
static __device__ __forceinline__ void fetch_w(stage<S> &to, const backward_sgd &s, int i0, int u0, int thread)
{
    int lane = thread % LANES, group = thread / LANES;
    const float *w = s.w + static_cast<int64_t>(u0 + group) * s.inputs + i0;
#pragma unroll
    for (int u = 0; u < S::tile; u += GROUPS) {
#pragma unroll
        for (int j = 0; j < S::vectors; j++) {
            int column = column_of(lane, j);
            copy_async(&to.w[group + u][column], w + column, u0 + group + u < s.units && i0 + column < s.inputs);
        }
        w += static_cast<int64_t>(GROUPS) * s.inputs;
    }
}

/* Load a tile's part of dy's rows, likewise. */
template <class S>
static __device__ __forceinline__ void fetch_dy(stage<S> &to, const backward_sgd &s, int u0, int thread)
{
    const int chunks = S::tile / 4, step = HALF / chunks;
    int first = thread / chunks, u = thread % chunks * 4;
    const float *dy = s.dy + static_cast<int64_t>(first) * s.units + u0 + u;
#pragma unroll
    for (int n = 0; n < S::rows; n += step) {
        copy_async(&to.dy[first + n][u], dy, first + n < s.rows && u0 + u < s.units);
        dy += static_cast<int64_t>(step) * s.units;
    }
}

/* Prefetch a tile's rows of `from` into the L2 cache, by HALF threads. */
template <class S>
static __device__ __forceinline__ void prefetch_tile(const float *from, const backward_sgd &s, int i0, int u0,
                                                     int thread)
{
    const int ends = S::strip > 32 ? 2 : 1; /* 128-byte lines that a row of the strip touches */
    int u = u0 + thread / ends, i = thread % ends == 0 ? i0 : i0 + S::strip - 4;
    if (i >= s.inputs) return;
#pragma unroll
    for (int k = 0; k < S::tile; k += HALF / ends) {
        if (u + k < s.units && thread / ends + k < S::tile)
            prefetch_line(from + static_cast<int64_t>(u + k) * s.inputs + i);
    }
}

/* v of a thread of the gradient, until it is updated. */
template <class S> struct held {
    float4 v[S::units][S::vectors];
};

/* A thread's units are a multiple of four, or two of four: all of them exist, or none. By HALF threads. */
template <class S>
static __device__ __forceinline__ void load_velocity(held<S> &to, const backward_sgd &s, int i0, int u0, int thread)
{
    int lane = thread % LANES, u = u0 + thread / LANES * S::units;
    const float *from = s.v + static_cast<int64_t>(u) * s.inputs + i0;
#pragma unroll
    for (int k = 0; k < S::units; k++) {
#pragma unroll
        for (int j = 0; j < S::vectors; j++) {
            int column = column_of(lane, j);
            to.v[k][j] = make_float4(0, 0, 0, 0);
            if (u < s.units && i0 + column < s.inputs)
                to.v[k][j] = __ldcs(reinterpret_cast<const float4 *>(from + column));
        }
        from += s.inputs;
    }
}

#endif
