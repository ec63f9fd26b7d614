/* SPDX-License-Identifier: MIT */
/* The input gradient of conv2d + ReLU + max-pool: dx[n,c,h,w] = sum over k,r,s of da[n,k,h+top-r,w+left-s] w[k,c,r,s], where da, the
 * gradient of the convolution's output, is dy at marked positions and 0 elsewhere.
 *
 * A block computes some rows of dx of one image for CHANNELS channels. For one group of FILTERS filters after the other, it unpools the rows
 * of da that it needs, padded with zeros, into shared memory, and loads the group's weights beside them, channels innermost. A thread computes
 * COLUMNS neighbouring elements of each channel: for each filter it reads R rows of COLUMNS + R - 1 elements of da and R R vectors of weights
 * for COLUMNS CHANNELS R R multiply-adds. 2 N C H W K R R FLOPs. */
#include "calculators/cuda/conv2d_pool/conv2d_pool.cuh"
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"

enum { THREADS = 64, MOST_THREADS = 512, CHANNELS = 2, COLUMNS = 4, FILTERS = 8 };

template <typename T> struct pool_input {
    const T *w, *dy;
    const uint8_t *mask;
    T *dx;
    pool_geometry g;
    int quads;          /* groups of COLUMNS columns */
    int rows, bands;    /* rows of dx that a block computes; blocks an image */
    int line, da_lines; /* elements of a row, and rows, of a filter's da in shared memory */
};

/* Unpool da of filters k0 ... for the block's rows h0 ...: line i is row h0 + top - (R - 1) + i, column j is left - (R
 * - 1) + j. Elements outside stay 0. Every window that overlaps a line writes its four elements. */
template <typename T, int R> static __device__ void unpool(const pool_input<T> &p, T *da, int n, int k0, int h0)
{
    const pool_geometry &g = p.g;
    int first_row = h0 + g.top - (R - 1), first_column = g.left - (R - 1), area = g.out_height * g.out_width;
    int from = max(first_row, 0) / 2 * g.out_width,
        to = min((first_row + p.da_lines + 1) / 2, g.out_height) * g.out_width;
    for (int window = from + threadIdx.x; window < to; window += blockDim.x) {
        int row = 2 * (window / g.out_width) - first_row, column = 2 * (window % g.out_width) - first_column;
#pragma unroll
        for (int k = 0; k < FILTERS; k++) {
            int64_t at = (static_cast<int64_t>(n) * g.filters + k0 + k) * area + window;
            unsigned marks = k0 + k < g.filters ? p.mask[at] : 0;
            T value = k0 + k < g.filters ? p.dy[at] : T(0);
            if (marks != 0) value /= static_cast<T>(__popc(marks));
            T *lines = da + k * p.da_lines * p.line;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int line = row + i / 2, j = column + i % 2;
                if (line >= 0 && line < p.da_lines && j >= 0 && j < p.line)
                    lines[line * p.line + j] = marks >> i & 1 ? value : T(0);
            }
        }
    }
}

template <typename T, int R>
static __device__ void load_weights(const pool_input<T> &p, T (*to)[R * R][CHANNELS], int k0, int c0)
{
    for (int e = threadIdx.x; e < FILTERS * R * R * CHANNELS; e += blockDim.x) {
        int tap = e % (R * R), c = e / (R * R) % CHANNELS, k = e / (R * R) / CHANNELS;
        bool valid = k0 + k < p.g.filters && c0 + c < p.g.channels;
        to[k][tap][c] = valid ? p.w[((k0 + k) * p.g.channels + c0 + c) * (R * R) + tap] : T(0);
    }
}

/* Grid: x over bands of images, y over groups of channels. */
template <typename T, int R> static __global__ void __launch_bounds__(MOST_THREADS) conv2d_pool_input(pool_input<T> p)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) T weights[FILTERS][R * R][CHANNELS];
    const pool_geometry &g = p.g;
    T *da = reinterpret_cast<T *>(memory);
    int n = blockIdx.x / p.bands, h0 = blockIdx.x % p.bands * p.rows, c0 = blockIdx.y * CHANNELS;
    int row = threadIdx.x / p.quads, column = threadIdx.x % p.quads * COLUMNS;
    bool valid = row < p.rows && h0 + row < g.height;
    T sums[CHANNELS][COLUMNS] = {};
    for (int e = threadIdx.x; e < FILTERS * p.da_lines * p.line; e += blockDim.x) da[e] = 0;
    for (int k0 = 0; k0 < g.filters; k0 += FILTERS) {
        __syncthreads();
        unpool<T, R>(p, da, n, k0, h0);
        load_weights<T, R>(p, weights, k0, c0);
        __syncthreads();
        for (int k = 0; valid && k < FILTERS; k++) {
#pragma unroll
            for (int r = 0; r < R; r++) { /* tap r reads row h + top - r, which is line row + R - 1 - r */
                const T *from = da + (k * p.da_lines + row + R - 1 - r) * p.line + column;
                T values[COLUMNS + R - 1];
#pragma unroll
                for (int i = 0; i < COLUMNS + R - 1; i++) values[i] = from[i];
#pragma unroll
                for (int s = 0; s < R; s++) {
#pragma unroll
                    for (int c = 0; c < CHANNELS; c++) {
                        T weight = weights[k][r * R + s][c];
#pragma unroll
                        for (int i = 0; i < COLUMNS; i++) sums[c][i] += values[i + R - 1 - s] * weight;
                    }
                }
            }
        }
    }
    if (!valid) return;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            if (c0 + c >= g.channels || column + i >= g.width) break;
            p.dx[(static_cast<int64_t>(n * g.channels + c0 + c) * g.height + h0 + row) * g.width + column + i] =
                sums[c][i];
        }
    }
}

/* Sizes: everything but the operands. */
template <typename T> static pool_input<T> shared_out(const sdlf_operation *op)
{
    pool_input<T> p = {};
    int side = conv2d_pool_options_of(op)->window.size[0];
    p.g = pool_backward_geometry_of(op);
    p.quads = (p.g.width + COLUMNS - 1) / COLUMNS;
    p.rows = p.quads < THREADS ? THREADS / p.quads : 1;
    if (p.rows > p.g.height) p.rows = p.g.height;
    p.bands = (p.g.height + p.rows - 1) / p.rows;
    p.line = p.quads * COLUMNS + side - 1;
    p.da_lines = p.rows + side - 1;
    return p;
}

template <typename T> static int64_t memory_of(const pool_input<T> &p)
{
    return FILTERS * static_cast<int64_t>(p.da_lines) * p.line * static_cast<int64_t>(sizeof(T));
}

extern "C" bool cuda_conv2d_pool_input_fits(const cuda_calculator *calculator, const sdlf_operation *op)
{
    bool fits = false;
    const conv2d_pool_operands operands = conv2d_pool_operands_of(op);
    if (calculator->math != SDLF_MATH_FP32 && operands.dy->dtype == SDLF_FLOAT32 && sdlf_tensor_present(operands.dx))
        return cuda_conv2d_pool_input_sliced_suits(calculator, op);
    with_float(operands.dy->dtype, [&](auto zero) {
        const auto p = shared_out<decltype(zero)>(op);
        fits = p.quads <= MOST_THREADS && memory_of(p) + (8 << 10) <= calculator->shared_most;
    });
    return fits;
}

extern "C" sdlf_status cuda_conv2d_pool_input(sdlf_calculator *base, const sdlf_operation *op)
{
    const conv2d_pool_operands operands = conv2d_pool_operands_of(op);
    cudaStream_t stream = cuda_stream(base);
    sdlf_status status = SDLF_OK;
    if (sdlf_tensor_count(operands.dx) == 0) return SDLF_OK;
    if (cuda_conv2d_pool_input_sliced_suits(cuda_calculator_from(base), op))
        return cuda_conv2d_pool_input_sliced(base, op);
    with_float(operands.dx->dtype, [&](auto zero) {
        using T = decltype(zero);
        pool_input<T> p = shared_out<T>(op);
        p.w = data_of<T>(*operands.w);
        p.dy = data_of<T>(*operands.dy);
        p.mask = data_of<uint8_t>(*operands.mask);
        p.dx = data_of<T>(*operands.dx);
        const int bytes = (int)memory_of(p), threads = (p.quads * p.rows + 31) / 32 * 32;
        dim3 grid((unsigned)(p.g.batch * p.bands), (unsigned)((p.g.channels + CHANNELS - 1) / CHANNELS));
        with_side(conv2d_pool_options_of(op)->window.size[0], [&](auto side) {
            status = allow_shared(conv2d_pool_input<T, side.value>, bytes);
            if (status == SDLF_OK) conv2d_pool_input<T, side.value><<<grid, threads, bytes, stream>>>(p);
        });
    });
    return status == SDLF_OK ? cuda_check_launch("conv2d_relu_max_pool_backward") : status;
}
