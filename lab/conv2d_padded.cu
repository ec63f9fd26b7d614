/* SPDX-License-Identifier: MIT */
/* Convolution, padded: a first kernel copies the images to the workspace with their border of zeros; then one thread computes an
 * output, as in conv2d/direct.cu, without tests in its loop.
 *
 * Two launches. Moves x and its border twice more: the copy is written, and read again. */
#include "lab/conv2d.cuh"

enum { THREADS = 256 };

static __host__ __device__ int64_t padded_side(const cuda_conv2d &g, int axis)
{
    int64_t side = axis == 0 ? g.height : g.width;
    return g.window.padding_before[axis] + side + g.window.padding_after[axis];
}

/* padded (N,C,H',W') = x with zeros around it; one thread an element. */
template <typename T> static __global__ void pad(const T *x, T *padded, cuda_conv2d g)
{
    int64_t height = padded_side(g, 0), width = padded_side(g, 1);
    for (int64_t e = grid_first(); e < g.batch * g.channels * height * width; e += grid_step()) {
        int64_t column = e % width - g.window.padding_before[1], row = e / width % height - g.window.padding_before[0];
        bool inside = row >= 0 && row < g.height && column >= 0 && column < g.width;
        padded[e] = inside ? x[(e / (width * height) * g.height + row) * g.width + column] : T(0);
    }
}

/* o.g describes the padded images, and so has no padding. */
template <typename T> static __global__ void padded_outputs(const __grid_constant__ operands<T> o)
{
    const cuda_conv2d &g = o.g;
    for (int64_t e = grid_first(); e < g.batch * g.filters * g.out_height * g.out_width; e += grid_step()) {
        place at = place_of(g, e);
        const T *weight = filter_of(o, at.k);
        const T *image = image_of(o, at.n, at.k) + reads(g, 0, at.p, 0) * g.width + reads(g, 1, at.q, 0);
        T sum = 0;
        for (int64_t c = 0; c < g.group_channels; c++, image += g.height * g.width) {
            for (int r = 0; r < g.window.size[0]; r++) {
                const T *row = image + r * g.window.dilation[0] * g.width;
                for (int s = 0; s < g.window.size[1]; s++) sum += row[s * g.window.dilation[1]] * *weight++;
            }
        }
        put(o, e, at.k, sum);
    }
}

extern "C" int64_t lab_conv2d_padded_workspace(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    return g.batch * g.channels * padded_side(g, 0) * padded_side(g, 1) * (int64_t)sdlf_dtype_size(op->in[0].dtype);
}

extern "C" sdlf_status lab_conv2d_padded(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        operands<T> o = operands_of<T>(op);
        T *padded = static_cast<T *>(op->workspace.data);
        int64_t numbers = o.g.batch * o.g.channels * padded_side(o.g, 0) * padded_side(o.g, 1);
        pad<T><<<cuda_blocks(calculator, numbers, THREADS), THREADS, 0, calculator->stream>>>(o.x, padded, o.g);
        o.x = padded;
        o.g.height = padded_side(o.g, 0);
        o.g.width = padded_side(o.g, 1);
        for (int i = 0; i < 2; i++) o.g.window.padding_before[i] = o.g.window.padding_after[i] = 0;
        int64_t outputs = sdlf_tensor_count(&op->out[0]);
        padded_outputs<T><<<cuda_blocks(calculator, outputs, THREADS), THREADS, 0, calculator->stream>>>(o);
    });
    return cuda_check_launch("conv2d_forward, padded");
}
