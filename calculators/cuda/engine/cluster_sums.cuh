/* SPDX-License-Identifier: MIT */
/* Split-K: the sums of a tile over the blocks of a cluster, in the order of the blocks. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CLUSTER_SUMS_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_CLUSTER_SUMS_CUH

#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/engine/mainloop.cuh"

/* Of `cluster` blocks, 2^n of them, each sums its share of the columns, groups of 16 from `first` to before `last`, reading all accumulators row by
 * row; those of other columns become 0. sums: shared memory of 128 rows of BN + ENGINE_PAD floats, which the ring of stages may use too. */
template <int BN>
static __device__ __forceinline__ void sum_over_cluster(int cluster, int first, int last, float *sums,
                                                        float (&c)[BN / 8][4])
{
    constexpr int LINE = BN + ENGINE_PAD, LOADS = 8; /* loads in flight: some vectors, from all blocks */
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    barrier_of_threads(ENGINE_CONSUMERS); /* the ring's memory can be reused */
    store_fragments(sums + warp / 4 * 64 * LINE, LINE, c);
    __syncwarp();
    cluster_sync();
    const int bits = __ffs(cluster) - 1, vectors = BN / 4 >> bits; /* of four columns, per row */
    const int next = ENGINE_CONSUMERS / vectors * LINE;
    float *mine = sums + thread / vectors * LINE + first * 16 + thread % vectors * 4;
#pragma unroll 1
    for (int load = 0; load < BN / 8; load += LOADS, mine += (LOADS >> bits) * next) {
        float4 vector[LOADS], all = {};
#pragma unroll
        for (int i = 0; i < LOADS; i++) vector[i] = dsmem_load(mine + (i >> bits) * next, i & (cluster - 1));
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int block = i & (cluster - 1);
            all = block == 0 ? vector[i] : plus(all, vector[i]);
            if (block == cluster - 1) *reinterpret_cast<float4 *>(mine + (i >> bits) * next) = all;
        }
    }
    barrier_of_threads(ENGINE_CONSUMERS);
    const float *from = sums + (warp / 4 * 64 + warp % 4 * 16 + lane / 4) * LINE + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
        float2 low = {}, high = {}; /* also for other blocks' columns, so that no register is kept alive */
        if (j / 2 >= first && j / 2 < last) {
            low = *reinterpret_cast<const float2 *>(from + 8 * j);
            high = *reinterpret_cast<const float2 *>(from + 8 * j + 8 * LINE);
        }
        c[j][0] = low.x;
        c[j][1] = low.y;
        c[j][2] = high.x;
        c[j][3] = high.y;
    }
}

#endif
