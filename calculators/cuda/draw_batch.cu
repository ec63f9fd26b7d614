/* SPDX-License-Identifier: MIT */
/* next_batch fused with the gather_batch that uses its indices, in one launch.
 *
 * A thread produces four pixels of the batch (one, if images are not a multiple of four pixels). It looks up its image itself, at the
 * cursor in the order of the epoch, and loads the pixels speculatively, while the previous kernel is still running; afterwards it
 * reloads them if the cursor or the order has changed. The first block also writes the other outputs of next_batch. The last block to
 * have read the cursor advances it. Reads a byte and writes a float per pixel. */
#include "calculators/augmentation.h"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/launch_fusion.h"

enum { THREADS = 256 };

struct draw {
    const int32_t *order, *labels; /* labels and batch_labels may be NULL */
    const float *rates;
    const int64_t *first;
    int64_t *cursor, *step;
    int32_t *index, *batch_labels;
    float *rate;
    unsigned *ticket;
    int64_t steps, drawn, samples; /* sizes: rates; order; data set */
    const uint8_t *x;
    float *y;
    int count, row; /* images in a batch; elements in an image */
    float mean, scale;
};

/* The same arithmetic as in calculators/augmentation.h. */
static __device__ __forceinline__ float normalized(uint8_t value, const draw &d)
{
    return sdlf_normalize(static_cast<float>(value), d.mean, d.scale);
}

template <int EACH> static __device__ __forceinline__ uchar4 read_pixels(const draw &d, int32_t image, int column)
{
    const uint8_t *from = d.x + static_cast<int64_t>(image) * d.row + column;
    return EACH == 4 ? *reinterpret_cast<const uchar4 *>(from) : make_uchar4(*from, 0, 0, 0);
}

/* What a thread will need if the previous kernel leaves cursor and order unchanged. */
struct guess {
    int64_t at;
    int32_t image; /* -1: cursor or index out of range */
    uchar4 pixels;
};

template <int EACH> static __device__ __forceinline__ guess guess_pixels(const draw &d, int n, int column)
{
    guess g = {__ldcg(d.cursor), -1, {}};
    if (g.at < 0 || g.at >= d.steps || (g.at + 1) * d.count > d.drawn || n >= d.count) return g;
    if (blockIdx.x == 0 && threadIdx.x == 0) prefetch_line(d.rates + g.at);
    const int32_t image = __ldcg(d.order + g.at * d.count + n);
    if (image < 0 || image >= d.samples) return g;
    if (d.labels != nullptr && column < 4) prefetch_line(d.labels + image);
    g.image = image;
    g.pixels = read_pixels<EACH>(d, image, column);
    return g;
}

/* A thread processes EACH pixels. */
template <int EACH> static __global__ void __launch_bounds__(THREADS) draw_batch(draw d)
{
    const int e = (blockIdx.x * THREADS + threadIdx.x) * EACH, n = e / d.row, column = e % d.row;
    const guess g = guess_pixels<EACH>(d, n, column);
    wait_and_launch_dependent_grids();
    const int64_t at = __ldcg(d.cursor);
    const int32_t image = g.image >= 0 ? __ldcg(d.order + g.at * d.count + n) : -1;
    const int32_t *order = d.order + at * d.count;
    uchar4 four = g.pixels;
    if (n < d.count && (at != g.at || image < 0 || image != g.image))
        four = read_pixels<EACH>(d, __ldcg(order + n), column);
    __syncthreads_or(at < 0); /* all threads have read the cursor */
    const unsigned others = gridDim.x - 1, before = threadIdx.x == 0 ? atomicInc(d.ticket, others) : 0;
    if (n < d.count) {
        if (EACH == 4)
            *reinterpret_cast<float4 *>(d.y + e) =
                make_float4(normalized(four.x, d), normalized(four.y, d), normalized(four.z, d), normalized(four.w, d));
        else
            d.y[e] = normalized(four.x, d);
    }
    if (blockIdx.x == 0) {
        for (int i = threadIdx.x; i < d.count; i += THREADS) {
            int32_t image = __ldcg(order + i);
            d.index[i] = image;
            if (d.labels != nullptr) d.batch_labels[i] = d.labels[image];
        }
        if (threadIdx.x == 0) {
            *d.rate = d.rates[at];
            *d.step = *d.first + at;
        }
    }
    if (threadIdx.x == 0 && before == others) *d.cursor = at + 1;
}

extern "C" sdlf_status cuda_draw_batch(sdlf_calculator *base, const sdlf_operation *next, const sdlf_operation *gather)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = gather->in[0], &y = gather->out[0];
    draw d = {.order = data_of<int32_t>(next->in[0]),
              .labels = optional<int32_t>(next->in[3]),
              .rates = data_of<float>(next->in[1]),
              .first = data_of<int64_t>(next->in[2]),
              .cursor = data_of<int64_t>(next->out[0]),
              .step = data_of<int64_t>(next->out[3]),
              .index = data_of<int32_t>(next->out[1]),
              .batch_labels = optional<int32_t>(next->out[4]),
              .rate = data_of<float>(next->out[2]),
              .ticket = calculator->tickets,
              .steps = next->in[1].shape.dim[0],
              .drawn = next->in[0].shape.dim[0],
              .samples = x.shape.dim[0],
              .x = data_of<uint8_t>(x),
              .y = data_of<float>(y)};
    const int64_t count = sdlf_tensor_count(&y);
    d.count = (int)y.shape.dim[0];
    d.row = (int)(count / d.count);
    d.mean = gather->gather.mean;
    d.scale = gather->gather.scale;
    const bool quads =
        d.row % 4 == 0 && reinterpret_cast<uintptr_t>(d.x) % 4 == 0 && reinterpret_cast<uintptr_t>(d.y) % 16 == 0;
    const unsigned blocks = (unsigned)((count / (quads ? 4 : 1) + THREADS - 1) / THREADS);
    if (quads)
        launch_overlapped(calculator, draw_batch<4>, blocks, THREADS, 0, d);
    else
        launch_overlapped(calculator, draw_batch<1>, blocks, THREADS, 0, d);
    return cuda_check_launch("gather_batch");
}
