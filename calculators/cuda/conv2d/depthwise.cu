/* Depthwise convolution (groups = channels; K/C filters a channel): nothing is shared between channels, so that memory decides.
 *
 * Each kernel gives a thread a strip of 4 pixels down a column (forward, where all pixels are few: of one or two, so that more
 * threads read at a time), lanes being neighbours in q: every read and write of a warp is one or two lines. A strip's image, halo included, passes through registers row by row; what neighbouring lanes and strips read too
 * comes from the first-level cache. Windows 3x3 and 5x5 with strides 1 and 2 are unrolled, others take loops.
 *
 *   forward          moves 4 (NCHW + NKPQ) bytes (float32)
 *   backward input   moves 4 (NKPQ + NCHW)
 *   backward weights moves 4 (NCHW + NKPQ): a block sums over its share of a filter's pixels, in registers, then in
 *                    shared memory; shares are left in the workspace and added in order */
#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/launch.cuh"

enum { THREADS = 256, STRIP = 4 };

/* Sizes known to the compiler where they are not 0. */
template <int SIZE, int STRIDE> struct fixed_window {
    static constexpr int SIDE = SIZE, STEP = STRIDE;
    static __device__ __forceinline__ int size(const sdlf_window2d &window, int axis)
    {
        return SIZE > 0 ? SIZE : window.size[axis];
    }
    static __device__ __forceinline__ int stride(const sdlf_window2d &window, int axis)
    {
        return STRIDE > 0 ? STRIDE : window.stride[axis];
    }
    static __device__ __forceinline__ int dilation(const sdlf_window2d &window, int axis)
    {
        return SIZE > 0 ? 1 : window.dilation[axis];
    }
};

template <typename T>
static __device__ __forceinline__ T at_or_zero(const T *image, int row, int column, int64_t height, int64_t width)
{
    bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(height) &&
                  static_cast<unsigned>(column) < static_cast<unsigned>(width);
    return inside ? __ldg(image + static_cast<int64_t>(row) * width + column) : T(0);
}

/* A thread's strip: image n, channel or filter `plane`, column, first row. */
template <int LENGTH = STRIP> struct strip {
    int64_t n, plane;
    int column, row;
    __device__ strip(unsigned e, unsigned planes, unsigned height, unsigned width)
    {
        unsigned strips = (height + LENGTH - 1) / LENGTH, rest = e / width;
        column = static_cast<int>(e % width);
        row = static_cast<int>(rest % strips * LENGTH);
        rest /= strips;
        plane = rest % planes;
        n = rest / planes;
    }
};

template <typename T, typename WINDOW, int LENGTH>
static __global__ void __launch_bounds__(THREADS)
    depthwise_forward(const T *x, const T *w, const T *bias, const T *residual, T *y, cuda_conv2d g,
                      sdlf_activation activation, int64_t count)
{
    const sdlf_window2d &window = g.window;
    int size[2] = {WINDOW::size(window, 0), WINDOW::size(window, 1)};
    await_kernels();
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        strip<LENGTH> s(static_cast<unsigned>(e), static_cast<unsigned>(g.filters), static_cast<unsigned>(g.out_height),
                        static_cast<unsigned>(g.out_width));
        const T *image = x + (s.n * g.channels + s.plane / g.group_filters) * g.height * g.width;
        const T *weight = w + s.plane * size[0] * size[1];
        int top = s.row * WINDOW::stride(window, 0) - window.padding_before[0];
        int left = s.column * WINDOW::stride(window, 1) - window.padding_before[1];
        T sum[LENGTH] = {};
        if constexpr (WINDOW::SIDE > 0) {
            T own[WINDOW::SIDE * WINDOW::SIDE];
#pragma unroll
            for (int i = 0; i < WINDOW::SIDE * WINDOW::SIDE; i++) own[i] = __ldg(weight + i);
#pragma unroll
            for (int row = 0; row < (LENGTH - 1) * WINDOW::STEP + WINDOW::SIDE; row++) {
                T value[WINDOW::SIDE];
#pragma unroll
                for (int c = 0; c < WINDOW::SIDE; c++)
                    value[c] = at_or_zero(image, top + row, left + c, g.height, g.width);
#pragma unroll
                for (int i = 0; i < LENGTH; i++) {
                    int r = row - i * WINDOW::STEP;
                    if (r < 0 || r >= WINDOW::SIDE) continue;
#pragma unroll
                    for (int c = 0; c < WINDOW::SIDE; c++) sum[i] += value[c] * own[r * WINDOW::SIDE + c];
                }
            }
        } else {
            for (int r = 0; r < size[0]; r++) {
                for (int c = 0; c < size[1]; c++) {
                    T own = __ldg(weight + r * size[1] + c);
#pragma unroll
                    for (int i = 0; i < LENGTH; i++)
                        sum[i] += own * at_or_zero(image, top + i * window.stride[0] + r * window.dilation[0],
                                                   left + c * window.dilation[1], g.height, g.width);
                }
            }
        }
        T shift = bias != nullptr ? bias[s.plane] : T(0);
        int64_t to = ((s.n * g.filters + s.plane) * g.out_height + s.row) * g.out_width + s.column;
#pragma unroll
        for (int i = 0; i < LENGTH; i++, to += g.out_width) {
            if (s.row + i >= g.out_height) break;
            T value = sum[i] + shift;
            if (residual != nullptr) value += residual[to];
            y[to] = activate(activation, value);
        }
    }
}

/* Without a stride: dx is dy's convolution with the window turned round; a row of dy serves every row of the strip. */
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

/* dx[h,w] = sum over filters of the channel and taps (r,s) that reach it from a whole pixel of dy. */
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

/* The sum over the block, in a fixed order, for thread 0; every thread calls it. */
template <typename T> static __device__ T block_sum(T value)
{
    __shared__ T parts[THREADS / 32];
    for (int gap = 16; gap > 0; gap /= 2) value += __shfl_down_sync(0xffffffffu, value, gap);
    __syncthreads(); /* parts may still be read for the sum before */
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    T sum = 0;
    for (int i = 0; i < THREADS / 32; i++) sum += parts[i];
    return sum;
}

/* Block (k, part): part of dw[k], summed over the strips part, part + splits, ... in rounds of a block's size. */
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

/* Call `function` with the window that fits: unrolled where one is. */
template <typename Function> static void with_window(const sdlf_window2d &window, Function function)
{
    bool square = window.size[0] == window.size[1] && window.stride[0] == window.stride[1] && window.dilation[0] == 1 &&
                  window.dilation[1] == 1;
    int size = square ? window.size[0] : 0, stride = window.stride[0];
    if (size == 3 && stride == 1)
        function(fixed_window<3, 1>());
    else if (size == 3 && stride == 2)
        function(fixed_window<3, 2>());
    else if (size == 5 && stride == 1)
        function(fixed_window<5, 1>());
    else if (size == 5 && stride == 2)
        function(fixed_window<5, 2>());
    else
        function(fixed_window<0, 0>());
}

/* Shares of a filter's pixels: enough blocks to fill the device, a round of strips for each at least. */
static int splits_of(const cuda_calculator *calculator, const cuda_conv2d &g)
{
    int64_t rounds = (g.batch * ((g.out_height + STRIP - 1) / STRIP) * g.out_width + THREADS - 1) / THREADS;
    int64_t wanted = (calculator->multiprocessors * INT64_C(8) + g.filters - 1) / g.filters;
    int64_t splits = rounds < wanted ? rounds : wanted;
    return splits < 1 ? 1 : static_cast<int>(splits);
}

static cuda_conv2d geometry(const sdlf_operation *op)
{
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(op, &x, &w, &y);
    return cuda_conv2d_of(op, x, w, y);
}

extern "C" int64_t conv2d_depthwise_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (op->kind != SDLF_CONV2D_BACKWARD_WEIGHTS) return 0;
    int splits = splits_of(reinterpret_cast<const cuda_calculator *>(base), geometry(op));
    return splits > 1 ? splits * sdlf_tensor_bytes(&op->out[0]) : 0;
}

template <typename T, int LENGTH>
static void forward_strips(const cuda_calculator *calculator, const sdlf_operation *op, const cuda_conv2d &g)
{
    int64_t count = g.batch * g.filters * ((g.out_height + LENGTH - 1) / LENGTH) * g.out_width;
    with_window(g.window, [&](auto window) {
        launch_overlapped(calculator, depthwise_forward<T, decltype(window), LENGTH>,
                          dim3(cuda_blocks(calculator, count, THREADS)), dim3(THREADS), 0, data_of<T>(op->in[0]),
                          data_of<T>(op->in[1]), optional<T>(op->in[2]), optional<T>(op->in[3]), data_of<T>(op->out[0]),
                          g, op->conv2d.activation, count);
    });
}

/* Strips so long that they are threads enough to hide that each of them waits for memory. */
template <typename T>
static void forward(const cuda_calculator *calculator, const sdlf_operation *op, const cuda_conv2d &g)
{
    int64_t pixels = g.batch * g.filters * g.out_height * g.out_width / calculator->multiprocessors;
    if (pixels > 2048)
        forward_strips<T, STRIP>(calculator, op, g);
    else if (pixels > 512)
        forward_strips<T, 2>(calculator, op, g);
    else
        forward_strips<T, 1>(calculator, op, g);
}

template <typename T>
static void backward_input(const cuda_calculator *calculator, const sdlf_operation *op, const cuda_conv2d &g)
{
    int64_t count = g.batch * g.channels * ((g.height + STRIP - 1) / STRIP) * g.width;
    with_window(g.window, [&](auto window) {
        depthwise_backward_input<T, decltype(window)>
            <<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
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

extern "C" sdlf_status conv2d_depthwise_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = geometry(op);
    int splits = splits_of(calculator, g);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        if (op->kind == SDLF_CONV2D_FORWARD)
            forward<T>(calculator, op, g);
        else if (op->kind == SDLF_CONV2D_BACKWARD_INPUT)
            backward_input<T>(calculator, op, g);
        else
            backward_weights<T>(calculator, op, g, splits);
    });
    sdlf_status status = cuda_check_launch("conv2d, depthwise");
    if (status != SDLF_OK || op->kind != SDLF_CONV2D_BACKWARD_WEIGHTS) return status;
    const sdlf_tensor *dw = &op->out[0];
    if (splits > 1)
        status = cuda_sum_parts(base, dw->dtype, op->workspace.data, dw->data, sdlf_tensor_count(dw), splits, false);
    if (status != SDLF_OK || !sdlf_tensor_present(&op->out[1])) return status;
    return cuda_bias_gradient(base, &op->in[1], &op->out[1]);
}
