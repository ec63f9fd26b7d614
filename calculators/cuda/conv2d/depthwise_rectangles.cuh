/* SPDX-License-Identifier: MIT */
/* Depthwise convolution by rectangles of pixels: 3x3 and 5x5 windows with strides 1 and 2, forward, and the input gradient with
 * stride 1, which is a convolution with each filter flipped.
 *
 * A thread computes WIDE x ROWS pixels of a plane; neighbouring lanes have neighbouring columns q. It issues the loads of all that its
 * windows cover, lines of WIDE or 2 WIDE contiguous elements and a halo around them, before it computes; what neighbouring lanes load,
 * too, comes from the first-level cache. WIDE > 1 needs a left padding of half a window, which preserves the image's width, and lines
 * whose lengths are multiples of WIDE. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_RECTANGLES_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_RECTANGLES_CUH

#include "calculators/cuda/conv2d/clip.cuh"
#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/vectorized.cuh"

enum { RECTANGLE_THREADS = 128, RECTANGLE_ROWS = 4 };

/* Operands and activation. */
template <typename T> struct depthwise_operands {
    const T *x, *w, *bias, *residual;
    T *y;
    sdlf_activation activation;
};

/* What a rectangle reads of a line of the image: PAD elements, STEP vectors of WIDE, and the rest. */
template <typename T, int SIDE, int STEP, int WIDE> struct rectangle_line {
    static constexpr int COLUMNS = (WIDE - 1) * STEP + SIDE, PAD = SIDE / 2, INNER = STEP * WIDE;
    T at[COLUMNS];

    /* Load from column `left` on; 0 outside. WIDE > 1: left + PAD is a multiple of INNER, and INNER elements from there are inside. */
    __device__ __forceinline__ void read(const T *line, int left, int width)
    {
        if constexpr (WIDE == 1) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                at[c] = T(0);
                if (static_cast<unsigned>(left + c) < static_cast<unsigned>(width)) at[c] = __ldg(line + left + c);
            }
        } else {
            line += left;
#pragma unroll
            for (int i = 0; i < STEP; i++) {
                vec<T, WIDE> inner = read_vec<WIDE>(line + PAD + i * WIDE, 0);
#pragma unroll
                for (int v = 0; v < WIDE; v++) at[PAD + i * WIDE + v] = inner.at[v];
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                if (c >= PAD && c < PAD + INNER) continue;
                at[c] = T(0);
                if (c < PAD ? left >= 0 : left + c < width) at[c] = __ldg(line + c);
            }
        }
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) at[c] = T(0);
    }
};

/* The rectangles of all planes; elements of x and y are counted in 31 bits. */
struct rectangle_grid {
    divider<int32_t> across, down, filters,
        group_filters; /* rectangles in a line; lines of rectangles in a plane; filters, and those of a channel */
    unsigned count;
    int channels, height, width, out_height, out_width, padding[2];
};

/* FLIPPED: filters are flipped. CLIPS: the activation is SDLF_CLIP (clip.cuh). Rectangle e is of plane e / (rectangles
 * of a plane); those of a line are consecutive. */
template <typename T, int SIDE, int STEP, int WIDE, int ROWS, bool FLIPPED, bool CLIPS>
static __global__ void __launch_bounds__(RECTANGLE_THREADS)
    depthwise_rectangles(const __grid_constant__ depthwise_operands<T> o, const __grid_constant__ rectangle_grid g)
{
    using line = rectangle_line<T, SIDE, STEP, WIDE>;
    const unsigned e = blockIdx.x * RECTANGLE_THREADS + threadIdx.x;
    if (e >= g.count) return;
    int column, row, k;
    const int plane = divide(divide(static_cast<int>(e), g.across, column), g.down, row), p = row * ROWS,
              q = column * WIDE, n = divide(plane, g.filters, k), c = g.group_filters.quotient(k),
              top = p * STEP - g.padding[0], left = q * STEP - g.padding[1];
    const T *x = o.x + (n * g.channels + c) * g.height * g.width;
    const T *w = o.w + k * (SIDE * SIDE);
    wait_and_launch_dependent_grids();

    constexpr int LINES = (ROWS - 1) * STEP + SIDE;
    line value[LINES];
    T own[SIDE * SIDE];
#pragma unroll
    for (int r = 0; r < LINES; r++) {
        if (static_cast<unsigned>(top + r) < static_cast<unsigned>(g.height))
            value[r].read(x + (top + r) * g.width, left, g.width);
        else
            value[r].clear();
    }
#pragma unroll
    for (int i = 0; i < SIDE * SIDE; i++) own[i] = __ldg(w + (FLIPPED ? SIDE * SIDE - 1 - i : i));
    T shift = o.bias != nullptr ? __ldg(o.bias + k) : T(0);
    int to = (plane * g.out_height + p) * g.out_width + q;
#pragma unroll
    for (int i = 0; i < ROWS; i++, to += g.out_width) {
        vec<T, WIDE> sum, rest_of = {};
        if (p + i >= g.out_height) break;
        if (o.residual != nullptr) rest_of = read_vec<WIDE>(o.residual + to, 0);
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            T all = shift;
#pragma unroll
            for (int r = 0; r < SIDE; r++) {
#pragma unroll
                for (int s = 0; s < SIDE; s++) all += value[i * STEP + r].at[j * STEP + s] * own[r * SIDE + s];
            }
            sum.at[j] = activate_known<CLIPS>(o.activation, all + rest_of.at[j]);
        }
        write_vec<WIDE>(o.y + to, 0, sum);
    }
}

template <typename T, int SIDE, int STEP, bool FLIPPED, int WIDE>
static void launch_rectangles(const cuda_calculator *calculator, const depthwise_operands<T> &o, const cuda_conv2d &g)
{
    int64_t across = (g.out_width + WIDE - 1) / WIDE, down = (g.out_height + RECTANGLE_ROWS - 1) / RECTANGLE_ROWS;
    int64_t count = g.batch * g.filters * down * across;
    rectangle_grid grid = {divider<int32_t>(across), divider<int32_t>(down), divider<int32_t>(g.filters),
                           divider<int32_t>(g.group_filters)};
    grid.count = static_cast<unsigned>(count);
    grid.channels = static_cast<int>(g.channels);
    grid.height = static_cast<int>(g.height);
    grid.width = static_cast<int>(g.width);
    grid.out_height = static_cast<int>(g.out_height);
    grid.out_width = static_cast<int>(g.out_width);
    for (int axis = 0; axis < 2; axis++) grid.padding[axis] = g.window.padding_before[axis];
    depthwise_operands<T> clipped = o;
    auto kernel = depthwise_rectangles<T, SIDE, STEP, WIDE, RECTANGLE_ROWS, FLIPPED, true>;
    if (!make_clip(&clipped.activation))
        kernel = depthwise_rectangles<T, SIDE, STEP, WIDE, RECTANGLE_ROWS, false, false>;
    launch_overlapped(calculator, kernel,
                      dim3(static_cast<unsigned>((count + RECTANGLE_THREADS - 1) / RECTANGLE_THREADS)),
                      dim3(RECTANGLE_THREADS), 0, clipped, grid);
}

/* True if alignment and padding allow rectangles that are so wide. */
template <typename T> static bool is_wide(const depthwise_operands<T> &o, const cuda_conv2d &g, int wide)
{
    uintptr_t places =
        reinterpret_cast<uintptr_t>(o.x) | reinterpret_cast<uintptr_t>(o.y) | reinterpret_cast<uintptr_t>(o.residual);
    return places % (static_cast<size_t>(wide) * sizeof(T)) == 0 && g.width % wide == 0 && g.out_width % wide == 0 &&
           g.window.padding_before[1] == g.window.size[1] / 2 && g.out_width * g.window.stride[1] <= g.width;
}

/* Wide rectangles are used while enough threads remain to hide memory latency; limits measured on an H200. */
template <typename T, int SIDE, int STEP, bool FLIPPED>
static void launch_suited(const cuda_calculator *calculator, const depthwise_operands<T> &o, const cuda_conv2d &g)
{
    int64_t pixels = g.batch * g.filters * g.out_height * g.out_width / calculator->multiprocessors;
    if constexpr (STEP == 1 && sizeof(T) == sizeof(float)) {
        if (pixels > 1 << 14 && is_wide(o, g, 4)) {
            launch_rectangles<T, SIDE, STEP, FLIPPED, 4>(calculator, o, g);
            return;
        }
    }
    if ((STEP == 1 || pixels > 1 << 12) && is_wide(o, g, 2))
        launch_rectangles<T, SIDE, STEP, FLIPPED, 2>(calculator, o, g);
    else
        launch_rectangles<T, SIDE, STEP, FLIPPED, 1>(calculator, o, g);
}

#endif
