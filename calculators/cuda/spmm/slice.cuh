/* SPDX-License-Identifier: MIT */
/* Finishes the sums of a slice of spmm_csr (spmm.cuh): groups that share a row are reduced, and a row gets its bias, activation and
 * log_softmax before it is stored. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_SLICE_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_SLICE_CUH

#include "calculators/cuda/spmm/log_softmax.cuh"

/* The columns of x and y that a lane has: `valid` from j on (none if that is not positive). */
typedef struct lane_columns {
    int j, valid, width, row_bytes;
    const char *x; /* these columns of row 0 */
    char *y;
} lane_columns;

template <typename T, bool ALIGNED>
static __device__ __forceinline__ void store_pack(T *to, const pack<T> &p, int valid)
{
    if (valid <= 0) return;
    if (ALIGNED) {
        uint4 bits;
        memcpy(&bits, &p, sizeof p);
        __stcs(reinterpret_cast<uint4 *>(to), bits); /* x benefits more from the cache */
    } else {
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++)
            if (v < valid) to[v] = p.at[v];
    }
}

/* Reduce a row's sum over all groups: every group gets the total. */
template <typename T, int G> static __device__ __forceinline__ void join_groups(pack<T> &sum)
{
#pragma unroll
    for (int step = G; step < SPMM_WARP; step *= 2)
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++) sum.at[v] += __shfl_xor_sync(0xffffffffu, sum.at[v], step);
}

template <typename T, bool ALIGNED>
static __device__ __forceinline__ void store_row(const pack<T> &row, int target, lane_columns mine)
{
    if (target >= 0)
        store_pack<T, ALIGNED>(reinterpret_cast<T *>(mine.y + static_cast<int64_t>(target) * mine.row_bytes), row,
                               mine.valid);
}

/* Rows that are complete except for their log_softmax, which is computed for two at a time. */
template <typename T> struct finished_rows {
    pack<T> row[2];
    int32_t target[2];
    int waiting; /* the first row is present */
};

template <typename T, int G, bool ALIGNED>
static __device__ __forceinline__ void store_both(finished_rows<T> &rows, lane_columns mine)
{
    take_log_softmax<T, G>(rows.row, mine.valid);
#pragma unroll
    for (int i = 0; i < 2; i++) store_row<T, ALIGNED>(rows.row[i], rows.target[i], mine);
    rows.waiting = 0;
}

/* This group's sum for `target` becomes a row of y: now, or together with the next one. */
template <typename T, int G, bool PLAIN, bool ALIGNED, bool ACTIVATE>
static __device__ __forceinline__ void finish_row(const spmm_csr &s, finished_rows<T> &rows, pack<T> sum, int target,
                                                  lane_columns mine)
{
#pragma unroll
    for (int v = 0; v < pack<T>::V; v++)
        if (!PLAIN && v < mine.valid) sum.at[v] = spmm_epilogue<T, ACTIVATE>(s, sum.at[v], mine.j + v);
    if (!s.log_softmax) {
        store_row<T, ALIGNED>(sum, target, mine);
    } else if (!rows.waiting) {
        rows.row[0] = sum, rows.target[0] = target;
        rows.waiting = 1;
    } else {
        rows.row[1] = sum, rows.target[1] = target;
        store_both<T, G, ALIGNED>(rows, mine);
    }
}

#endif
