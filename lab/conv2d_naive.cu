/* SPDX-License-Identifier: MIT */
/* Convolution, naive: one thread a pixel. It computes all filters at its pixel (n,p,q), one after another, and tests the border
 * for every multiply-add.
 *
 * Neighbouring threads have neighbouring q, so that loads of x and stores of y coalesce. N P Q threads: a small image leaves most of the
 * device idle, however many filters there are. Does 2 N K P Q (C/G) R S FLOPs, with two loads for each multiply-add. */
#include "lab/conv2d.cuh"

enum { THREADS = 256 };

template <typename T> static __global__ void naive(const __grid_constant__ operands<T> o)
{
    const cuda_conv2d &g = o.g;
    int64_t area = g.out_height * g.out_width;
    for (int64_t e = grid_first(); e < g.batch * area; e += grid_step()) {
        int64_t n = e / area, p = e % area / g.out_width, q = e % g.out_width;
        for (int64_t k = 0; k < g.filters; k++) {
            const T *image = image_of(o, n, k), *weight = filter_of(o, k);
            T sum = 0;
            for (int64_t c = 0; c < g.group_channels; c++, image += g.height * g.width) {
                for (int r = 0; r < g.window.size[0]; r++) {
                    int64_t row = reads(g, 0, p, r);
                    for (int s = 0; s < g.window.size[1]; s++, weight++) {
                        int64_t column = reads(g, 1, q, s);
                        if (row < 0 || row >= g.height || column < 0 || column >= g.width) continue;
                        sum += image[row * g.width + column] * *weight;
                    }
                }
            }
            put(o, (n * g.filters + k) * area + e % area, k, sum);
        }
    }
}

extern "C" sdlf_status lab_conv2d_naive(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    int64_t pixels = sdlf_tensor_count(&op->out[0]) / op->out[0].shape.dim[1];
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        naive<T><<<cuda_blocks(calculator, pixels, THREADS), THREADS, 0, calculator->stream>>>(operands_of<T>(op));
    });
    return cuda_check_launch("conv2d_forward, naive");
}
