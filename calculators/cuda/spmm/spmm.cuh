/* SPDX-License-Identifier: MIT */
/* What the files of spmm_csr share: y = f(a x + bias), a (R,C) in compressed rows with E elements, x (C,F), y (R,F).
 *
 * The floor. Offsets, columns and values come from memory once, y goes there once: 8 R + (4 + T) E + T R F bytes. Each element
 * asks for a row of x: T E F, which at width 16 in double is 128 bytes an element, ten times everything else. x lies in the
 * second-level cache where it fits (36 MB for 281,903 rows in double), which gives an H200 8.3 TB/s of such rows, if some 60 kB a
 * multiprocessor are under way at any time: 45 us in double. A kernel that gets there has few instructions besides asking.
 *
 * The stream. The matrix is arranged once, in the prepared form or before a run, as a stream that warps read from end to end.
 * G lanes of a warp, enough for a row of x, are a group; a slot has an element for each of the GROUPS = 32 / G groups, and a
 * stage is SPMM_STAGE slots. Rows are put in order by their length, among SPMM_CHUNK of them, and each GROUPS that follow one
 * another are a slice: as many slots as its longest row has elements (one, if all are empty), every group adding up a row of
 * its own. A row of more than SPMM_LIGHT elements is a slice by itself: its elements are dealt out to the groups, whose sums are
 * added in the end. One of more than SPMM_HEAVY is cut into slices of as many, whose sums go to the workspace; the warp that stores the
 * last one of a row adds up all of them in order. Slices follow each other without gaps, so stages cost the same, whatever the
 * graph is like, and the warps of the device divide them, and the slices to be finished, evenly.
 *
 * There are no atomics among the numbers, and every sum has one order, which follows from its row's length. Where a slice stands
 * in the stream may differ from one arrangement to the next, which nobody can see in y. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_CUH

#include "calculators/cuda/kernels.cuh"

enum {
    SPMM_LIGHT = 32,
    SPMM_HEAVY = 512,
    SPMM_CHUNK = 1024, /* rows that are put in order together */
    SPMM_WARP = 32,
    SPMM_STAGE = 8,           /* slots */
    SPMM_WARPS = 2,           /* a block that goes through the stream */
    SPMM_RESIDENT = 10,       /* such blocks that a multiprocessor has the registers for: 96 of them a thread */
    SPMM_OPEN = 1,            /* stages whose rows of x are under way while one is added up */
    SPMM_NOTHING = INT32_MIN, /* a target: there is no row */
};

/* A stage's slices. `slice` is the first one that ends in it or later; bit i of `ends`: one ends with slot i, bit
 * SPMM_JOINS + i: and is of one row; SPMM_FRESH: the first slot begins one. */
typedef struct alignas(8) spmm_head {
    int32_t slice;
    uint32_t ends;
} spmm_head;

enum { SPMM_FRESH = 1 << 8, SPMM_JOINS = 16 };

/* Where a warp's part of the stream begins: with the first slice that begins in this stage at this slot or later. */
typedef struct alignas(8) spmm_start {
    int32_t stage, slot;
} spmm_start;

/* A slice of one row, whose elements begin at `first`, from slot `slot` of the stream on. */
typedef struct alignas(8) spmm_piece {
    int64_t first, slot;
    int64_t count;
} spmm_piece;

/* A row that is cut: its parts follow each other. Whoever stores the last one adds them up. */
typedef struct alignas(16) spmm_cut {
    int64_t part;
    int32_t row, count;
} spmm_cut;

/* On the device. */
typedef struct spmm_counts {
    unsigned long long made; /* stages << 32 | slices, so that both grow in the same order */
    int32_t pieces, cuts, parts;
} spmm_counts;

/* An arranged matrix: pointers into one block of memory. A stage's columns are GROUPS times SPMM_STAGE neighbours, -1 where a group
 * has no element; so are its values. Target i of a slice is the row that group i adds up; or -1 - i: part i of a row that is cut. */
typedef struct spmm_stream {
    spmm_counts *counts;
    spmm_head *heads;
    spmm_start *starts; /* one more than warps */
    int32_t *columns, *targets;
    void *values;
    spmm_piece *pieces;
    spmm_cut *cuts;
    int32_t *cut_of_part;
    unsigned *arrived; /* parts of each cut row that are there, by column block; 0 before and after a run */
    int64_t stage_most, slice_most, piece_most, cut_most, part_most, bytes;
    int groups, warps, column_blocks;
} spmm_stream;

/* Pointers to the numbers are of the type that is computed in. */
typedef struct spmm_csr {
    const int64_t *offsets;
    const int32_t *columns;
    const void *values, *x, *bias; /* bias may be null */
    void *y, *parts;
    int64_t rows, stored;
    spmm_stream stream;
    int width;
    bool ready; /* the stream was made, and waited for, before anything ran */
    bool log_softmax;
    sdlf_activation activation;
} spmm_csr;

/* Shared memory of a warp that goes through the stream: elements of 2 SPMM_OPEN + 2 stages, rows of x of SPMM_OPEN + 1. */
static constexpr size_t spmm_warp_bytes(size_t groups, size_t size)
{
    return (2 * SPMM_OPEN + 2) * SPMM_STAGE * groups * (sizeof(int32_t) + size) +
           (SPMM_OPEN + 1) * SPMM_STAGE * SPMM_WARP * 16;
}

/* Lanes for a row: a power of two from 4 on, each with 16 bytes of it; 32 for all wider ones. */
int spmm_lanes(int64_t width, int64_t size);

/* Kernels, each queued on the calculator's stream: arrange the matrix; go through the stream. */
cudaError_t spmm_arrange(const cuda_calculator *calculator, const spmm_csr *s, sdlf_dtype dtype);
void spmm_run_stream_float32(const cuda_calculator *calculator, const spmm_csr *s);
void spmm_run_stream_float64(const cuda_calculator *calculator, const spmm_csr *s);

/* ---- what becomes of a row's sums ---- */

/* What a lane has of a row: neighbouring columns, in 16 bytes. */
template <typename T> struct alignas(16) pack {
    static constexpr int V = 16 / sizeof(T);
    T at[V];
};

/* Bias, then the activation where there is one, of column j. */
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
