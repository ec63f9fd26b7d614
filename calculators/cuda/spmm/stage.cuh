/* SPDX-License-Identifier: MIT */
/* A stage of the stream of spmm_csr (spmm.cuh) in a warp's shared memory: its layout, its loads, its accumulation. */
#ifndef SDLF_CALCULATORS_CUDA_SPMM_STAGE_CUH
#define SDLF_CALCULATORS_CUDA_SPMM_STAGE_CUH

#include "calculators/cuda/spmm/shared.cuh"
#include "calculators/cuda/spmm/slice.cuh"

enum {
    STAGES_OPEN = SPMM_OPEN,
    STAGES_EARLY = STAGES_OPEN + 1, /* so that columns have arrived, too, when STAGES_OPEN may still be in flight */
    ROW_STAGES = STAGES_OPEN + 1,
    ELEMENT_STAGES = STAGES_OPEN + STAGES_EARLY + 1,
};

/* A stage of the stream in shared memory, and a warp's shared memory. */
template <typename T, int G> struct stage_of {
    enum { GROUPS = SPMM_WARP / G, PLACES = GROUPS * SPMM_STAGE };
    alignas(16) int32_t columns[GROUPS][SPMM_STAGE];
    alignas(16) T values[GROUPS][SPMM_STAGE];
};

template <typename T> struct stage_rows {
    pack<T> at[SPMM_STAGE][SPMM_WARP];
};

/* Indices into both rings are stage numbers modulo a power of two. */
static_assert((ROW_STAGES & (ROW_STAGES - 1)) == 0 && (ELEMENT_STAGES & (ELEMENT_STAGES - 1)) == 0, "powers of two");

template <typename T, int G> struct warp_memory {
    stage_of<T, G> elements[ELEMENT_STAGES];
    stage_rows<T> rows[ROW_STAGES];
};

/* ---- loads ---- */

/* The addresses of a lane's pieces of the next stage's elements. */
template <typename T, int G> struct element_source {
    enum { PLACES = stage_of<T, G>::PLACES, COLUMNS = PLACES * 4 / 16, ALL = COLUMNS + PLACES * (int)sizeof(T) / 16 };
    enum { PIECES = (ALL + SPMM_WARP - 1) / SPMM_WARP };
    const char *from[PIECES];
};

template <typename T, int G>
static __device__ __forceinline__ element_source<T, G> elements_of(const spmm_csr &s, int64_t stage)
{
    typedef element_source<T, G> source;
    source elements;
    const char *columns = reinterpret_cast<const char *>(s.stream.columns + stage * source::PLACES);
    const char *values =
        reinterpret_cast<const char *>(static_cast<const T *>(s.stream.values) + stage * source::PLACES);
#pragma unroll
    for (int p = 0; p < source::PIECES; p++) {
        const int i = p * SPMM_WARP + threadIdx.x % SPMM_WARP;
        elements.from[p] = i < source::COLUMNS ? columns + i * 16 : values + (i - source::COLUMNS) * 16;
    }
    return elements;
}

template <typename T, int G>
static __device__ __forceinline__ void ask_for_elements(element_source<T, G> &elements, uint32_t to, bool there)
{
    typedef element_source<T, G> source;
#pragma unroll
    for (int p = 0; p < source::PIECES; p++) {
        const int i = p * SPMM_WARP + threadIdx.x % SPMM_WARP;
        if (there && ((p + 1) * SPMM_WARP <= source::ALL || i < source::ALL))
            copy_once(to + p * SPMM_WARP * 16, elements.from[p]);
        elements.from[p] += i < source::COLUMNS ? source::PLACES * 4 : source::PLACES * static_cast<int>(sizeof(T));
    }
}

/* Load the lane's part of a row, if `column` is valid; otherwise zeros. */
template <typename T, bool ALIGNED>
static __device__ __forceinline__ void ask_for_pack(uint32_t to, const T *from, int column, int valid)
{
    if (ALIGNED) {
        copy_row(to, from, valid > 0 ? column : -1);
    } else {
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++) copy_number_to(to + v * sizeof(T), from + v, column >= 0 && v < valid);
    }
}

template <typename T, int G, bool ALIGNED>
static __device__ __forceinline__ void load_rows_async(uint32_t elements, uint32_t to, lane_columns mine)
{
    int32_t columns[SPMM_STAGE];
    read_shared(columns, elements);
#pragma unroll
    for (int i = 0; i < SPMM_STAGE; i++) {
        const T *from = reinterpret_cast<const T *>(mine.x + static_cast<int64_t>(columns[i]) * mine.row_bytes);
        ask_for_pack<T, ALIGNED>(to + i * sizeof(pack<T>) * SPMM_WARP, from, columns[i], mine.valid);
    }
}

/* ---- accumulation ---- */

/* Add the stage's elements to `sum`; where a slice ends, its sums overwrite the last row of x in shared memory. */
template <typename T, bool ENDS>
static __device__ __forceinline__ void add_elements(const T (&values)[SPMM_STAGE], uint32_t rows, pack<T> &sum,
                                                    unsigned ends)
{
#pragma unroll
    for (int i = 0; i < SPMM_STAGE; i++) {
        const uint32_t place = rows + i * sizeof(pack<T>) * SPMM_WARP;
        pack<T> row;
        read_shared(row.at, place);
#pragma unroll
        for (int v = 0; v < pack<T>::V; v++) sum.at[v] += values[i] * row.at[v];
        if (ENDS && (ends >> i & 1) != 0) {
            write_16(place, sum.at);
            sum = {};
        }
    }
}

#endif
