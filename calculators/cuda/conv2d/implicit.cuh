/* SPDX-License-Identifier: MIT */
/* What the implicit GEMM kernels share: the tile of a block, tables for the gather, and where results are stored. See
 * conv2d/implicit.h for the GEMM. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_IMPLICIT_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_IMPLICIT_CUH

#include "calculators/cuda/conv2d/implicit.h"
#include "calculators/cuda/kernels.cuh"

/* A pixel: the offset of its window's corner in the image, and the rows and columns of the window that are outside: bit
 * i for row i of the phase's taps, bit (rows + j) for column j, and always bit 31. */
struct __align__(16) implicit_pixel
{
    int64_t offset;
    unsigned outside;
};

/* A tap of a channel: what it adds to a pixel's offset, and its two bits; bit 31 for one that does not exist. It reads
 * inside the image where it has no bit in common with the pixel. */
struct __align__(8) implicit_tap
{
    int offset;
    unsigned bits;
};

enum : unsigned { IMPLICIT_NOWHERE = 1u << 31 };

/* The taps of a phase along one axis: `count` of them, at shifts first, first + spacing, ...; `before` taps belong to
 * earlier phases. `pixels` pixels are in the phase. */
struct implicit_span {
    int count, first, spacing, before, pixels;
};

/* An index as digits in mixed radix, which is advanced without divisions. */
struct implicit_digits {
    int high, middle, low;
};

static __device__ __forceinline__ implicit_digits implicit_split(int number, int middle, int low)
{
    return {number / low / middle, number / low % middle, number % low};
}

static __device__ __forceinline__ void implicit_advance(implicit_digits &at, const implicit_digits &step, int middle,
                                                        int low)
{
    at.low += step.low;
    int carry = at.low >= low;
    at.low -= carry ? low : 0;
    at.middle += step.middle + carry;
    carry = at.middle >= middle;
    at.middle -= carry ? middle : 0;
    at.high += step.high + carry;
}

/* Pixel i of a phase uses tap r, at an integer shift, where (phase + padding - r dilation) is a multiple of the stride:
 * these are the first such tap and every (stride / gcd)-th after it. */
static __device__ __noinline__ implicit_span implicit_span_of_phase(const cuda_implicit &p, int axis, int phase)
{
    implicit_span span;
    int stride = p.stride[axis], between = stride / p.divisor[axis], before = 0;
#pragma unroll 1
    for (int other = 0; other <= phase; other++) {
        int reach = other + p.padding[axis], tap = 0, count = 0;
        if (reach % p.divisor[axis] == 0) {
            tap = static_cast<int>(static_cast<int64_t>(reach / p.divisor[axis]) * p.inverse[axis] % between);
            count = tap < p.taps[axis] ? (p.taps[axis] - tap - 1) / between + 1 : 0;
        }
        span.before = before;
        span.count = count;
        span.first = count > 0 ? (reach - tap * p.dilation[axis]) / stride : 0;
        before += count;
    }
    span.spacing = -(p.dilation[axis] / p.divisor[axis]);
    span.pixels = phase < p.extent[axis] ? (p.extent[axis] - phase - 1) / stride + 1 : 0;
    return span;
}

static __device__ __forceinline__ implicit_span implicit_span_of(const cuda_implicit &p, int axis, int phase)
{
    if (p.transposed) return implicit_span_of_phase(p, axis, phase);
    return {p.taps[axis], -p.padding[axis], p.dilation[axis], 0, p.extent[axis]};
}

/* The share of the problem that a block computes. */
template <typename T> struct implicit_block {
    const T *a, *source;
    int64_t a_row;
    implicit_span span[2];
    int phase[2];
    int group, split, row, column; /* row, column: the first of the tile */
    int columns, depth;            /* of this phase */
    int first, last;               /* k-steps of `per_step` elements each */

    __device__ implicit_block(const cuda_implicit &p, int tile_rows, int tile_columns, int per_step)
    {
        unsigned block = blockIdx.x;
        row = static_cast<int>(block % p.row_tiles) * tile_rows;
        block /= p.row_tiles;
        column = static_cast<int>(block % p.column_tiles) * tile_columns;
        block /= p.column_tiles;
        split = static_cast<int>(block % p.splits);
        block /= p.splits;
        phase[1] = static_cast<int>(block % p.phases[1]);
        block /= p.phases[1];
        phase[0] = static_cast<int>(block % p.phases[0]);
        group = static_cast<int>(block / p.phases[0]);
        for (int axis = 0; axis < 2; axis++) span[axis] = implicit_span_of(p, axis, phase[axis]);
        a = static_cast<const T *>(p.a) + group * p.a_group;
        source = static_cast<const T *>(p.source) + group * p.source_group;
        a_row = p.a_row;
        columns = p.columns;
        depth = p.depth;
        if (p.transposed) {
            int channels = p.depth / (p.taps[0] * p.taps[1]); /* of dy in a group */
            columns = p.columns / (p.extent[0] * p.extent[1]) * span[0].pixels * span[1].pixels;
            depth = channels * span[0].count * span[1].count;
            a +=
                static_cast<int64_t>(p.rows) * channels * (span[0].before * p.taps[1] + span[0].count * span[1].before);
            a_row = depth;
        }
        int steps = (depth + per_step - 1) / per_step, share = steps / p.splits, rest = steps % p.splits;
        first = share * split + (split < rest ? split : rest);
        last = first + share + (split < rest);
    }

    /* Pixel e, linearised over images, rows and columns of the phase. */
    __device__ implicit_pixel pixel(const cuda_implicit &p, const implicit_digits &e) const
    {
        int top = e.middle * (p.transposed ? 1 : p.stride[0]), left = e.low * (p.transposed ? 1 : p.stride[1]);
        unsigned outside = IMPLICIT_NOWHERE, bit = 1;
        int place = top + span[0].first;
#pragma unroll 1
        for (int i = 0; i < span[0].count; i++, bit <<= 1, place += span[0].spacing)
            outside |= static_cast<unsigned>(place) < static_cast<unsigned>(p.source_height) ? 0 : bit;
        place = left + span[1].first;
#pragma unroll 1
        for (int i = 0; i < span[1].count; i++, bit <<= 1, place += span[1].spacing)
            outside |= static_cast<unsigned>(place) < static_cast<unsigned>(p.source_width) ? 0 : bit;
        return {e.high * p.source_image + static_cast<int64_t>(top) * p.source_width + left, outside};
    }

    /* Tap e, linearised over channels and the phase's taps. */
    __device__ implicit_tap tap(const cuda_implicit &p, const implicit_digits &e) const
    {
        int down = span[0].first + e.middle * span[0].spacing, right = span[1].first + e.low * span[1].spacing;
        return {static_cast<int>(e.high * p.source_plane) + down * p.source_width + right,
                1u << e.middle | 1u << (span[0].count + e.low)};
    }

    /* Radices of pixel and tap indices. */
    __device__ int pixel_radix(int axis) const
    {
        return span[axis].pixels > 0 ? span[axis].pixels : 1;
    }
    __device__ int tap_radix(int axis) const
    {
        return span[axis].count > 0 ? span[axis].count : 1;
    }

    /* Offset of the tile's column j in the result (row * result_row is added to it); -1: outside. */
    __device__ int64_t result_offset(const cuda_implicit &p, int j) const
    {
        if (column + j >= columns) return -1;
        int64_t at = split * p.result_count + group * p.result_group;
        if (p.weights) return at + column + j;
        implicit_digits e = implicit_split(column + j, pixel_radix(0), pixel_radix(1));
        int64_t down = static_cast<int64_t>(e.middle) * p.phases[0] + phase[0], right = e.low * p.phases[1] + phase[1];
        return at + e.high * p.result_image + down * p.result_width + right;
    }
};

/* K positions are taps where columns are pixels, and pixels where columns are taps (backward weights). */
template <bool WEIGHTS> struct implicit_kinds {
    using position = implicit_tap;
    using column = implicit_pixel;
};
template <> struct implicit_kinds<true> {
    using position = implicit_pixel;
    using column = implicit_tap;
};

template <typename T>
static __device__ __forceinline__ void implicit_set(implicit_tap *to, const cuda_implicit &p,
                                                    const implicit_block<T> &block, const implicit_digits &at,
                                                    bool exists)
{
    *to = exists ? block.tap(p, at) : implicit_tap{0, IMPLICIT_NOWHERE};
}

template <typename T>
static __device__ __forceinline__ void implicit_set(implicit_pixel *to, const cuda_implicit &p,
                                                    const implicit_block<T> &block, const implicit_digits &at,
                                                    bool exists)
{
    *to = exists ? block.pixel(p, at) : implicit_pixel{0, ~0u};
}

/* Table of the K positions of a k-step and, in backward weights, of their offsets in a. The first COUNT threads of a
 * block have one position each and advance it from k-step to k-step. */
template <typename T, int COUNT, bool WEIGHTS> struct implicit_positions {
    implicit_digits at, step;
    int middle, low, position;

    __device__ implicit_positions(const implicit_block<T> &block)
    {
        middle = WEIGHTS ? block.pixel_radix(0) : block.tap_radix(0);
        low = WEIGHTS ? block.pixel_radix(1) : block.tap_radix(1);
        position = block.first * COUNT + static_cast<int>(threadIdx.x);
        at = implicit_split(position, middle, low);
        step = implicit_split(COUNT, middle, low);
    }

    /* Write the entries of the next k-step and advance. */
    __device__ __forceinline__ void write(const cuda_implicit &p, const implicit_block<T> &block,
                                          typename implicit_kinds<WEIGHTS>::position *entries, int64_t *a_offset)
    {
        if (threadIdx.x >= COUNT) return;
        implicit_set(&entries[threadIdx.x], p, block, at, position < block.depth);
        if (WEIGHTS) a_offset[threadIdx.x] = at.high * p.a_image + static_cast<int64_t>(at.middle) * low + at.low;
        position += COUNT;
        implicit_advance(at, step, middle, low);
    }
};

/* Column j of the tile: a pixel, or, in backward weights, a tap. */
template <typename T>
static __device__ void implicit_column(implicit_pixel *to, const cuda_implicit &p, const implicit_block<T> &block,
                                       int j)
{
    implicit_set(to, p, block, implicit_split(block.column + j, block.pixel_radix(0), block.pixel_radix(1)),
                 block.column + j < block.columns);
}

template <typename T>
static __device__ void implicit_column(implicit_tap *to, const cuda_implicit &p, const implicit_block<T> &block, int j)
{
    implicit_set(to, p, block, implicit_split(block.column + j, block.tap_radix(0), block.tap_radix(1)),
                 block.column + j < block.columns);
}

/* Store a result, after the epilogue, or a partial sum. */
template <typename T>
static __device__ __forceinline__ void implicit_store(const cuda_implicit &p, int group, int row, int64_t at, T value)
{
    if (p.splits == 1) {
        if (p.bias != nullptr) value += static_cast<const T *>(p.bias)[group * p.rows + row];
        if (p.residual != nullptr) value += static_cast<const T *>(p.residual)[at];
        value = activate_often(p.activation, value);
    }
    static_cast<T *>(p.result)[at] = value;
}

/* Load four consecutive elements from a 16-byte aligned address. */
static __device__ __forceinline__ void read_four(float *to, const float *from)
{
    float4 four = *reinterpret_cast<const float4 *>(from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

static __device__ __forceinline__ void read_four(double *to, const double *from)
{
    double2 first = *reinterpret_cast<const double2 *>(from), second = *reinterpret_cast<const double2 *>(from + 2);
    to[0] = first.x;
    to[1] = first.y;
    to[2] = second.x;
    to[3] = second.y;
}

#endif
