/* SPDX-License-Identifier: MIT */
/* Tiled convolution: what a block reads repeatedly is in shared memory, what a thread accumulates in registers.
 *
 * Forward and backward input (which is a convolution of dy, see conv2d/implicit.h): a block computes up to 256 pixels of one image, a
 * rectangle, for 32 filters. Channel by channel it loads the rectangle with its halo and the weights of those filters, 64 taps at a time. A
 * thread computes 4 pixels x 8 filters: for each tap it reads 4 elements of the image and 8 weights, which a whole warp shares, and does 32
 * multiply-adds. Loads the image once for every 32 filters, with the halo, and the weights once for every rectangle.
 *
 * Backward weights: a block computes 32 filters x 64 taps (c,r,s) of dw, a thread 8 filters of one tap, over the rectangles of its share of
 * the images, with dy and x in shared memory. The shares' partial sums go to the workspace and are added in order.
 *
 * Rectangles shrink until they fit 48 KiB; windows so large that not even one pixel fits are not supported (lab_conv2d_tiled_takes). */
#include "calculators/cuda/conv2d/implicit.cuh"
#include "lab/conv2d_tiled.h"

enum { THREADS = TILED_THREADS, FILTERS = TILED_FILTERS, TAPS = TILED_TAPS, PIXELS = 4, SHARE = 8 };

template <typename T> static __device__ T *shared_memory()
{
    extern __shared__ __align__(16) unsigned char tiled_shared[];
    return reinterpret_cast<T *>(tiled_shared);
}

/* to[0 .. height * width) = the rectangle of the image from (top, left) on, 0 outside. */
template <typename T>
static __device__ void load_rectangle(T *to, const T *image, const cuda_implicit &p, int top, int left, int height,
                                      int width)
{
    for (int e = static_cast<int>(threadIdx.x); e < height * width; e += THREADS) {
        int row = top + e / width, column = left + e % width;
        bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(p.source_height) &&
                      static_cast<unsigned>(column) < static_cast<unsigned>(p.source_width);
        to[e] = inside ? image[static_cast<int64_t>(row) * p.source_width + column] : T(0);
    }
}

static __device__ __forceinline__ int least(const implicit_span &span)
{
    int last = span.first + (span.count - 1) * span.spacing;
    return span.count == 0 ? 0 : span.first < last ? span.first : last;
}

static __device__ __forceinline__ int reach(const implicit_span &span)
{
    return span.count == 0 ? 0 : (span.count - 1) * (span.spacing < 0 ? -span.spacing : span.spacing);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) tiled(const __grid_constant__ cuda_implicit p, lab_tiled t)
{
    T *image = shared_memory<T>(), *weights = image + t.image_numbers;
    int64_t block = blockIdx.x;
    int right = static_cast<int>(block % t.across);
    block /= t.across;
    int down = static_cast<int>(block % t.down);
    block /= t.down;
    int first_filter = static_cast<int>(block % p.row_tiles) * FILTERS;
    block /= p.row_tiles;
    int phase[2];
    phase[1] = static_cast<int>(block % p.phases[1]);
    block /= p.phases[1];
    phase[0] = static_cast<int>(block % p.phases[0]);
    block /= p.phases[0];
    int group = static_cast<int>(block % p.groups);
    int64_t n = block / p.groups;
    implicit_span span[2] = {implicit_span_of(p, 0, phase[0]), implicit_span_of(p, 1, phase[1])};
    int top = down * t.height, left = right * t.width;
    if (top >= span[0].pixels || left >= span[1].pixels) return; /* a phase smaller than the largest */
    int step[2] = {p.transposed ? 1 : p.stride[0], p.transposed ? 1 : p.stride[1]};
    int channels = p.depth / (p.taps[0] * p.taps[1]), taps = span[0].count * span[1].count;
    const T *a = static_cast<const T *>(p.a) + group * p.a_group;
    if (p.transposed)
        a += static_cast<int64_t>(p.rows) * channels * (span[0].before * p.taps[1] + span[0].count * span[1].before);
    const T *source = static_cast<const T *>(p.source) + n * p.source_image + group * p.source_group;
    int low[2] = {least(span[0]), least(span[1])};
    int height = (t.height - 1) * step[0] + reach(span[0]) + 1, width = (t.width - 1) * step[1] + reach(span[1]) + 1;

    /* The thread's pixels are 64 apart in the rectangle, row by row, so that those of a warp are neighbours. */
    int lane = static_cast<int>(threadIdx.x) % 64, filter = static_cast<int>(threadIdx.x) / 64 * SHARE;
    int place[PIXELS];
    for (int i = 0; i < PIXELS; i++) {
        int e = lane + i * 64;
        if (e >= t.height * t.width) e = 0; /* computed and dropped */
        place[i] = (e / t.width * step[0] - low[0]) * width + e % t.width * step[1] - low[1];
    }
    T sum[PIXELS][SHARE] = {};
    for (int c = 0; c < channels; c++) {
        __syncthreads();
        load_rectangle(image, source + c * p.source_plane, p, top * step[0] + low[0], left * step[1] + low[1], height,
                       width);
        for (int begin = 0; begin < taps; begin += TAPS) {
            int count = taps - begin < TAPS ? taps - begin : TAPS;
            if (begin > 0) __syncthreads();
            for (int e = static_cast<int>(threadIdx.x); e < count * FILTERS; e += THREADS) {
                int k = first_filter + e / count, tap = begin + e % count;
                weights[e % count * FILTERS + e / count] =
                    k < p.rows ? a[(static_cast<int64_t>(k) * channels + c) * taps + tap] : T(0);
            }
            __syncthreads();
            int r = begin / span[1].count, s = begin % span[1].count;
            for (int tap = 0; tap < count; tap++) {
                int shift = (span[0].first + r * span[0].spacing) * width + span[1].first + s * span[1].spacing;
                T x[PIXELS], w[SHARE];
#pragma unroll
                for (int i = 0; i < PIXELS; i++) x[i] = image[place[i] + shift];
#pragma unroll
                for (int k = 0; k < SHARE; k += 4) read_four(w + k, weights + tap * FILTERS + filter + k);
#pragma unroll
                for (int i = 0; i < PIXELS; i++) {
#pragma unroll
                    for (int k = 0; k < SHARE; k++) sum[i][k] += x[i] * w[k];
                }
                if (++s == span[1].count) {
                    s = 0;
                    r++;
                }
            }
        }
    }
    for (int i = 0; i < PIXELS; i++) {
        int e = lane + i * 64, row = top + e / t.width, column = left + e % t.width;
        if (e >= t.height * t.width || row >= span[0].pixels || column >= span[1].pixels) continue;
        int64_t at = n * p.result_image + group * p.result_group +
                     (static_cast<int64_t>(row) * p.phases[0] + phase[0]) * p.result_width +
                     static_cast<int64_t>(column) * p.phases[1] + phase[1];
#pragma unroll
        for (int k = 0; k < SHARE; k++) {
            int m = first_filter + filter + k;
            if (m < p.rows) implicit_store(p, group, m, at + m * p.result_row, sum[i][k]);
        }
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    tiled_weights(const __grid_constant__ cuda_implicit p, lab_tiled t, int64_t batch)
{
    T *image = shared_memory<T>(), *gradient = image + t.image_numbers; /* [pixel][filter] */
    int64_t block = blockIdx.x;
    int first_tap = static_cast<int>(block % p.column_tiles) * TAPS;
    block /= p.column_tiles;
    int first_filter = static_cast<int>(block % p.row_tiles) * FILTERS;
    block /= p.row_tiles;
    int group = static_cast<int>(block % p.groups), split = static_cast<int>(block / p.groups);
    int window = p.taps[0] * p.taps[1], last_tap = first_tap + TAPS < p.columns ? first_tap + TAPS : p.columns;
    int first_channel = first_tap / window, channels = (last_tap - 1) / window + 1 - first_channel;
    int height = (t.height - 1) * p.stride[0] + (p.taps[0] - 1) * p.dilation[0] + 1;
    int width = (t.width - 1) * p.stride[1] + (p.taps[1] - 1) * p.dilation[1] + 1;

    int own = first_tap + static_cast<int>(threadIdx.x) % TAPS, filter = static_cast<int>(threadIdx.x) / TAPS * SHARE;
    int tap = own < last_tap ? own : first_tap; /* computed and dropped */
    int place = ((tap / window - first_channel) * height + tap % window / p.taps[1] * p.dilation[0]) * width +
                tap % p.taps[1] * p.dilation[1];
    T sum[SHARE] = {};
    int64_t rectangles = batch * t.down * t.across;
    for (int64_t e = rectangles * split / p.splits; e < rectangles * (split + 1) / p.splits; e++) {
        int left = static_cast<int>(e % t.across) * t.width, top = static_cast<int>(e / t.across % t.down) * t.height;
        int64_t n = e / t.across / t.down;
        const T *x = static_cast<const T *>(p.source) + n * p.source_image + group * p.source_group;
        const T *dy = static_cast<const T *>(p.a) + n * p.a_image + group * p.a_group;
        __syncthreads();
        for (int c = 0; c < channels; c++)
            load_rectangle(image + c * height * width, x + (first_channel + c) * p.source_plane, p,
                           top * p.stride[0] - p.padding[0], left * p.stride[1] - p.padding[1], height, width);
        for (int i = static_cast<int>(threadIdx.x); i < t.height * t.width * FILTERS; i += THREADS) {
            int pixel = i % (t.height * t.width), k = i / (t.height * t.width);
            int row = top + pixel / t.width, column = left + pixel % t.width;
            bool inside = row < p.extent[0] && column < p.extent[1] && first_filter + k < p.rows;
            gradient[pixel * FILTERS + k] =
                inside ? dy[(first_filter + k) * p.a_row + static_cast<int64_t>(row) * p.extent[1] + column] : T(0);
        }
        __syncthreads();
        for (int row = 0; row < t.height; row++) {
            for (int column = 0; column < t.width; column++) {
                T value = image[place + row * p.stride[0] * width + column * p.stride[1]];
                T dy_here[SHARE];
#pragma unroll
                for (int k = 0; k < SHARE; k += 4)
                    read_four(dy_here + k, gradient + (row * t.width + column) * FILTERS + filter + k);
#pragma unroll
                for (int k = 0; k < SHARE; k++) sum[k] += value * dy_here[k];
            }
        }
    }
    if (own >= last_tap) return;
    T *dw = static_cast<T *>(p.result) + split * p.result_count + group * p.result_group + own;
#pragma unroll
    for (int k = 0; k < SHARE; k++) {
        if (first_filter + filter + k < p.rows) dw[(first_filter + filter + k) * p.result_row] = sum[k];
    }
}

extern "C" sdlf_status lab_tiled_run(sdlf_calculator *base, const cuda_implicit *p, const lab_tiled *t,
                                     sdlf_dtype dtype, int64_t batch)
{
    cudaStream_t stream = cuda_stream(base);
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        unsigned blocks = static_cast<unsigned>(lab_tiled_blocks(p, t, batch));
        size_t bytes = static_cast<size_t>(t->image_numbers + t->other_numbers) * sizeof(T);
        if (p->weights)
            tiled_weights<T><<<blocks, THREADS, bytes, stream>>>(*p, *t, batch);
        else
            tiled<T><<<blocks, THREADS, bytes, stream>>>(*p, *t);
    });
    return cuda_check_launch("conv2d, tiled");
}
