/* SPDX-License-Identifier: MIT */
/* 1x1 convolutions, forward, with stride 1, of row-major images, by warps that load what they multiply themselves: numbers of the image go
 * from memory straight into registers, so that rows of any length are read as they lie; prepacked weights lie in shared memory
 * (pointwise_warps.cu). In fp32, from compute capability 9.0 on. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_H
#define SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WARPS_CHANNELS = 8,   /* of a step of the sum */
    WARPS_AREA = 49,      /* pixels of images whose rows are no multiple of 16 bytes */
    WARPS_AHEAD = 4,      /* channels of the image that are on their way: half, so that a step's meet their registers */
    WARPS_MOST = 12,      /* of a block */
    WARPS_BARRIERS = 256, /* bytes, in shared memory before all else; what follows begins at a multiple of 128 */
};

typedef struct cuda_pointwise_warps {
    const float *x, *w, *bias, *residual; /* w: prepacked */
    float *y;
    float low, high; /* what the activation keeps numbers within */
    int channels, filters, area;
    int pixels;        /* of all images */
    int steps;         /* of 8 channels */
    int groups;        /* of filters: a block has one */
    int slices, tiles; /* warps of a block: parts of the sum x tiles of pixels */
    int64_t shared;    /* bytes of a block: barriers, its weights, and later parts of its sums */
    bool fresh;        /* the weights were prepacked by the kernel before this one */
} cuda_pointwise_warps;

/* The kernels: what a warp makes. */
typedef struct cuda_pointwise_warps_tile {
    int wide;              /* pixels of a read: 1 for images of WARPS_AREA pixels, else 4 */
    int filters, pixels;   /* of a warp */
    int most, most_blocks; /* warps of a block; blocks of as many that a multiprocessor's registers are enough for */
    int step, away;        /* cycles: of a step of four warps; until numbers of x are there */
} cuda_pointwise_warps_tile;
enum { WARPS_TILES = 6 };
extern const cuda_pointwise_warps_tile cuda_pointwise_warps_tiles[WARPS_TILES];

sdlf_status cuda_pointwise_warps_run(sdlf_calculator *calculator, const cuda_pointwise_warps *problem, int tile);
/* Queue the preparation of w (K,C), for that tile. */
sdlf_status cuda_pointwise_warps_prepare(sdlf_calculator *calculator, const cuda_pointwise_warps *problem, int tile,
                                         const float *w, void *to);

bool cuda_pointwise_warps_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t cuda_pointwise_warps_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_pointwise_warps_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_pointwise_warps_cuda, conv2d_pointwise_warps_prepare_cuda;

#ifdef __cplusplus
}
#endif
#endif
