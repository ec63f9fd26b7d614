/* SPDX-License-Identifier: MIT */
/* gather_batch: samples of a resident data set, normalised and augmented as they are copied into a batch. Reads a byte (or an element) and writes an
 * element per pixel; a warped pixel reads four neighbours, mostly from cache. The arithmetic, and so the bits, are every calculator's.
 *
 * Plain: one thread per element of the batch. Warped: one row of a block (threadIdx.y) per image; one thread draws the image's random warp into
 * shared memory, and the row's threads then stride over the pixels of all planes. Rows are so short that all images are in flight at once. */
#include "calculators/augmentation.h"
#include "calculators/cuda/divider.cuh"

enum { THREADS = 256, LEAST_LINE = 32 };

template <typename X, typename T>
static __global__ void gather_plain(const X *x, const int32_t *index, T *y, int64_t count, int64_t row, int64_t plane,
                                    const __grid_constant__ sdlf_channel_normalization channels)
{
    wait_and_launch_dependent_grids();
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        const X value = x[index[e / row] * row + e % row];
        const int64_t c = e % row / plane;
        const float mean = channels.mean[c], scale = channels.scale[c];
        if (sizeof(X) == sizeof(double))
            y[e] =
                static_cast<T>((static_cast<double>(value) - static_cast<double>(mean)) * static_cast<double>(scale));
        else
            y[e] = static_cast<T>(sdlf_normalize(static_cast<float>(value), mean, scale));
    }
}

template <typename I>
static __global__ void gather_integers(const I *x, const int32_t *index, I *y, int64_t count, int64_t row)
{
    wait_and_launch_dependent_grids();
    for (int64_t e = grid_first(); e < count; e += grid_step()) y[e] = x[index[e / row] * row + e % row];
}

/* The four pixels around a source point, for any plane of an image. */
template <typename Index> struct pixels_around {
    Index at[4]; /* in the plane; -1: background */
    float down, right;

    __device__ __forceinline__ pixels_around(const sdlf_warp_point &from, Index height, Index width, bool reflect)
        : down(from.down), right(from.right)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const Index h = static_cast<Index>(sdlf_warp_source(from.h + i / 2, height, reflect));
            const Index w = static_cast<Index>(sdlf_warp_source(from.w + i % 2, width, reflect));
            at[i] = h < 0 || w < 0 ? -1 : h * width + w;
        }
    }
    /* The bilinear interpolation between them. */
    template <typename X> __device__ __forceinline__ float value(const X *plane) const
    {
        float of[4];
#pragma unroll
        for (int i = 0; i < 4; i++) of[i] = at[i] < 0 ? 0.0f : static_cast<float>(plane[at[i]]);
        return sdlf_bilinear(of[0], of[1], of[2], of[3], down, right);
    }
};

template <typename Index> struct warped_shape {
    Index planes, height, width;
    divider<Index> by_width;
};

template <typename X, typename T, typename Index>
static __global__ void gather_warped(const X *x, const int32_t *index, const int64_t *epoch, const int32_t *number,
                                     T *y, int64_t rows, const warped_shape<Index> of,
                                     const __grid_constant__ sdlf_channel_normalization channels,
                                     sdlf_augmentation augment)
{
    __shared__ sdlf_warp warps[THREADS / LEAST_LINE];
    wait_and_launch_dependent_grids();
    const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y, image = n < rows ? index[n] : 0;
    sdlf_warp &warp = warps[threadIdx.y];
    if (threadIdx.x == 0 && n < rows)
        warp = sdlf_warp_make(&augment, number != NULL ? number[image] : image, *epoch, of.height, of.width);
    __syncthreads();
    if (n >= rows) return;
    const Index area = of.height * of.width;
    const X *picture = x + image * of.planes * area;
    T *to = y + n * of.planes * area;
    for (Index e = static_cast<Index>(threadIdx.x); e < area; e += static_cast<Index>(blockDim.x)) {
        Index w;
        const Index h = divide(e, of.by_width, w);
        const pixels_around<Index> around(sdlf_warp_at(&warp, h, w), of.height, of.width, warp.reflect);
        const bool erased = sdlf_warp_erases(&warp, h, w);
        const bool coloured = warp.tinted && of.planes == 3;
        float colour[3], grey = 0; /* depend on all three channels */
        if (coloured) {
#pragma unroll
            for (int c = 0; c < 3; c++) colour[c] = around.value(picture + c * area);
            sdlf_warp_turn(&warp, colour);
            grey = sdlf_grey(colour[0], colour[1], colour[2]);
        }
        for (Index c = 0; c < of.planes; c++) {
            const Index as = channels.count > 1 ? c : 0;
            float value = coloured ? (c == 0   ? colour[0]
                                      : c == 1 ? colour[1]
                                               : colour[2])
                                   : around.value(picture + c * area);
            if (warp.tinted) value = sdlf_warp_tint(&warp, value, coloured ? grey : value, channels.mean[as]);
            value = sdlf_normalize(value, channels.mean[as], channels.scale[as]);
            to[c * area + e] = static_cast<T>(erased ? 0.0f : value);
        }
    }
}

template <typename X, typename T> static void gather_floats(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    const int32_t *index = data_of<int32_t>(op->in[1]);
    int64_t count = sdlf_tensor_count(&y), rows = y.shape.dim[0];
    const sdlf_channel_normalization channels = sdlf_gather_channels(op);
    if (sdlf_augmentation_wanted(&op->gather.augment))
        with_narrow_index(count / rows + THREADS, [&](auto zero) {
            using Index = decltype(zero);
            const warped_shape<Index> of = {static_cast<Index>(x.shape.dim[1]), static_cast<Index>(x.shape.dim[2]),
                                            static_cast<Index>(x.shape.dim[3]), divider<Index>(x.shape.dim[3])};
            int64_t line = THREADS;
            while (line > LEAST_LINE && rows * line > INT64_C(2048) * calculator->multiprocessors) line /= 2;
            const int64_t lines = THREADS / line;
            launch_overlapped(calculator, gather_warped<X, T, Index>, (unsigned)cuda_ceil_div(rows, lines),
                              dim3((unsigned)line, (unsigned)lines), 0, data_of<X>(x), index,
                              data_of<int64_t>(op->in[2]), data_of<int32_t>(op->in[3]), data_of<T>(y), rows, of,
                              channels, op->gather.augment);
        });
    else
        launch_overlapped(calculator, gather_plain<X, T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                          data_of<X>(x), index, data_of<T>(y), count, count / rows, count / rows / channels.count,
                          channels);
}

template <typename I> static void gather_whole(const cuda_calculator *calculator, const sdlf_operation *op)
{
    int64_t count = sdlf_tensor_count(&op->out[0]), rows = op->out[0].shape.dim[0];
    launch_overlapped(calculator, gather_integers<I>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                      data_of<I>(op->in[0]), data_of<int32_t>(op->in[1]), data_of<I>(op->out[0]), count, count / rows);
}

extern "C" sdlf_status gather_batch_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    if (sdlf_auto_augment_wanted(&op->gather.automatic)) {
        const sdlf_operation rest = sdlf_changed_rest(op);
        const sdlf_status status = cuda_auto_augment(base, op);
        return status == SDLF_OK ? gather_batch_cuda(base, &rest) : status;
    }
    sdlf_dtype from = op->in[0].dtype, to = op->out[0].dtype;
    if (to == SDLF_UINT8)
        gather_whole<uint8_t>(calculator, op);
    else if (to == SDLF_INT32)
        gather_whole<int32_t>(calculator, op);
    else if (to == SDLF_INT64)
        gather_whole<int64_t>(calculator, op);
    else
        with_float(to, [&](auto zero) {
            using T = decltype(zero);
            if (from == SDLF_UINT8)
                gather_floats<uint8_t, T>(calculator, op);
            else
                gather_floats<T, T>(calculator, op);
        });
    return cuda_check_launch("gather_batch");
}
