/* SPDX-License-Identifier: MIT */
/* Convolution, finer-grained: eight threads an output (split-K within a block). Each sums an eighth of the rows (c,r) of its window; one
 * of them adds the eight sums, through shared memory, in order.
 *
 * A block is 32 neighbouring outputs across (so that loads of x coalesce, as in conv2d/direct.cu) and 8 parts down: a warp a part. Eight
 * times as many threads as outputs: worth it where outputs are few and sums are long. */
#include "lab/conv2d.cuh"

enum { OUTPUTS = 32, PARTS = 8 };

template <typename T>
static __global__ void __launch_bounds__(OUTPUTS *PARTS) finer(const __grid_constant__ operands<T> o)
{
    __shared__ T part[PARTS][OUTPUTS];
    const cuda_conv2d &g = o.g;
    int64_t outputs = g.batch * g.filters * g.out_height * g.out_width, rows = g.group_channels * g.window.size[0];
    for (int64_t first = static_cast<int64_t>(blockIdx.x) * OUTPUTS; first < outputs;
         first += static_cast<int64_t>(gridDim.x) * OUTPUTS) {
        int64_t e = first + threadIdx.x;
        place at = place_of(g, e < outputs ? e : first);
        const T *image = image_of(o, at.n, at.k), *filter = filter_of(o, at.k);
        T sum = 0;
        for (int64_t i = threadIdx.y; i < rows; i += PARTS) {
            int64_t c = i / g.window.size[0], row = reads(g, 0, at.p, static_cast<int>(i % g.window.size[0]));
            if (row < 0 || row >= g.height) continue;
            for (int s = 0; s < g.window.size[1]; s++) {
                int64_t column = reads(g, 1, at.q, s);
                if (column < 0 || column >= g.width) continue;
                sum += image[(c * g.height + row) * g.width + column] * filter[i * g.window.size[1] + s];
            }
        }
        part[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && e < outputs) {
            for (int other = 1; other < PARTS; other++) sum += part[other][threadIdx.x];
            put(o, e, at.k, sum);
        }
        __syncthreads(); /* before the next outputs' sums overwrite these */
    }
}

extern "C" sdlf_status lab_conv2d_finer(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    unsigned blocks = cuda_blocks(calculator, sdlf_tensor_count(&op->out[0]) * PARTS, OUTPUTS * PARTS);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        finer<T><<<blocks, dim3(OUTPUTS, PARTS), 0, calculator->stream>>>(operands_of<T>(op));
    });
    return cuda_check_launch("conv2d_forward, finer");
}
