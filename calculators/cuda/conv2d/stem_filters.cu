/* SPDX-License-Identifier: MIT */
/* Stem convolutions with few filters: memory is the only bound.
 *
 * A thread computes a strip of STRIP pixels down a column of one filter, lanes are neighbours in q; a row of pixels is used for all windows
 * of the strip that contain it. Where there are few pixels the strip is one, and all loads of a thread are in flight at once. Loads x once
 * for every filter (from the L2 cache after the first), stores y once. */
#include "calculators/cuda/conv2d/stem.cuh"
#include "calculators/cuda/launch.cuh"

/* Add one channel's window to each pixel of a strip. CHECKED: parts of it may be outside the image. */
template <typename T, int SIDE, int STEP, int STRIP, bool CHECKED>
static __device__ __forceinline__ void add_channel(T *sum, const T *image, const T *w, int top, int left, int height,
                                                   int width)
{
    constexpr int ROWS = (STRIP - 1) * STEP + SIDE;
    T own[SIDE * SIDE];
#pragma unroll
    for (int i = 0; i < SIDE * SIDE; i++) own[i] = __ldg(w + i);
    const T *from = image + static_cast<int64_t>(top) * width + left;
#pragma unroll
    for (int row = 0; row < ROWS; row++, from += width) {
        if (STRIP > 1 && STEP > SIDE && row % STEP >= SIDE) continue;
        T value[SIDE];
#pragma unroll
        for (int c = 0; c < SIDE; c++) {
            bool inside = !CHECKED || (static_cast<unsigned>(top + row) < static_cast<unsigned>(height) &&
                                       static_cast<unsigned>(left + c) < static_cast<unsigned>(width));
            value[c] = inside ? __ldg(from + c) : T(0);
        }
#pragma unroll
        for (int i = 0; i < STRIP; i++) {
            int r = row - i * STEP;
            if (r < 0 || r >= SIDE) continue;
#pragma unroll
            for (int c = 0; c < SIDE; c++) sum[i] += value[c] * own[r * SIDE + c];
        }
    }
}

enum { STRIPS = 8 }; /* of a block, one below the other */

template <typename T, int SIDE, int STEP, int STRIP>
static __global__ void __launch_bounds__(WARP *STRIPS) stem_filters(const __grid_constant__ stem_problem<T> p)
{
    const int column = static_cast<int>(blockIdx.x % p.blocks_across) * WARP + static_cast<int>(threadIdx.x);
    const int row = (static_cast<int>(blockIdx.x / p.blocks_across) * STRIPS + static_cast<int>(threadIdx.y)) * STRIP;
    const int filter = static_cast<int>(blockIdx.y), n = static_cast<int>(blockIdx.z);
    wait_and_launch_dependent_grids();
    if (column >= p.out_width || row >= p.out_height) return;
    const int top = row * STEP - p.padding[0], left = column * STEP - p.padding[1];
    const int64_t plane = static_cast<int64_t>(p.height) * p.width;
    const T *image = p.x + static_cast<int64_t>(n) * p.channels * plane;
    const T *w = p.w + static_cast<int64_t>(filter) * p.channels * SIDE * SIDE;
    const bool inner =
        STRIP > 1 && top >= 0 && left >= 0 && top + (STRIP - 1) * STEP + SIDE <= p.height && left + SIDE <= p.width;
    T sum[STRIP] = {};
    if (inner) {
#pragma unroll 1
        for (int c = 0; c < p.channels; c++, image += plane, w += SIDE * SIDE)
            add_channel<T, SIDE, STEP, STRIP, false>(sum, image, w, top, left, p.height, p.width);
    } else {
#pragma unroll(STRIP == 1 && SIDE == 3 ? 3 : 1)
        for (int c = 0; c < p.channels; c++)
            add_channel<T, SIDE, STEP, STRIP, true>(sum, image + c * plane, w + c * SIDE * SIDE, top, left, p.height,
                                                    p.width);
    }
    const T bias = p.bias != nullptr ? p.bias[filter] : T(0);
    int64_t to = ((static_cast<int64_t>(n) * p.filters + filter) * p.out_height + row) * p.out_width + column;
#pragma unroll
    for (int i = 0; i < STRIP; i++, to += p.out_width) {
        if (row + i >= p.out_height) break;
        T value = sum[i] + bias;
        if (p.residual != nullptr) value += p.residual[to];
        p.y[to] = activate_often(p.activation, value);
    }
}

/* ---- launching ---- */

template <typename T, int SIDE, int STEP>
static sdlf_status launch(const cuda_calculator *calculator, stem_problem<T> p, const cuda_conv2d &g)
{
    bool strips = g.batch * g.filters * g.out_height * g.out_width > calculator->multiprocessors * INT64_C(2048);
    int strip = strips ? 4 : 1;
    p.blocks_across = (p.out_width + WARP - 1) / WARP;
    p.blocks_down = (p.out_height + STRIPS * strip - 1) / (STRIPS * strip);
    dim3 blocks(static_cast<unsigned>(p.blocks_across) * static_cast<unsigned>(p.blocks_down),
                static_cast<unsigned>(p.filters), static_cast<unsigned>(g.batch));
    launch_overlapped(calculator, strips ? stem_filters<T, SIDE, STEP, 4> : stem_filters<T, SIDE, STEP, 1>, blocks,
                      dim3(WARP, STRIPS), 0, p);
    return cuda_check_launch("conv2d, few filters");
}

template <typename T> static sdlf_status run(const cuda_calculator *calculator, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    stem_problem<T> p = stem_problem_of<T>(op, g);
    int side = g.window.size[0], stride = g.window.stride[0];
    if (side == 3)
        return stride == 1   ? launch<T, 3, 1>(calculator, p, g)
               : stride == 2 ? launch<T, 3, 2>(calculator, p, g)
                             : launch<T, 3, 3>(calculator, p, g);
    return stride == 1   ? launch<T, 5, 1>(calculator, p, g)
           : stride == 2 ? launch<T, 5, 2>(calculator, p, g)
                         : launch<T, 5, 3>(calculator, p, g);
}

extern "C" sdlf_status conv2d_stem_filters_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    return op->out[0].dtype == SDLF_FLOAT32 ? run<float>(calculator, op) : run<double>(calculator, op);
}
