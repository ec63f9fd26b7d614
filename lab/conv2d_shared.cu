/* SPDX-License-Identifier: MIT */
/* Convolution with a tile of the image in shared memory: one thread an output, as in conv2d/direct.cu, but a block of 32x8 of them first
 * loads what all their windows read of a channel, the tile and its halo, into shared memory, with zeros outside the image. The loop over
 * the window then reads shared memory, without tests.
 *
 * A block is a tile of one filter's plane; its threads have neighbouring q. Loads of x from memory: (tile + halo) / tile for each
 * filter and channel, instead of R S. The tile and its halo must fit 48 KiB. */
#include "calculators/cuda/conv2d/implicit.h"
#include "lab/conv2d.cuh"

enum { ACROSS = 32, DOWN = 8, THREADS = ACROSS * DOWN, SHARED = 48 << 10 };

/* Rows (axis 0) or columns (1) of the tile with its halo. */
static __host__ __device__ int halo_side(const cuda_conv2d &g, int axis)
{
    const sdlf_window2d &window = g.window;
    return ((axis == 0 ? DOWN : ACROSS) - 1) * window.stride[axis] + (window.size[axis] - 1) * window.dilation[axis] +
           1;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) shared_tile(const __grid_constant__ operands<T> o)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    T *tile = reinterpret_cast<T *>(shared_memory);
    const cuda_conv2d &g = o.g;
    int height = halo_side(g, 0), width = halo_side(g, 1);
    int64_t across = (g.out_width + ACROSS - 1) / ACROSS, down = (g.out_height + DOWN - 1) / DOWN;
    for (int64_t block = blockIdx.x; block < across * down * g.filters * g.batch; block += gridDim.x) {
        int64_t left = block % across * ACROSS, top = block / across % down * DOWN;
        int64_t k = block / (across * down) % g.filters, n = block / (across * down * g.filters);
        int64_t p = top + threadIdx.y, q = left + threadIdx.x;
        int64_t first_row = reads(g, 0, top, 0), first_column = reads(g, 1, left, 0);
        const T *image = image_of(o, n, k), *weight = filter_of(o, k);
        T sum = 0;
        for (int64_t c = 0; c < g.group_channels; c++, image += g.height * g.width) {
            for (int i = threadIdx.y * ACROSS + threadIdx.x; i < height * width; i += THREADS) {
                int64_t row = first_row + i / width, column = first_column + i % width;
                bool inside = row >= 0 && row < g.height && column >= 0 && column < g.width;
                tile[i] = inside ? image[row * g.width + column] : T(0);
            }
            __syncthreads();
            const T *corner = tile + threadIdx.y * g.window.stride[0] * width + threadIdx.x * g.window.stride[1];
            for (int r = 0; r < g.window.size[0]; r++) {
                const T *row = corner + r * g.window.dilation[0] * width;
                for (int s = 0; s < g.window.size[1]; s++) sum += row[s * g.window.dilation[1]] * *weight++;
            }
            __syncthreads(); /* before the next channel overwrites this one */
        }
        if (p < g.out_height && q < g.out_width)
            put(o, ((n * g.filters + k) * g.out_height + p) * g.out_width + q, k, sum);
    }
}

extern "C" bool lab_conv2d_shared_takes(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    if (!cuda_implicit_counts(op)) return false;
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    return (int64_t)halo_side(g, 0) * halo_side(g, 1) * (int64_t)sdlf_dtype_size(op->in[0].dtype) <= SHARED;
}

extern "C" sdlf_status lab_conv2d_shared(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    int64_t tiles = (g.out_width + ACROSS - 1) / ACROSS * ((g.out_height + DOWN - 1) / DOWN) * g.filters * g.batch;
    size_t bytes = (size_t)halo_side(g, 0) * (size_t)halo_side(g, 1) * sdlf_dtype_size(op->in[0].dtype);
    unsigned blocks = cuda_blocks(calculator, tiles * THREADS, THREADS);
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        shared_tile<T><<<blocks, dim3(ACROSS, DOWN), bytes, calculator->stream>>>(operands_of<T>(op));
    });
    return cuda_check_launch("conv2d_forward, shared");
}
