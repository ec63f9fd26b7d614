/* SPDX-License-Identifier: MIT */
/* The reduction of dx in gemm_backward_sgd on Tensor Cores: every lane of warps has partial sums, and every block of a strip
 * those of its units. The lanes' are added in the block's shared memory, and so are the blocks' if they form a cluster
 * (compute capability 9.0); otherwise in the workspace, by the last block to arrive. The order is always the same. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_SUMS_CUH
#define SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_SUMS_CUH

#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/gemm/backward_sgd_tiles.cuh"

template <class S> struct backward_sgd_sums {
    float lanes[S::LANES][S::ROWS][S::PITCH];
};

/* How the units are split between blocks. */
struct backward_sgd_cut {
    int tiles, splits; /* tiles of units; blocks per strip */
    bool cluster;      /* true if these form a cluster; else: */
    float *parts;      /* (splits, rows, inputs) */
    unsigned *tickets; /* one per strip */
};

/* Store four adjacent elements of dx, times the activation's slope. */
static __device__ __forceinline__ void store_four(const backward_sgd &s, int n, int i, float4 sum)
{
    int64_t at = static_cast<int64_t>(n) * s.inputs + i;
    if (s.activation.function != SDLF_IDENTITY) {
        float4 x = *reinterpret_cast<const float4 *>(s.x + at);
        sum.x *= activation_slope(s.activation, x.x);
        sum.y *= activation_slope(s.activation, x.y);
        sum.z *= activation_slope(s.activation, x.z);
        sum.w *= activation_slope(s.activation, x.w);
    }
    *reinterpret_cast<float4 *>(s.dx + at) = sum;
}

/* Call `use(n, c)` for this thread's chunks of four columns c in all rows n of its block: of every count-th group of
 * chunks, from the first-th on. */
template <class S, typename Use>
static __device__ __forceinline__ void for_chunks(const backward_sgd &s, int i0, int first, int count, Use use)
{
    const int chunks = S::COLUMNS / 4;
    for (int e = threadIdx.x + first * S::THREADS; e < S::ROWS * chunks; e += count * S::THREADS) {
        int n = e / chunks, c = e % chunks * 4;
        if (n < s.rows && i0 + c < s.inputs) use(n, c);
    }
}

template <class S>
static __device__ __forceinline__ void finish_input(const float (&dx)[S::MINE / 16][4][4], backward_sgd_sums<S> &sums,
                                                    const backward_sgd &s, const backward_sgd_cut &cut, int i0)
{
    const backward_sgd_place at = backward_sgd_place::of<S>();
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int m = 0; m < S::MINE / 16; m++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float *to = &sums.lanes[at.lane][at.part * S::MINE + m * 16 + g][at.strip * WIDTH + j * 8 + 2 * t];
            *reinterpret_cast<float2 *>(to) = make_float2(dx[m][j][0], dx[m][j][1]);
            *reinterpret_cast<float2 *>(to + 8 * S::PITCH) = make_float2(dx[m][j][2], dx[m][j][3]);
        }
    }
    __syncthreads();
    float *parts = cut.parts + static_cast<int64_t>(blockIdx.y) * s.rows * s.inputs + i0;
    for_chunks<S>(s, i0, 0, 1, [&](int n, int c) {
        float4 sum = *reinterpret_cast<const float4 *>(&sums.lanes[0][n][c]);
#pragma unroll
        for (int l = 1; l < S::LANES; l++) sum = plus(sum, *reinterpret_cast<const float4 *>(&sums.lanes[l][n][c]));
        if (cut.splits == 1)
            store_four(s, n, i0 + c, sum);
        else if (cut.cluster)
            *reinterpret_cast<float4 *>(&sums.lanes[0][n][c]) = sum;
        else
            __stcg(reinterpret_cast<float4 *>(parts + static_cast<int64_t>(n) * s.inputs + c), sum);
    });
    if (cut.splits == 1) return;
    if (cut.cluster) {
        cluster_sync();
        for_chunks<S>(s, i0, blockIdx.y, cut.splits,
                      [&](int n, int c) { store_four(s, n, i0 + c, add_blocks(&sums.lanes[0][n][c], cut.splits)); });
        cluster_sync(); /* no block may exit before all have read its shared memory */
    } else if (is_last_block(cut.tickets + blockIdx.x, cut.splits)) {
        for_chunks<S>(s, i0, 0, 1, [&](int n, int c) {
            const float *from = cut.parts + static_cast<int64_t>(n) * s.inputs + i0 + c;
            float4 sum = __ldcg(reinterpret_cast<const float4 *>(from));
            for (int k = 1; k < cut.splits; k++)
                sum = plus(
                    sum, __ldcg(reinterpret_cast<const float4 *>(from + static_cast<int64_t>(k) * s.rows * s.inputs)));
            store_four(s, n, i0 + c, sum);
        });
    }
}

#endif
