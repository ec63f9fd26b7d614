/* Depthwise convolution (groups = channels; K/C filters a channel), forward: nothing is shared between channels, so that memory
 * decides.
 *
 * A thread has a strip of 4 pixels down a column, or of one or two where all pixels are few, so that more threads read at a time;
 * lanes are neighbours in q: every read and write of a warp is one or two lines. A strip's image, halo included, passes
 * through registers row by row; what neighbouring lanes and strips read too comes from the first-level cache. Windows 3x3 and 5x5
 * with strides 1 and 2 are unrolled, others take loops. Moves 4 (NCHW + NKPQ) bytes (float32). */
#include "calculators/cuda/conv2d/depthwise.cuh"
#include "calculators/cuda/launch.cuh"

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

extern "C" sdlf_status conv2d_depthwise_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_geometry(op);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) { forward<decltype(zero)>(calculator, op, g); });
    return cuda_check_launch("conv2d, depthwise");
}
