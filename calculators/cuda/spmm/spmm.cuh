/* SPDX-License-Identifier: MIT */
/* What the files of spmm_csr share: y = f(a x + bias), a (R,C) in compressed rows with E elements, x (C,F), y (R,F).
 *
 * The lower bound. Offsets, columns and values are read once, y is written once: 8 R + (4 + T) E + T R F bytes. Each element also reads
 * a row of x: T E F, which at width 16 in double is 128 bytes an element, ten times everything else. x stays in the L2 cache if it fits
 * (36 MB for 281,903 rows in double), which gives an H200 8.3 TB/s of such rows, if some 60 kB a multiprocessor are in flight at any
 * time: 45 us in double. A kernel that achieves this has few instructions besides loads.
 *
 * The stream. The matrix is arranged once, in the prepared form or before a run, as a stream that warps read sequentially. G lanes of a
 * warp, enough for a row of x, form a group; a slot has an element for each of the GROUPS = 32 / G groups, and a stage is SPMM_STAGE
 * slots. Rows are sorted by length within SPMM_CHUNK of them, and each GROUPS consecutive rows form a slice, with as many slots as its
 * longest row has elements (one, if all are empty); every group accumulates a row of its own. A row of more than SPMM_LIGHT elements is
 * a slice by itself: its elements are distributed over the groups, whose sums are added at the end. One of more than SPMM_HEAVY is
 * split into slices of that many, whose sums go to the workspace; the warp that stores the last one of a row adds all of them in order.
 * Slices are contiguous, so stages cost the same, whatever the graph is like, and the device's warps split them, and the slices to be
 * finished, evenly.
 *
 * No floating-point atomics are used, and the order of every sum is fixed by its row's length. The position of a slice in the stream
 * may differ from one arrangement to the next, which does not affect y. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_CUH

#include "calculators/cuda/kernels.cuh"

enum {
    SPMM_LIGHT = 32,
    SPMM_HEAVY = 512,
    SPMM_CHUNK = 1024, /* rows that are sorted together */
    SPMM_WARP = 32,
    SPMM_STAGE = 8,           /* slots */
    SPMM_WARPS = 2,           /* per block that processes the stream */
    SPMM_RESIDENT = 10,       /* such blocks per multiprocessor, by registers: 96 per thread */
    SPMM_OPEN = 1,            /* stages whose rows of x are in flight while one is accumulated */
    SPMM_NOTHING = INT32_MIN, /* a target: no row */
};

/* A stage's slices. `slice` is the first one that ends in it or later; bit i of `ends`: one ends with slot i; bit
 * SPMM_JOINS + i: that slice is a single row; SPMM_FRESH: a slice begins at the first slot. */
typedef struct alignas(8) spmm_head {
    int32_t slice;
    uint32_t ends;
} spmm_head;

enum { SPMM_FRESH = 1 << 8, SPMM_JOINS = 16 };

/* Where a warp's part of the stream begins: at the first slice that begins in this stage at this slot or later. */
typedef struct alignas(8) spmm_start {
    int32_t stage, slot;
} spmm_start;

/* A slice of a single row: its elements begin at `first`, its slots at `slot` of the stream. */
typedef struct alignas(8) spmm_piece {
    int64_t first, slot;
    int64_t count;
} spmm_piece;

/* A split row: its parts are consecutive. The warp that stores the last one adds them. */
typedef struct alignas(16) spmm_cut {
    int64_t part;
    int32_t row, count;
} spmm_cut;

/* In device memory. */
typedef struct spmm_counts {
    unsigned long long made; /* stages << 32 | slices, so that both grow in the same order */
    int32_t pieces, cuts, parts;
} spmm_counts;

/* An arranged matrix: pointers into one allocation. A stage's columns are GROUPS times SPMM_STAGE consecutive values, -1 where a group
 * has no element; its values likewise. Target i of a slice is the row that group i accumulates; or -1 - i: part i of a split row. */
typedef struct spmm_stream {
    spmm_counts *counts;
    spmm_head *heads;
    spmm_start *starts; /* warps + 1 elements */
    int32_t *columns, *targets;
    void *values;
    spmm_piece *pieces;
    spmm_cut *cuts;
    int32_t *cut_of_part;
    unsigned *arrived; /* parts of each split row that are stored, by column block; 0 before and after a run */
    int64_t stage_most, slice_most, piece_most, cut_most, part_most, bytes;
    int groups, warps, column_blocks;
} spmm_stream;

/* Untyped pointers are to the element type of the computation. */
typedef struct spmm_csr {
    const int64_t *offsets;
    const int32_t *columns;
    const void *values, *x, *bias; /* bias may be null */
    void *y, *parts;
    int64_t rows, stored;
    spmm_stream stream;
    int width;
    bool ready; /* the stream was arranged, and waited for, before anything ran */
    bool log_softmax;
    sdlf_activation activation;
} spmm_csr;

/* Shared memory of a warp that processes the stream: elements of 2 SPMM_OPEN + 2 stages, rows of x of SPMM_OPEN + 1. */
static constexpr size_t spmm_warp_bytes(size_t groups, size_t size)
{
    return (2 * SPMM_OPEN + 2) * SPMM_STAGE * groups * (sizeof(int32_t) + size) +
           (SPMM_OPEN + 1) * SPMM_STAGE * SPMM_WARP * 16;
}

/* Lanes per row: a power of two, 4 or more, each with 16 bytes of it; 32 for all wider ones. */
int spmm_lanes(int64_t width, int64_t size);

/* Kernels, enqueued on the calculator's stream: arrange the matrix; process the stream. */
cudaError_t spmm_arrange(const cuda_calculator *calculator, const spmm_csr *s, sdlf_dtype dtype);
void spmm_run_stream_float32(const cuda_calculator *calculator, const spmm_csr *s);
void spmm_run_stream_float64(const cuda_calculator *calculator, const spmm_csr *s);

/* ---- epilogue of a row ---- */

/* A lane's part of a row: adjacent columns, in 16 bytes. */
template <typename T> struct alignas(16) pack {
    static constexpr int V = 16 / sizeof(T);
    T at[V];
};

/* Add the bias of column j, then apply the activation if there is one. */
template <typename T, bool ACTIVATE> static __device__ __forceinline__ T spmm_epilogue(const spmm_csr &s, T sum, int j)
{
    if (s.bias != nullptr) sum += static_cast<const T *>(s.bias)[j];
    return ACTIVATE ? activate(s.activation, sum) : sum;
}

template <typename T, int G> static __device__ __forceinline__ T sum_of_group(T value)
{
#pragma unroll
    for (int step = G / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

template <typename T, int G> static __device__ __forceinline__ T max_of_group(T value)
{
#pragma unroll
    for (int step = G / 2; step > 0; step /= 2) {
        T other = __shfl_xor_sync(0xffffffffu, value, step);
        value = other > value ? other : value;
    }
    return value;
}

#endif
