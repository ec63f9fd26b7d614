/* SPDX-License-Identifier: MIT */
/* Depthwise convolution (groups = channels; K/C filters a channel), forward: channels share nothing, so that memory is the bound, and
 * what counts is how many bytes are in flight.
 *
 * Windows of 3x3 and 5x5 with strides 1 and 2: rectangles of pixels (depthwise_rectangles.cuh). Other windows: a thread computes a strip of
 * 4 pixels down a column, or of 1 or 2 where there are few pixels, tap by tap. Moves 4 (NCHW + NKPQ) bytes (float32). */
#include "calculators/cuda/conv2d/depthwise_nchw.cuh"
#include "calculators/cuda/conv2d/depthwise_rectangles.cuh"
#include "calculators/cuda/launch.cuh"

/* Any window: a thread computes strip e, as in depthwise_nchw.cuh. */
template <typename T, int LENGTH>
static __global__ void __launch_bounds__(THREADS)
    depthwise_strips(depthwise_operands<T> o, cuda_conv2d g, int64_t count)
{
    const sdlf_window2d &window = g.window;
    wait_and_launch_dependent_grids();
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        strip<LENGTH> s(static_cast<unsigned>(e), static_cast<unsigned>(g.filters), static_cast<unsigned>(g.out_height),
                        static_cast<unsigned>(g.out_width));
        const T *image = o.x + (s.n * g.channels + s.plane / g.group_filters) * g.height * g.width;
        const T *weight = o.w + s.plane * window.size[0] * window.size[1];
        int top = s.row * window.stride[0] - window.padding_before[0];
        int left = s.column * window.stride[1] - window.padding_before[1];
        T sum[LENGTH] = {};
        for (int r = 0; r < window.size[0]; r++) {
            for (int c = 0; c < window.size[1]; c++) {
                T own = __ldg(weight + r * window.size[1] + c);
#pragma unroll
                for (int i = 0; i < LENGTH; i++)
                    sum[i] += own * at_or_zero(image, top + i * window.stride[0] + r * window.dilation[0],
                                               left + c * window.dilation[1], g.height, g.width);
            }
        }
        T shift = o.bias != nullptr ? o.bias[s.plane] : T(0);
        int64_t to = ((s.n * g.filters + s.plane) * g.out_height + s.row) * g.out_width + s.column;
#pragma unroll
        for (int i = 0; i < LENGTH; i++, to += g.out_width) {
            if (s.row + i >= g.out_height) break;
            T value = sum[i] + shift;
            if (o.residual != nullptr) value += o.residual[to];
            o.y[to] = activate(o.activation, value);
        }
    }
}

template <typename T, int LENGTH>
static void launch_strips(const cuda_calculator *calculator, const depthwise_operands<T> &o, const cuda_conv2d &g)
{
    int64_t count = g.batch * g.filters * ((g.out_height + LENGTH - 1) / LENGTH) * g.out_width;
    launch_overlapped(calculator, depthwise_strips<T, LENGTH>, dim3(cuda_blocks(calculator, count, THREADS)),
                      dim3(THREADS), 0, o, g, count);
}

template <typename T>
static void forward(const cuda_calculator *calculator, const depthwise_operands<T> &o, const cuda_conv2d &g)
{
    with_window(g.window, [&](auto window) {
        using known = decltype(window);
        if constexpr (known::SIDE > 0) {
            launch_suited<T, known::SIDE, known::STEP, false>(calculator, o, g);
        } else {
            int64_t pixels = g.batch * g.filters * g.out_height * g.out_width / calculator->multiprocessors;
            if (pixels > 2048)
                launch_strips<T, STRIP>(calculator, o, g);
            else if (pixels > 512)
                launch_strips<T, 2>(calculator, o, g);
            else
                launch_strips<T, 1>(calculator, o, g);
        }
    });
}

extern "C" sdlf_status conv2d_depthwise_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_geometry(op);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        depthwise_operands<T> o = {data_of<T>(op->in[0]),  data_of<T>(op->in[1]),  optional<T>(op->in[2]),
                                   optional<T>(op->in[3]), data_of<T>(op->out[0]), op->conv2d.activation};
        forward(calculator, o, g);
    });
    return cuda_check_launch("conv2d, depthwise");
}
