/* SPDX-License-Identifier: MIT */
/* Attention: tiles of its operands in shared memory, row by row as in global memory, loaded by cp.async; the mma fragments that are loaded
 * from them; and the results. Values in 16-bit storage are used unchanged, loaded by ldmatrix, transposed for v; float32 is rounded when a fragment
 * is loaded. */
#ifndef SDLF_CALCULATORS_CUDA_ATTENTION_BLOCKS_CUH
#define SDLF_CALCULATORS_CUDA_ATTENTION_BLOCKS_CUH

#include "calculators/cuda/attention/attention.cuh"

/* Elements per row of shared memory, padded by 16 bytes, so that the rows that are read together are in different banks. */
template <typename T, int D> constexpr int block_line = D + 16 / static_cast<int>(sizeof(T));

/* Words of a reduction over D elements. */
template <sdlf_math MATH, int D> constexpr int reduction_words = is_half<MATH> ? D / 2 : D;

/* Load ATTENTION_BLOCK rows from `first` on, D columns; zeros outside. Completed by cp_async_wait. */
template <typename T, int D>
static __device__ __forceinline__ void copy_block(T *to, const attention_rows &x, int first)
{
    constexpr int PIECE = 16 / static_cast<int>(sizeof(T)), PIECES = D / PIECE, DOWN = ATTENTION_THREADS / PIECES;
    constexpr int TURNS = ATTENTION_BLOCK * PIECES / ATTENTION_THREADS;
    const T *data = static_cast<const T *>(x.data);
    const int row = static_cast<int>(threadIdx.x) / PIECES, column = static_cast<int>(threadIdx.x) % PIECES * PIECE;
    T *line = to + row * block_line<T, D> + column;
    const T *from = data + (first + row) * x.stride + column;
    const int rows = column < x.columns ? x.rows - first - row : 0;
    if (x.aligned) {
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            const bool valid = i * DOWN < rows;
            copy_async(line + i * DOWN * block_line<T, D>, valid ? from + i * DOWN * x.stride : data, valid);
        }
        return;
    }
    for (int i = 0; i < TURNS; i++) {
#pragma unroll
        for (int e = 0; e < PIECE; e++) {
            const bool valid = i * DOWN < rows && column + e < x.columns;
            line[i * DOWN * block_line<T, D> + e] = valid ? from[i * DOWN * x.stride + e] : static_cast<T>(0.0f);
        }
    }
}

/* A word of a fragment from float32: two elements, `step` apart, or one. */
template <sdlf_math MATH> static __device__ __forceinline__ uint32_t read_word(const float *from, int step)
{
    if constexpr (is_half<MATH>) return pack_two<MATH>(from[0], from[step]);
    return pack_one<MATH>(from[0]);
}

/* Load a warp's 16 rows of q as A fragments. */
template <sdlf_math MATH, int D, typename T>
static __device__ __forceinline__ void load_rows(uint32_t (&q)[reduction_words<MATH, D> / 8][4], const T *rows)
{
    constexpr int LINE = block_line<T, D>, OF_WORD = is_half<MATH> ? 2 : 1;
    const int lane = static_cast<int>(threadIdx.x) % WARP;
#pragma unroll
    for (int k = 0; k < reduction_words<MATH, D> / 8; k++) {
        if constexpr (sizeof(T) == 2) {
            load_matrices(q[k], rows + lane % 16 * LINE + lane / 16 * 8 + k * 16);
        } else {
            const float *from = rows + lane / 4 * LINE + (8 * k + lane % 4) * OF_WORD;
            q[k][0] = read_word<MATH>(from, 1);
            q[k][1] = read_word<MATH>(from + 8 * LINE, 1);
            q[k][2] = read_word<MATH>(from + 4 * OF_WORD, 1);
            q[k][3] = read_word<MATH>(from + 8 * LINE + 4 * OF_WORD, 1);
        }
    }
}

/* c (16,64) = q k^T for the first `tiles` tiles of 8 keys, 0 for the others. */
template <sdlf_math MATH, int D, typename T>
static __device__ __forceinline__ void
multiply_keys(float (&c)[TILES][4], const uint32_t (&q)[reduction_words<MATH, D> / 8][4], const T *k, int tiles)
{
    constexpr int LINE = block_line<T, D>, OF_WORD = is_half<MATH> ? 2 : 1;
    const int lane = static_cast<int>(threadIdx.x) % WARP;
#pragma unroll
    for (int n = 0; n < TILES; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
#pragma unroll
    for (int n = 0; n < TILES; n += 2) {
        if (n >= tiles) continue;
#pragma unroll
        for (int step = 0; step < reduction_words<MATH, D> / 8; step++) {
            uint32_t right[4];
            if constexpr (sizeof(T) == 2) {
                load_matrices(right, k + (n * TILE + lane / 16 * 8 + lane % 8) * LINE + lane / 8 % 2 * 8 + step * 16);
            } else {
                const float *from = k + (n * TILE + lane / 4) * LINE + (8 * step + lane % 4) * OF_WORD;
                right[0] = read_word<MATH>(from, 1);
                right[1] = read_word<MATH>(from + 4 * OF_WORD, 1);
                right[2] = read_word<MATH>(from + TILE * LINE, 1);
                right[3] = read_word<MATH>(from + TILE * LINE + 4 * OF_WORD, 1);
            }
            multiply<MATH>(c[n], q[step], {right[0], right[1]});
            multiply<MATH>(c[n + 1], q[step], {right[2], right[3]});
        }
    }
}

/* c (16,D) += p v for the first `tiles` tiles of 8 keys; p is the output of multiply_keys. In tf32, columns 2t and 2t + 1 of p take the places t and
 * t + 4 of the mma's k order, and so do rows of v. */
template <sdlf_math MATH, int D, typename T>
static __device__ __forceinline__ void multiply_values(float (&c)[D / TILE][4], const float (&p)[TILES][4], const T *v,
                                                       int tiles)
{
    constexpr int LINE = block_line<T, D>, STEP = is_half<MATH> ? 2 : 1;
    const int lane = static_cast<int>(threadIdx.x) % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int k = 0; k < TILES; k += STEP) {
        if (k >= tiles) continue;
        uint32_t left[4];
        if constexpr (is_half<MATH>) {
            left[0] = pack_two<MATH>(p[k][0], p[k][1]), left[1] = pack_two<MATH>(p[k][2], p[k][3]);
            left[2] = pack_two<MATH>(p[k + 1][0], p[k + 1][1]), left[3] = pack_two<MATH>(p[k + 1][2], p[k + 1][3]);
        } else {
            left[0] = pack_one<MATH>(p[k][0]), left[1] = pack_one<MATH>(p[k][2]);
            left[2] = pack_one<MATH>(p[k][1]), left[3] = pack_one<MATH>(p[k][3]);
        }
#pragma unroll
        for (int n = 0; n < D / TILE; n += 2) {
            uint32_t right[4];
            if constexpr (sizeof(T) == 2) {
                load_transposed(right, v + (k * TILE + lane % 16) * LINE + lane / 16 * 8 + n * TILE);
            } else {
                const float *from = v + (k * TILE + 2 * t) * LINE + n * TILE + g;
                const int rest = is_half<MATH> ? TILE * LINE : LINE; /* rows 2t + 8 and 2t + 9; 2t + 1 */
                right[0] = read_word<MATH>(from, LINE);
                right[1] = read_word<MATH>(from + rest, LINE);
                right[2] = read_word<MATH>(from + TILE, LINE);
                right[3] = read_word<MATH>(from + TILE + rest, LINE);
            }
            multiply<MATH>(c[n], left, {right[0], right[1]});
            multiply<MATH>(c[n + 1], left, {right[2], right[3]});
        }
    }
}

/* ---- rows ---- */

/* Reductions over the four lanes that share a row. */
static __device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

static __device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Store y for a warp's rows from `first` on, and their max and sum. */
template <typename T, int D>
static __device__ __forceinline__ void write_results(const attention_arguments &p, const attention_head &at, int first,
                                                     const float (&y)[D / TILE][4], const float (&largest)[2],
                                                     const float (&sum)[2])
{
    int lane = static_cast<int>(threadIdx.x) % WARP;
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float all = quad_sum(sum[half]);
        int query = first + lane / 4 + 8 * half;
        factor[half] = 1 / all;
        if (lane % 4 != 0 || query >= p.queries) continue;
        int64_t number = (static_cast<int64_t>(at.sample) * p.heads + at.head) * p.queries + query;
        if (p.max != nullptr) p.max[number] = largest[half];
        if (p.sum != nullptr) p.sum[number] = all > 0 ? all : NAN;
    }
    store_rows<T, D>(head_rows<T>(p.y, at.sample, at.head), first, y, factor);
}

#endif
