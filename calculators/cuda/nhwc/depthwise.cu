/* SPDX-License-Identifier: MIT */
/* NHWC depthwise convolution: x (N,H,W,C), w (C,R,S), y (N,P,Q,C), C a multiple of 8, accumulation in float32. Images are moved once; what adjacent
 * threads read again comes from cache.
 *
 * fprop: a thread has 8 channels of RUN adjacent output pixels. 3x3, 5x5 and 7x7 filters have specialised code; those that nhwc/depthwise_tma.cu or
 * nhwc/depthwise_sliding.cu supports are computed there. dgrad with a stride of 1 is a convolution with the weights reversed; dgrad with other
 * strides is in nhwc/depthwise_dgrad_strided.cu. */
#include "calculators/cuda/nhwc/depthwise_runs.cuh"

#include <utility>

enum { RUN = 4, MOST_TAPS = 64 };

/* SIZE x SIZE taps, the same stride both ways, no dilation; SIZE 0: any. */
template <typename T, int SIZE, int STRIDE>
static __global__ void __launch_bounds__(RUN_THREADS) depthwise_image(const __grid_constant__ depthwise_conv g)
{
    extern __shared__ float4 weights[];
    constexpr int UNROLLED =
        SIZE > 5 ? 1 : SIZE + 1; /* rows of a window: with more, code would exceed the instruction cache */
    float *shared = reinterpret_cast<float *>(weights);
    const int lines = RUN_THREADS / g.across, line = static_cast<int>(threadIdx.x) / g.across;
    const int mine = static_cast<int>(threadIdx.x) - line * g.across;
    const int first = static_cast<int>(blockIdx.x) * g.across, vector = first + mine;
    wait_and_launch_dependent_grids();
    bring_weights<T>(g, shared, first);
    __syncthreads();
    if (line >= lines || vector >= g.vectors) return;
    const int height = SIZE > 0 ? SIZE : g.size[0], width = SIZE > 0 ? SIZE : g.size[1];
    const int down = SIZE > 0 ? STRIDE : g.stride[0], right = SIZE > 0 ? STRIDE : g.stride[1];
    const int row_gap = SIZE > 0 ? 1 : g.dilation[0], gap = SIZE > 0 ? 1 : g.dilation[1];
    const float *w = shared + mine * VECTOR;
    for (int64_t run = blockIdx.y * lines + line; run < g.runs; run += gridDim.y * lines) {
        int q, p;
        const int n = divide(divide(static_cast<int32_t>(run), g.run_columns, q), g.run_rows, p);
        q *= RUN;
        const int top = p * down - g.padding[0], left = q * right - g.padding[1];
        float8 sum[RUN] = {};
#pragma unroll(UNROLLED)
        for (int r = 0; r < height; r++) {
            const int h = top + r * row_gap;
            if (h < 0 || h >= g.height) continue;
            const int64_t row = (static_cast<int64_t>(n) * g.height + h) * g.width;
            auto pixel = [&](int at) {
                return at >= 0 && at < g.width
                           ? load_bits8(static_cast<const T *>(g.x), (row + at) * g.vectors + vector)
                           : bits8<T>{};
            };
            if constexpr (SIZE > 0) {
                constexpr int SEEN = (RUN - 1) * STRIDE + SIZE;
                bits8<T> seen[SEEN];
#pragma unroll
                for (int i = 0; i < SEEN; i++) seen[i] = pixel(left + i);
#pragma unroll
                for (int i = 0; i < SEEN; i++) {
                    const float8 x = unpack8<T>(seen[i]);
#pragma unroll
                    for (int o = 0; o < RUN; o++) {
                        if (i - o * STRIDE >= 0 && i - o * STRIDE < SIZE)
                            multiply(sum[o], x, w + (r * SIZE + i - o * STRIDE) * g.across * VECTOR);
                    }
                }
            } else {
                for (int s = 0; s < width; s++) {
#pragma unroll
                    for (int o = 0; o < RUN; o++)
                        multiply(sum[o], unpack8<T>(pixel(left + o * right + s * gap)),
                                 w + (r * width + s) * g.across * VECTOR);
                }
            }
        }
        const int64_t to = ((static_cast<int64_t>(n) * g.rows + p) * g.columns + q) * g.vectors + vector;
#pragma unroll
        for (int o = 0; o < RUN; o++) {
            if (q + o < g.columns) finish<T>(g, sum[o], vector, to + o * g.vectors);
        }
    }
}

/* ---- launching ---- */

template <typename T>
static void launch_image(const cuda_calculator *calculator, const depthwise_conv &g, void (*kernel)(depthwise_conv),
                         int run)
{
    launch_runs<T>(calculator, g, kernel, g.rows, (g.columns + run - 1) / run);
}

template <typename T> static void (*image_kernel(const depthwise_conv &g))(depthwise_conv)
{
    if (depthwise_conv_is_square(g, 3, 1)) return depthwise_image<T, 3, 1>;
    if (depthwise_conv_is_square(g, 5, 1)) return depthwise_image<T, 5, 1>;
    if (depthwise_conv_is_square(g, 3, 2)) return depthwise_image<T, 3, 2>;
    if (depthwise_conv_is_square(g, 5, 2)) return depthwise_image<T, 5, 2>;
    if (depthwise_conv_is_square(g, 7, 1)) return depthwise_image<T, 7, 1>;
    return depthwise_image<T, 0, 1>;
}

template <typename T> static void run_image(const cuda_calculator *calculator, const depthwise_conv &g)
{
    if (depthwise_tma_launch<T>(calculator, g)) return;
    if (!depthwise_sliding_launch<T>(calculator, g)) launch_image<T>(calculator, g, image_kernel<T>(g), RUN);
}

template <typename T> static void backward_input(const cuda_calculator *calculator, depthwise_conv g)
{
    std::swap(g.height, g.rows);
    std::swap(g.width, g.columns);
    if (g.stride[0] > 1 || g.stride[1] > 1) {
        depthwise_dgrad_strided_launch<T>(calculator, g);
        return;
    }
    g.flipped = 1;
    for (int i = 0; i < 2; i++) g.padding[i] = (g.size[i] - 1) * g.dilation[i] - g.padding[i];
    run_image<T>(calculator, g);
}

bool depthwise_supports_nhwc(const sdlf_operation *op)
{
    const cuda_conv2d conv = cuda_conv2d_geometry(op);
    const int64_t most = INT32_MAX - RUN_THREADS, pixels = conv.batch * conv.height * conv.width;
    return conv.channels == op->conv2d.groups && conv.filters == conv.channels && conv.channels % VECTOR == 0 &&
           pixels > 0 && pixels <= most && conv.batch * conv.out_height * conv.out_width > 0 &&
           conv.batch * conv.out_height * conv.out_width <= most && conv.channels <= most &&
           static_cast<int64_t>(conv.window.size[0]) * conv.window.size[1] <= MOST_TAPS;
}

int64_t depthwise_workspace_nhwc(const sdlf_operation *op)
{
    if (op->kind != SDLF_CONV2D_BACKWARD_WEIGHTS) return 0;
    return depthwise_weights_workspace(depthwise_conv_of(op));
}

sdlf_status depthwise_nhwc(sdlf_calculator *base, const sdlf_operation *op, const void *prepared)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(op, &x, &w, &y);
    depthwise_conv g = depthwise_conv_of(op);
    with_storage(x->dtype, [&](auto zero) {
        using T = decltype(zero);
        g.w = prepared != nullptr ? prepared : w->data;
        if (op->kind == SDLF_CONV2D_FORWARD) {
            g.x = x->data;
            g.y = y->data;
            run_image<T>(calculator, g);
        } else if (op->kind == SDLF_CONV2D_BACKWARD_INPUT) {
            g.x = y->data;
            g.y = x->data;
            backward_input<T>(calculator, g);
        } else {
            g.x = x->data;
            g.y = y->data;
            depthwise_weights_launch<T>(calculator, g, static_cast<float *>(op->workspace.data),
                                        data_of<float>(op->out[0]));
        }
    });
    return cuda_check_launch("depthwise conv2d");
}
