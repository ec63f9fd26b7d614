/* SPDX-License-Identifier: MIT */
/* The parameters of the kernels of engine/conv2d_image.cuh and engine/conv2d_halo.cuh. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_IMAGE_PARAMS_CUH
#define SDLF_CALCULATORS_CUDA_ENGINE_IMAGE_PARAMS_CUH

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/nhwc/vector8.cuh"
#include "calculators/cuda/tma.cuh"

enum { IMAGE_CLASSES = 4 }; /* strides of 2 x 2 */

/* A class of the output's pixels; pairs are of height and width. */
struct dgrad_phase {
    CUtensorMap read;          /* im2col map of the input image, or a tiled map of it */
    int tiles;                 /* tiles of BM pixels */
    int pixels;                /* N count[0] count[1] */
    int taps[2];               /* filter taps that contribute to the class; if either is 0, its pixels are 0 */
    int tap_offset[2];         /* pixels of the input image between adjacent taps */
    int first[2], step[2];     /* filter row and column of a tap: first + step tap */
    int lower[2], stride[2];   /* base pixel of output pixel i: lower + stride i */
    divider<int32_t> count[2]; /* pixels of the class in an image */
    int start[2], spread[2];   /* position of pixel i of the class in the output: start + spread i */
};

struct image_params {
    dgrad_phase of[IMAGE_CLASSES];
    CUtensorMap
        weights; /* (channels of x, taps, filters), tiled; if the reduction must be innermost, (filters, taps, channels) */
    CUtensorMap residual_tiles;        /* (channels, pixels), tiled: 128 bytes of 128 pixels */
    int classes, column_tiles, chunks; /* chunks of channels of the input image */
    int row_tiles, slots;              /* row_tiles: of all classes; slots: blocks per column of tiles */
    int cluster;                       /* blocks that split a tile's reduction (split-K), and then its columns */
    int filter_width;
    int channels, height, width;    /* of the output */
    bool pools;                     /* the output is max-pooled: its height and width are half of of[0].count */
    int block_tiles;                /* for several groups: tiles of columns per block (engine/groups.h); 0: one group */
    int block_columns, block_reads; /* output and input channels per block */
    const float *bias;
    const void *residual;
    void *result;
    sdlf_activation activation;
    piecewise_linear_activation line; /* the same, if it is piecewise linear */
    uint32_t clip_pair[2];            /* its bounds, each as a pair of 16-bit values */
    float2 *parts;                    /* of engine_bn_partials, (slots, channels), and their rows; NULL: not computed */
    float *rows;
};

/* Set all members but `read` and `tiles` (engine/conv2d_phases.cu): fprop's only class; dgrad's class of the pixels whose row and column are `at`
 * modulo the stride. */
void engine_forward_phase(const engine_conv2d *conv, dgrad_phase *of);
void engine_backward_phase(const engine_conv2d *conv, const int at[2], dgrad_phase *of);
/* Sets `read`: the im2col map of `chunk` of the input image's channels. False: the driver refuses it. */
bool engine_map_windows(const engine_conv2d *conv, bool backward, int64_t channels, int chunk, dgrad_phase *of);

/* Sets the activation, for outputs of that type. */
void engine_set_activation(image_params *params, const sdlf_activation &activation, sdlf_dtype dtype);

/* The output channels of a column of tiles: from `first` to before `end`. */
struct channel_range {
    int first, end;
};

static __device__ __forceinline__ channel_range channels_of(const image_params &p, int tile, int columns)
{
    if (p.block_tiles == 0) return {tile * columns, p.channels};
    const int block = tile / p.block_tiles, first = block * p.block_columns;
    return {first + (tile - block * p.block_tiles) * columns, min(first + p.block_columns, p.channels)};
}

/* The scheduler (engine/scheduler.cu): true if there should be one block per tile; blocks per column of tiles otherwise; blocks that split the
 * reduction of each tile, of `steps` k-steps; and true if tiles should have 64 instead of 128 columns. */
bool engine_prefers_single_tiles(const cuda_calculator *calculator, int64_t tiles);
int engine_slots(const cuda_calculator *calculator, int64_t row_tiles, int64_t column_tiles);
int engine_cluster_of(const cuda_calculator *calculator, int64_t tiles, int64_t steps, int columns);
bool engine_prefers_narrow(const cuda_calculator *calculator, int64_t channels, int64_t row_tiles);

/* True if engine/conv2d_halo.cu computes it. depth: channels of the input image; params: with the class, and what the epilogue needs. */
bool engine_runs_halo(const cuda_calculator *calculator, const engine_conv2d *conv, int64_t depth,
                      const image_params *params);
sdlf_status engine_run_halo(const cuda_calculator *calculator, const engine_conv2d *conv, int64_t depth, bool backward,
                            const image_params *params);

#endif
