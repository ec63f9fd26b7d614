/* SPDX-License-Identifier: MIT */
/* What the kernels of engine/conv2d_image.cuh and engine/conv2d_halo.cuh are told. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_IMAGE_PARAMS_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_IMAGE_PARAMS_CUH

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/nhwc/vector8.cuh"
#include "calculators/cuda/tma.cuh"

enum { IMAGE_CLASSES = 4 }; /* strides of 2 x 2 */

/* A class of the result's pixels; pairs are of height and width. */
struct image_class {
    CUtensorMap read;          /* im2col over the image that is read, or boxes of it */
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
    CUtensorMap residual_tiles;        /* (channels, pixels), tiled: 128 bytes of 128 pixels */
    int classes, column_tiles, chunks; /* chunks of channels of the image that is read */
    int row_tiles, slots;              /* of all classes; blocks that share a column's tiles */
    int cluster;                       /* blocks that share a tile's reduction (split-K), and then its columns */
    int filter_width;
    int channels, height, width; /* of the result */
    int block_tiles; /* of several groups: tiles of columns of a block (engine/groups.h); 0: there is one group */
    int block_columns, block_reads; /* channels of the result and of the image that is read of a block */
    const float *bias;
    const void *residual;
    void *result;
    sdlf_activation activation;
    line_activation line;  /* the same, where it is one */
    uint32_t clip_pair[2]; /* its bounds, each as two numbers of 16 bits */
    float2 *parts;         /* of engine_moments, (slots, channels), and their rows; NULL: none are wanted */
    float *rows;
};

/* Sets the activation, of results of that type. */
void engine_set_activation(image_params *params, const sdlf_activation &activation, sdlf_dtype dtype);

/* The result's channels of a column of tiles: from `first` to before `end`. */
struct channel_range {
    int first, end;
};

static __device__ __forceinline__ channel_range channels_of(const image_params &p, int tile, int columns)
{
    if (p.block_tiles == 0) return {tile * columns, p.channels};
    const int block = tile / p.block_tiles, first = block * p.block_columns;
    return {first + (tile - block * p.block_tiles) * columns, min(first + p.block_columns, p.channels)};
}

/* Blocks for each column of tiles (engine/conv2d_image.cu). */
int engine_slots(const cuda_calculator *calculator, int64_t row_tiles, int64_t column_tiles);

/* Is it computed by engine/conv2d_halo.cu? depth: channels of the image that is read; params: with the class, and what the epilogue needs. */
bool engine_runs_halo(const cuda_calculator *calculator, const engine_conv2d *conv, int64_t depth,
                      const image_params *params);
sdlf_status engine_run_halo(const cuda_calculator *calculator, const engine_conv2d *conv, int64_t depth, bool backward,
                            const image_params *params);

#endif
