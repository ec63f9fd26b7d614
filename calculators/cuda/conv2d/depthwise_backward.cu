/* SPDX-License-Identifier: MIT */
/* The gradients of a depthwise convolution, by strips of 4 pixels down a column (see depthwise_nchw.cuh). Bytes moved, in float32:
 *
 *   backward input   4 (NKPQ + NCHW); by rectangles (depthwise_rectangles.cuh) with stride 1 and one filter a channel
 *   backward weights 4 (NCHW + NKPQ): a block sums over its share of a filter's pixels, in registers, then in shared memory;
 *                    partial sums go to the workspace and are added in order */
#include "calculators/cuda/conv2d/depthwise_nchw.cuh"
#include "calculators/cuda/conv2d/depthwise_rectangles.cuh"
#include "calculators/cuda/launch.cuh"

/* Stride 1: dx is dy convolved with the flipped window; a row of dy is used for every row of the strip. */
template <typename T, int SIDE>
static __device__ __forceinline__ void gather_strip(T *sum, const T *gradient, const T *own, int top, int left,
                                                    const cuda_conv2d &g)
{
#pragma unroll
    for (int row = 0; row < STRIP - 1 + SIDE; row++) {
        T value[SIDE];
#pragma unroll
        for (int c = 0; c < SIDE; c++)
            value[c] = at_or_zero(gradient, top - (SIDE - 1) + row, left - c, g.out_height, g.out_width);
#pragma unroll
        for (int i = 0; i < STRIP; i++) {
            int r = i + SIDE - 1 - row;
            if (r < 0 || r >= SIDE) continue;
#pragma unroll
            for (int c = 0; c < SIDE; c++) sum[i] += value[c] * own[r * SIDE + c];
        }
    }
}

/* dx[h,w] = sum over the filters of the channel, and over the taps (r,s) that lead to it from a pixel of dy. */
template <typename T, typename WINDOW>
static __global__ void __launch_bounds__(THREADS)
    depthwise_backward_input(const T *dy, const T *w, T *dx, cuda_conv2d g, int64_t count)
{
    const sdlf_window2d &window = g.window;
    int size[2] = {WINDOW::size(window, 0), WINDOW::size(window, 1)};
    unsigned stride[2] = {static_cast<unsigned>(WINDOW::stride(window, 0)),
                          static_cast<unsigned>(WINDOW::stride(window, 1))};
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        strip<> s(static_cast<unsigned>(e), static_cast<unsigned>(g.channels), static_cast<unsigned>(g.height),
                  static_cast<unsigned>(g.width));
        int top = static_cast<int>(s.row) + window.padding_before[0];
        int left = static_cast<int>(s.column) + window.padding_before[1];
        T sum[STRIP] = {};
        for (int64_t k = s.plane * g.group_filters; k < (s.plane + 1) * g.group_filters; k++) {
            const T *gradient = dy + (s.n * g.filters + k) * g.out_height * g.out_width;
            const T *own = w + k * size[0] * size[1];
            if constexpr (WINDOW::STEP == 1) {
                gather_strip<T, WINDOW::SIDE>(sum, gradient, own, top, left, g);
            } else {
#pragma unroll
                for (int c = 0; c < size[1]; c++) {
                    int across = left - c * WINDOW::dilation(window, 1);
                    if (across < 0 || static_cast<unsigned>(across) % stride[1] != 0) continue;
#pragma unroll
                    for (int r = 0; r < size[0]; r++) {
                        T weight = __ldg(own + r * size[1] + c);
#pragma unroll
                        for (int i = 0; i < STRIP; i++) {
                            int down = top + i - r * WINDOW::dilation(window, 0);
                            if (down < 0 || static_cast<unsigned>(down) % stride[0] != 0) continue;
                            sum[i] += weight * at_or_zero(gradient, static_cast<unsigned>(down) / stride[0],
                                                          static_cast<unsigned>(across) / stride[1], g.out_height,
                                                          g.out_width);
                        }
                    }
                }
            }
        }
        int64_t to = ((s.n * g.channels + s.plane) * g.height + s.row) * g.width + s.column;
#pragma unroll
        for (int i = 0; i < STRIP; i++, to += g.width) {
            if (s.row + i < g.height) dx[to] = sum[i];
        }
    }
}

/* The sum over the block, in a fixed order, for thread 0; all threads must call it. */
template <typename T> static __device__ T block_sum(T value)
{
    __shared__ T parts[THREADS / 32];
    for (int gap = 16; gap > 0; gap /= 2) value += __shfl_down_sync(0xffffffffu, value, gap);
    __syncthreads(); /* parts may still be read for the previous sum */
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    T sum = 0;
    for (int i = 0; i < THREADS / 32; i++) sum += parts[i];
    return sum;
}

/* Block (k, part): a partial sum of dw[k], over the strips of rounds part, part + splits, ..., THREADS strips each. */
template <typename T, typename WINDOW>
static __global__ void __launch_bounds__(THREADS)
    depthwise_backward_weights(const T *x, const T *dy, T *parts, cuda_conv2d g, int splits)
{
    const sdlf_window2d &window = g.window;
    int size[2] = {WINDOW::size(window, 0), WINDOW::size(window, 1)};
    int64_t k = blockIdx.x / splits, part = blockIdx.x % splits;
    int64_t strips = g.batch * ((g.out_height + STRIP - 1) / STRIP) * g.out_width;
    T *dw = parts + (part * g.filters + k) * size[0] * size[1];
    if constexpr (WINDOW::SIDE > 0) {
        constexpr int SIDE = WINDOW::SIDE;
        T sum[SIDE * SIDE] = {};
        for (int64_t e = part * THREADS + threadIdx.x; e < strips; e += static_cast<int64_t>(splits) * THREADS) {
            strip<> s(static_cast<unsigned>(e), 1, static_cast<unsigned>(g.out_height),
                      static_cast<unsigned>(g.out_width));
            const T *image = x + (s.n * g.channels + k / g.group_filters) * g.height * g.width;
            const T *gradient = dy + (s.n * g.filters + k) * g.out_height * g.out_width;
            int top = s.row * WINDOW::STEP - window.padding_before[0];
            int left = s.column * WINDOW::STEP - window.padding_before[1];
            T own[STRIP];
#pragma unroll
            for (int i = 0; i < STRIP; i++)
                own[i] = at_or_zero(gradient, s.row + i, s.column, g.out_height, g.out_width);
#pragma unroll
            for (int row = 0; row < (STRIP - 1) * WINDOW::STEP + SIDE; row++) {
                T value[SIDE];
#pragma unroll
                for (int c = 0; c < SIDE; c++) value[c] = at_or_zero(image, top + row, left + c, g.height, g.width);
#pragma unroll
                for (int i = 0; i < STRIP; i++) {
                    int r = row - i * WINDOW::STEP;
                    if (r < 0 || r >= SIDE) continue;
#pragma unroll
                    for (int c = 0; c < SIDE; c++) sum[r * SIDE + c] += value[c] * own[i];
                }
            }
        }
#pragma unroll
        for (int i = 0; i < SIDE * SIDE; i++) {
            T total = block_sum(sum[i]);
            if (threadIdx.x == 0) dw[i] = total;
        }
    } else {
        for (int tap = 0; tap < size[0] * size[1]; tap++) {
            T sum = 0;
            for (int64_t e = part * THREADS + threadIdx.x; e < strips; e += static_cast<int64_t>(splits) * THREADS) {
                strip<> s(static_cast<unsigned>(e), 1, static_cast<unsigned>(g.out_height),
                          static_cast<unsigned>(g.out_width));
                const T *image = x + (s.n * g.channels + k / g.group_filters) * g.height * g.width;
                const T *gradient = dy + (s.n * g.filters + k) * g.out_height * g.out_width;
                int left = s.column * window.stride[1] - window.padding_before[1] + tap % size[1] * window.dilation[1];
#pragma unroll
                for (int i = 0; i < STRIP; i++) {
                    int down =
                        (s.row + i) * window.stride[0] - window.padding_before[0] + tap / size[1] * window.dilation[0];
                    sum += at_or_zero(gradient, s.row + i, s.column, g.out_height, g.out_width) *
                           at_or_zero(image, down, left, g.height, g.width);
                }
            }
            T total = block_sum(sum);
            if (threadIdx.x == 0) dw[tap] = total;
        }
    }
}

/* ---- launching ---- */

/* Number of shares of a filter's pixels: enough blocks to fill the device, with at least a round of strips each. */
static int splits_of(const cuda_calculator *calculator, const cuda_conv2d &g)
{
    int64_t rounds = (g.batch * ((g.out_height + STRIP - 1) / STRIP) * g.out_width + THREADS - 1) / THREADS;
    int64_t wanted = (calculator->multiprocessors * INT64_C(8) + g.filters - 1) / g.filters;
    int64_t splits = rounds < wanted ? rounds : wanted;
    return splits < 1 ? 1 : static_cast<int>(splits);
}

extern "C" int64_t conv2d_depthwise_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (op->kind != SDLF_CONV2D_BACKWARD_WEIGHTS) return 0;
    int splits = splits_of(reinterpret_cast<const cuda_calculator *>(base), cuda_conv2d_geometry(op));
    return splits > 1 ? splits * sdlf_tensor_bytes(&op->out[0]) : 0;
}

/* dx = dy convolved with each filter flipped. */
template <typename T, int SIDE>
static void convolve_flipped(const cuda_calculator *calculator, const sdlf_operation *op, const cuda_conv2d &g)
{
    depthwise_operands<T> o = {data_of<T>(op->in[0]),  data_of<T>(op->in[1]), nullptr, nullptr,
                               data_of<T>(op->out[0]), {SDLF_IDENTITY}};
    cuda_conv2d flipped = g;
    flipped.height = g.out_height;
    flipped.width = g.out_width;
    flipped.out_height = g.height;
    flipped.out_width = g.width;
    for (int axis = 0; axis < 2; axis++) flipped.window.padding_before[axis] = SIDE - 1 - g.window.padding_before[axis];
    launch_suited<T, SIDE, 1, true>(calculator, o, flipped);
}

template <typename T>
static void backward_input(const cuda_calculator *calculator, const sdlf_operation *op, const cuda_conv2d &g)
{
    int64_t count = g.batch * g.channels * ((g.height + STRIP - 1) / STRIP) * g.width;
    with_window(g.window, [&](auto window) {
        using known = decltype(window);
        if constexpr (known::STEP == 1) {
            if (g.group_filters == 1) {
                convolve_flipped<T, known::SIDE>(calculator, op, g);
                return;
            }
        }
        depthwise_backward_input<T, known><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), data_of<T>(op->out[0]), g, count);
    });
}

template <typename T>
static void backward_weights(const cuda_calculator *calculator, const sdlf_operation *op, const cuda_conv2d &g,
                             int splits)
{
    T *parts = splits > 1 ? data_of<T>(op->workspace) : data_of<T>(op->out[0]);
    with_window(g.window, [&](auto window) {
        unsigned blocks = static_cast<unsigned>(g.filters * splits);
        depthwise_backward_weights<T, decltype(window)><<<blocks, THREADS, 0, calculator->stream>>>(
            data_of<T>(op->in[0]), data_of<T>(op->in[1]), parts, g, splits);
    });
}

extern "C" sdlf_status conv2d_depthwise_backward_input_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_geometry(op);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) { backward_input<decltype(zero)>(calculator, op, g); });
    return cuda_check_launch("conv2d, depthwise");
}

extern "C" sdlf_status conv2d_depthwise_backward_weights_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_geometry(op);
    const sdlf_tensor *dw = &op->out[0];
    int splits = splits_of(calculator, g);
    if (sdlf_tensor_count(dw) == 0) return SDLF_OK;
    with_float(dw->dtype, [&](auto zero) { backward_weights<decltype(zero)>(calculator, op, g, splits); });
    sdlf_status status = cuda_check_launch("conv2d, depthwise");
    if (status == SDLF_OK && splits > 1)
        status = cuda_sum_parts(base, dw->dtype, op->workspace.data, dw->data, sdlf_tensor_count(dw), splits, false);
    if (status != SDLF_OK || !sdlf_tensor_present(&op->out[1])) return status;
    return cuda_bias_gradient(base, &op->in[1], &op->out[1]);
}
