/* SPDX-License-Identifier: MIT */
/* gather_batch: samples of a resident data set, normalised and augmented on their way into a batch. Reads a byte (or an
 * element) and writes one for each pixel; a warped pixel reads four neighbours, mostly from cache.
 *
 * Plain: a thread an element of the batch. Warped: a block an image, whose warp one thread draws into shared memory; its
 * threads then stride over the pixels. The arithmetic is calculators/augmentation.h's, so the bits are every calculator's. */
#include "calculators/augmentation.h"
#include "calculators/cuda/kernels.cuh"

enum { THREADS = 256 };

template <typename X, typename T>
static __global__ void gather_plain(const X *x, const int32_t *index, T *y, int64_t count, int64_t row, int64_t plane,
                                    const __grid_constant__ sdlf_channel_normalization channels)
{
    await_kernels();
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
    await_kernels();
    for (int64_t e = grid_first(); e < count; e += grid_step()) y[e] = x[index[e / row] * row + e % row];
}

template <typename X>
static __device__ float pixel(const X *plane, int64_t h, int64_t w, int64_t height, int64_t width, bool reflect)
{
    h = sdlf_warp_source(h, height, reflect);
    w = sdlf_warp_source(w, width, reflect);
    return h < 0 || w < 0 ? 0.0f : static_cast<float>(plane[h * width + w]);
}

/* Between the four pixels around a point. */
template <typename X>
static __device__ float value_at(const X *plane, const sdlf_warp_point &from, int64_t height, int64_t width,
                                 bool reflect)
{
    return sdlf_bilinear(pixel(plane, from.h, from.w, height, width, reflect),
                         pixel(plane, from.h, from.w + 1, height, width, reflect),
                         pixel(plane, from.h + 1, from.w, height, width, reflect),
                         pixel(plane, from.h + 1, from.w + 1, height, width, reflect), from.down, from.right);
}

template <typename X, typename T>
static __global__ void gather_warped(const X *x, const int32_t *index, const int64_t *epoch, const int32_t *number,
                                     T *y, int64_t planes, int64_t height, int64_t width,
                                     const __grid_constant__ sdlf_channel_normalization channels,
                                     sdlf_augmentation augment)
{
    __shared__ sdlf_warp warp;
    await_kernels();
    int64_t n = blockIdx.x, image = index[n], area = height * width;
    if (threadIdx.x == 0)
        warp = sdlf_warp_make(&augment, number != NULL ? number[image] : image, *epoch, height, width);
    __syncthreads();
    for (int64_t e = threadIdx.x; e < planes * area; e += blockDim.x) {
        const int64_t c = e / area, of = channels.count > 1 ? c : 0;
        const int64_t h = e % area / width, w = e % width;
        const X *picture = x + image * planes * area;
        const sdlf_warp_point from = sdlf_warp_at(&warp, h, w);
        float value = value_at(picture + c * area, from, height, width, warp.reflect);
        if (warp.tinted) { /* which depends on all three channels */
            const float grey = planes == 3 ? sdlf_grey(value_at(picture, from, height, width, warp.reflect),
                                                       value_at(picture + area, from, height, width, warp.reflect),
                                                       value_at(picture + 2 * area, from, height, width, warp.reflect))
                                           : value;
            value = sdlf_warp_tint(&warp, value, grey, channels.mean[of]);
        }
        value = sdlf_normalize(value, channels.mean[of], channels.scale[of]);
        y[n * planes * area + e] = static_cast<T>(sdlf_warp_erases(&warp, h, w) ? 0.0f : value);
    }
}

template <typename X, typename T> static void gather_floats(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    const int32_t *index = data_of<int32_t>(op->in[1]);
    int64_t count = sdlf_tensor_count(&y), rows = y.shape.dim[0];
    const sdlf_channel_normalization channels = sdlf_gather_channels(op);
    if (sdlf_augmentation_wanted(&op->gather.augment))
        launch_overlapped(calculator, gather_warped<X, T>, (unsigned)rows, THREADS, 0, data_of<X>(x), index,
                          data_of<int64_t>(op->in[2]), data_of<int32_t>(op->in[3]), data_of<T>(y), x.shape.dim[1],
                          x.shape.dim[2], x.shape.dim[3], channels, op->gather.augment);
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
