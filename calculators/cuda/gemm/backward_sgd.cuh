/* What the sweeps of gemm_backward_sgd share (see gemm/backward_sgd.h): tiles, how they arrive, and what becomes of them. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_CUH
#define SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_CUH

#include "calculators/cuda/activation.cuh"
#include "calculators/cuda/gemm/backward_sgd.h"
#include "calculators/cuda/mma.cuh"
#include "calculators/cuda/sgd.cuh"

enum { WARP = 32 };

/* The operation, as kernels take it. dx, b and bv may be NULL; v too in the narrow kernel alone. */
struct sweep {
    const float *x, *dy, *rate;
    float *w, *v, *dx, *b, *bv;
    int rows, inputs, units;
    sdlf_sgd_rule rule;
    sdlf_activation activation;
    bool waits_for_dy; /* alone, of all operands: the others are there before the kernel before this one begins */
};

static inline sweep sweep_of(const sdlf_operation *op)
{
    return {
        .x = data_of<float>(op->in[0]),
        .dy = data_of<float>(op->in[1]),
        .rate = data_of<float>(op->in[2]),
        .w = data_of<float>(op->out[0]),
        .v = optional<float>(op->out[1]),
        .dx = optional<float>(op->out[2]),
        .b = optional<float>(op->out[3]),
        .bv = optional<float>(op->out[4]),
        .rows = (int)op->in[0].shape.dim[0],
        .inputs = (int)op->in[0].shape.dim[1],
        .units = (int)op->in[1].shape.dim[1],
        .rule = op->gemm_backward.sgd,
        .activation = op->gemm_backward.activation,
    };
}

/* One stage: TILE lines of w and of v, and dy's ROWS lines. Lines are longer than what they hold, by as much as keeps the
 * lanes of a warp on different banks. */
template <int ROWS, int TILE, int STRIP> struct stage {
    float w[TILE][STRIP + 4], v[TILE][STRIP + 4], dy[ROWS][TILE + 8];
};

/* By all of a block's THREADS. Indices are int: 64-bit arithmetic would take longer than the copies. */
template <int THREADS, int ROWS, int TILE, int STRIP>
static __device__ __forceinline__ void fetch(stage<ROWS, TILE, STRIP> &to, const sweep &s, int i0, int u0)
{
    const int chunks = STRIP / 4;
#pragma unroll
    for (int e = threadIdx.x; e < TILE * chunks; e += THREADS) {
        int u = u0 + e / chunks, i = i0 + e % chunks * 4;
        bool valid = u < s.units && i < s.inputs;
        int64_t at = valid ? static_cast<int64_t>(u) * s.inputs + i : 0;
        copy_async(&to.w[e / chunks][e % chunks * 4], s.w + at, valid);
        copy_async(&to.v[e / chunks][e % chunks * 4], s.v + at, valid);
    }
#pragma unroll
    for (int e = threadIdx.x; e < ROWS * (TILE / 4); e += THREADS) {
        int n = e / (TILE / 4), u = u0 + e % (TILE / 4) * 4;
        bool valid = n < s.rows && u < s.units;
        copy_async(&to.dy[n][e % (TILE / 4) * 4], s.dy + (valid ? static_cast<int64_t>(n) * s.units + u : 0), valid);
    }
}

/* Walk down the strip: `use(stage, tile)` for every tile in order, tiles arriving STAGES - 1 ahead. */
template <int THREADS, int STAGES, int ROWS, int TILE, int STRIP, typename Use>
static __device__ __forceinline__ void walk(const sweep &s, int i0, stage<ROWS, TILE, STRIP> *stages, Use use)
{
    int tiles = (s.units + TILE - 1) / TILE;
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ahead++) {
        if (ahead < tiles) fetch<THREADS>(stages[ahead], s, i0, ahead * TILE);
        close_copies();
    }
    for (int tile = 0; tile < tiles; tile++) {
        int next = tile + STAGES - 1;
        await_copies<STAGES - 2>();
        __syncthreads();
        if (next < tiles) fetch<THREADS>(stages[next % STAGES], s, i0, next * TILE);
        close_copies();
        use(stages[tile % STAGES], tile);
    }
}

/* The bias of unit u, whose gradient is `sum`, moves on. */
static __device__ __forceinline__ void move_bias(const sweep &s, int u, float sum, float rate)
{
    move_at(s.b + u, s.bv != nullptr ? s.bv + u : nullptr, sum, rate, s.rule, s.rule.bias_decay);
}

static __device__ __forceinline__ void store_dx(const sweep &s, int n, int i, float value)
{
    if (n >= s.rows || i >= s.inputs) return;
    int64_t at = static_cast<int64_t>(n) * s.inputs + i;
    s.dx[at] = s.activation.function == SDLF_IDENTITY ? value : value * activation_slope(s.activation, s.x[at]);
}

/* The biases of every gridDim.x-th tile, the first of which is `mine`, which moves on: a thread a unit. */
template <int ROWS, int TILE, int STRIP>
static __device__ __forceinline__ void update_bias(const stage<ROWS, TILE, STRIP> &stage, const sweep &s, float rate,
                                                   int tile, int &mine)
{
    if (tile != mine || s.b == nullptr) return;
    mine += gridDim.x;
    int u = tile * TILE + threadIdx.x;
    if (threadIdx.x >= TILE || u >= s.units) return;
    float sum = 0;
    for (int n = 0; n < ROWS; n++) sum += stage.dy[n][threadIdx.x];
    move_bias(s, u, sum, rate);
}

#endif
