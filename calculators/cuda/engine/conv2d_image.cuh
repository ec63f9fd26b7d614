/* SPDX-License-Identifier: MIT */
/* Convolutions whose result is an image: forward (fprop) and the gradient by the input (dgrad), as implicit GEMM. Rows of the tile are
 * pixels of the result, columns its channels; the reduction goes over taps of the filter and, within a tap, over the channels of the
 * image that is read, CHUNK at a time.
 *
 * The gradient by the input of a convolution of stride s falls into s x s classes of pixels, by their row and column modulo s: a class is
 * a convolution of stride 1 with every s-th tap, from the last to the first. So both are lists of classes; forward has one. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_IMAGE_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_IMAGE_CUH

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/engine/mainloop.cuh"
#include "calculators/cuda/nhwc/vector8.cuh"

enum { IMAGE_CLASSES = 4 }; /* strides of 2 x 2 */

/* A class of the result's pixels; pairs are of height and width. */
struct image_class {
    CUtensorMap read;          /* im2col over the image that is read */
    int tiles;                 /* of BM pixels */
    int pixels;                /* N count[0] count[1] */
    int taps[2];               /* of the filter that the class sees; a product of 0: its pixels are 0 */
    int tap_offset[2];         /* pixels of the image that is read from a tap to the next */
    int first[2], step[2];     /* row and column of the filter of a tap: first + step tap */
    int lower[2], stride[2];   /* base pixel of result pixel i: lower + stride i */
    divider<int32_t> count[2]; /* pixels of the class in an image */
    int start[2], spread[2];   /* where pixel i of the class lies in the result: start + spread i */
};

struct image_params {
    image_class of[IMAGE_CLASSES];
    CUtensorMap
        weights; /* (channels of x, taps, filters), tiled; where the reduction's must be innermost, (filters, taps, channels) */
    int classes, column_tiles, chunks; /* chunks of channels of the image that is read */
    int cluster;                       /* blocks that share a tile's reduction (split-K), and then its rows */
    int filter_width;
    int channels, height, width; /* of the result */
    const float *bias;
    const void *residual;
    void *result;
    sdlf_activation activation;
};

template <typename T, int COLUMNS, int CHUNK_BYTES, int DGRAD> struct image_product {
    using Element = T;
    using Params = image_params;
    /* forward reads filters as they lie, channels of x within a tap; backward the reduction goes over filters: of 16 bits as they lie, too */
    static constexpr int SIZE = sizeof(T), CHUNK = CHUNK_BYTES / SIZE, K = K_BYTES / SIZE;
    static constexpr int BM = 128, BN = COLUMNS, MN_A = 0, MN_B = DGRAD && SIZE == 2;
    static constexpr int CHUNK_A = CHUNK, CHUNK_B = MN_B ? 64 : CHUNK;
    static constexpr int STAGES = BN == 128 ? 3 : 4, PARTS = K / CHUNK;
    static constexpr bool CLUSTERED = true;

    struct Place {
        int part, row, column;  /* class, first pixel, first channel */
        int rank, first, steps; /* in the cluster; the block's first k-step, and how many it has */
        int w, h, n;            /* base pixel */
    };

    static __device__ __forceinline__ Place place(const Params &p)
    {
        Place at = {};
        const int number = static_cast<int>(blockIdx.x) / p.cluster;
        int tile = number / p.column_tiles;
        at.rank = static_cast<int>(blockIdx.x) - number * p.cluster;
        at.column = (number - tile * p.column_tiles) * BN;
        while (at.part + 1 < p.classes && tile >= p.of[at.part].tiles) tile -= p.of[at.part++].tiles;
        const image_class &of = p.of[at.part];
        at.row = tile * BM;
        int i, j;
        at.n = divide(divide(at.row, of.count[1], j), of.count[0], i);
        at.h = of.lower[0] + of.stride[0] * i;
        at.w = of.lower[1] + of.stride[1] * j;
        const int steps = (of.taps[0] * of.taps[1] * p.chunks + PARTS - 1) / PARTS;
        const int each = (steps + p.cluster - 1) / p.cluster;
        at.first = at.rank * each;
        at.steps = min(each, steps - at.first);
        return at;
    }

    static __device__ __forceinline__ void load(const Params &p, const Place &at, int step, uint32_t a, uint32_t b,
                                                uint32_t barrier)
    {
        const image_class &of = p.of[at.part];
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const int number = (at.first + step) * PARTS + part;
            int tap = number / p.chunks, chunk = number - tap * p.chunks;
            if (tap >= of.taps[0] * of.taps[1]) { /* beyond the last: channels that do not exist */
                tap = 0;
                chunk = p.chunks;
            }
            const int i = tap / of.taps[1], j = tap - i * of.taps[1];
            const int filter = (of.first[0] + of.step[0] * i) * p.filter_width + of.first[1] + of.step[1] * j;
            tma_load_im2col(a + part * BM * CHUNK_BYTES, &of.read, barrier, chunk * CHUNK, at.w, at.h, at.n,
                            of.tap_offset[1] * j, of.tap_offset[0] * i);
            if constexpr (MN_B) {
#pragma unroll
                for (int c = 0; c < BN; c += 64)
                    tma_load_3d(b + c * K_BYTES + part * CHUNK * 64 * 2, &p.weights, barrier, at.column + c, filter,
                                chunk * CHUNK);
            } else {
                tma_load_3d(b + part * BN * CHUNK_BYTES, &p.weights, barrier, chunk * CHUNK, filter, at.column);
            }
        }
    }

    static __device__ __forceinline__ float4 sum_of(const float *from, int cluster)
    {
        return cluster > 1 ? add_blocks(from, cluster) : *reinterpret_cast<const float4 *>(from);
    }

    /* 8 channels of a pixel a thread. */
    template <int CONSUMERS>
    static __device__ __forceinline__ void finish(const Params &p, const Place &at, const float *sums, int thread)
    {
        constexpr int ACROSS = BN / 8;
        const int rows = BM / p.cluster, end = min((at.rank + 1) * rows, p.of[at.part].pixels - at.row);
        const image_class &of = p.of[at.part];
        const int across = thread % ACROSS * 8, channel = at.column + across;
        if (channel >= p.channels) return;
        float bias[8] = {};
        if (p.bias != nullptr) {
            for (int v = 0; v < 8; v++) bias[v] = p.bias[channel + v];
        }
        for (int r = at.rank * rows + thread / ACROSS; r < end; r += CONSUMERS / ACROSS) {
            int i, j;
            const int n = divide(divide(at.row + r, of.count[1], j), of.count[0], i);
            const int h = of.start[0] + of.spread[0] * i, w = of.start[1] + of.spread[1] * j;
            const int64_t pixel = (static_cast<int64_t>(n) * p.height + h) * p.width + w;
            const int64_t to = pixel * p.channels + channel;
            const float *from = sums + r * (BN + ENGINE_PAD) + across;
            const float4 low = sum_of(from, p.cluster), high = sum_of(from + 4, p.cluster);
            const float sum[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            const float8 more = unpack8(load_bits8(static_cast<const T *>(p.residual), to / 8));
            float8 value;
            for (int v = 0; v < 8; v++) value.at[v] = activate_often(p.activation, sum[v] + bias[v] + more.at[v]);
            store8(static_cast<T *>(p.result), to / 8, value);
        }
    }
};

#endif
