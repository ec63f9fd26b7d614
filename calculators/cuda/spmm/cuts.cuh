/* SPDX-License-Identifier: MIT */
/* Rows of spmm_csr that are split (spmm.cuh): a warp records which parts it has stored, and announces them at the end, or when its
 * list of 32 may overflow; the warp that announces the last part of a row adds all of them, part i in group i % GROUPS, and finishes
 * the row. The order of summation is fixed, whichever warp adds. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_CUTS_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_CUTS_CUH

#include "calculators/cuda/spmm/stage.cuh"

/* Lane i holds the i-th of `count` parts. */
typedef struct stored_parts {
    int32_t part;
    int count;
} stored_parts;

static __device__ __forceinline__ void note_part(stored_parts &stored, int32_t part)
{
    if (static_cast<int>(threadIdx.x) % SPMM_WARP == stored.count) stored.part = part;
    stored.count++;
}

/* Announces the recorded parts. Returns a bit per lane whose part was the last of its row; that lane receives the row's cut. */
static __device__ __forceinline__ unsigned tell_parts(const spmm_csr &s, stored_parts &stored, spmm_cut &cut)
{
    bool last = false;
    __threadfence(); /* publish the parts before the count */
    __syncwarp();
    if (static_cast<int>(threadIdx.x) % SPMM_WARP < stored.count) {
        const int32_t index = s.stream.cut_of_part[stored.part];
        unsigned *arrived = s.stream.arrived + static_cast<int64_t>(index) * s.stream.column_blocks + blockIdx.y;
        cut = s.stream.cuts[index];
        last = atomicAdd(arrived, 1) + 1 == static_cast<unsigned>(cut.count);
        if (last) *arrived = 0;
    }
    __threadfence(); /* read the count before the parts */
    stored.count = 0;
    return __ballot_sync(0xffffffffu, last);
}

/* This group's share of a split row's parts; `room`: shared memory, 16 bytes per lane for each slot of a stage. */
template <typename T, int G, bool ALIGNED>
static __device__ __forceinline__ pack<T> reduce_splits(const spmm_csr &s, int64_t part, int count, uint32_t room,
                                                        lane_columns mine)
{
    enum { GROUPS = SPMM_WARP / G };
    const int group = static_cast<int>(threadIdx.x) % SPMM_WARP / G;
    const T *parts = static_cast<const T *>(s.parts) + part * mine.width + mine.j;
    pack<T> sum = {};
    for (int first = group; first - group < count; first += SPMM_STAGE * GROUPS) {
#pragma unroll
        for (int i = 0; i < SPMM_STAGE; i++) {
            const int at = first + i * GROUPS;
            const T *from = parts + static_cast<int64_t>(at) * mine.width;
            ask_for_pack<T, ALIGNED>(room + i * sizeof(pack<T>) * SPMM_WARP, from, at < count ? 0 : -1, mine.valid);
        }
        cp_async_commit();
        cp_async_wait<0>();
#pragma unroll
        for (int i = 0; i < SPMM_STAGE; i++) {
            pack<T> row;
            read_shared(row.at, room + i * static_cast<uint32_t>(sizeof(pack<T>)) * SPMM_WARP);
#pragma unroll
            for (int v = 0; v < pack<T>::V; v++) sum.at[v] += row.at[v];
        }
    }
    return sum;
}

#endif
