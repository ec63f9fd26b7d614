/* What the files of spmm_csr share: y = f(a x + bias), a (R,C) in compressed rows with E elements, x (C,F), y (R,F).
 *
 * The floor. Offsets, columns and values come from memory once, y goes there once: 8 R + (4 + T) E + T R F bytes. Each element
 * asks for a row of x: T E F, which at width 16 in double is 128 bytes an element, ten times everything else. x lies in the
 * second-level cache where it fits (36 MB for 281,903 rows in double), which gives an H200 8.3 TB/s of such rows, if some 60 kB a
 * multiprocessor are under way at any time: 45 us in double. A kernel that gets there has few instructions besides asking.
 *
 * Lines. The matrix is arranged once, in the prepared form or before a run: a list of lines, each a run of elements of one row,
 * of which a group of G lanes takes one after the other. A row is a line. In every chunk of rows the lines are put in
 * order by their length, so that the groups of a warp have as much to do and none waits for another. Rows of more than SPMM_LIGHT
 * elements are in a list of their own, which is begun first; those of more than SPMM_HEAVY are cut into lines of as many, whose
 * sums go to the workspace, where a second small kernel adds up those of a row in order. So no row is long enough to be
 * waited for, whatever the graph is like.
 *
 * There are no atomics among the numbers, and every sum has one order, that of its row. Where a line stands in a list may differ
 * from one arrangement to the next, which nobody can see in y. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_CUH

#include "calculators/cuda/kernels.cuh"

enum {
    SPMM_LIGHT = 32,
    SPMM_HEAVY = 256,
    SPMM_CHUNK = 1024, /* rows that are put in order together */
    SPMM_THREADS = 128,
    SPMM_WARP = 32,
    SPMM_NOTHING = INT32_MIN, /* a line's target: there is no line */
};

/* Elements [first, first + count) of one row. */
typedef struct alignas(16) spmm_line {
    int64_t first;
    int32_t count;
    int32_t target; /* the row that it is all of; or -1 - i: part i of a row that is cut */
} spmm_line;

/* A row that is cut: its parts follow each other. */
typedef struct alignas(16) spmm_cut {
    int64_t part;
    int32_t row, count;
} spmm_cut;

/* An arranged matrix: pointers into one block of memory. */
typedef struct spmm_lines {
    int32_t *counts; /* of heavy lines, cut rows, parts: on the device */
    spmm_line *light, *heavy;
    spmm_cut *cuts;
    int64_t light_count, heavy_most, cut_most,
        part_most; /* light ones: rows, to whole chunks; of the others there are fewer */
    int64_t bytes;
} spmm_lines;

/* Pointers to the numbers are of the type that is computed in. */
typedef struct spmm_csr {
    const int64_t *offsets;
    const int32_t *columns;
    const void *values, *x, *bias; /* bias may be null */
    void *y, *parts;
    int64_t rows, stored;
    spmm_lines lines;
    int width;
    int heavy_blocks; /* the first so many blocks share the heavy lines */
    bool log_softmax;
    sdlf_activation activation;
} spmm_csr;

/* Kernels, each queued on `stream`: arrange the matrix; compute all lines; add up the rows that are cut. */
cudaError_t spmm_arrange(const spmm_csr *s, cudaStream_t stream);
void spmm_add_lines_float32(const spmm_csr *s, cudaStream_t stream);
void spmm_add_lines_float64(const spmm_csr *s, cudaStream_t stream);
void spmm_add_cuts(const spmm_csr *s, sdlf_dtype dtype, int multiprocessors, cudaStream_t stream);

/* ---- what becomes of a row's sums ---- */

/* Bias, then the activation where there is one, of column j. */
template <typename T, bool ACTIVATE> static __device__ __forceinline__ T spmm_finish(const spmm_csr &s, T sum, int j)
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
