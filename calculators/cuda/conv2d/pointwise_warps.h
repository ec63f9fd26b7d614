/* SPDX-License-Identifier: MIT */
/* Forward 1x1 convolutions with stride 1 of row-major images, by warps that each load what they multiply: elements of
 * the image go from memory straight into registers, so rows of any length are read in place; prepacked weights are in
 * shared memory (pointwise_warps.cu). In fp32, from compute capability 9.0 on. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_H
#define SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_WARPS_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WARPS_CHANNELS = 8,   /* of a k-step */
    WARPS_AREA = 49,      /* pixels of images whose rows are no multiple of 16 bytes */
    WARPS_AHEAD = 4,      /* channels of x loaded ahead: half a k-step, for constant register indices */
    WARPS_MOST = 12,      /* of a block */
    WARPS_BARRIERS = 256, /* bytes for mbarriers at the start of shared memory; what follows is aligned to 128 */
};

typedef struct cuda_pointwise_warps {
    const float *x, *w, *bias, *residual; /* w: prepacked */
    float *y;
    float low, high; /* the range to which the activation clamps */
    int channels, filters, area;
    int pixels;        /* of all images */
    int steps;         /* k-steps of 8 channels */
    int groups;        /* of filters: a block computes one */
    int slices, tiles; /* warps of a block: splits of K x tiles of pixels */
    int64_t shared;    /* bytes of a block: mbarriers, its weights, and later its partial sums */
    bool fresh;        /* the weights were prepacked by the previous kernel */
} cuda_pointwise_warps;

/* The kernels: what a warp computes. */
typedef struct cuda_pointwise_warps_tile {
    int wide;              /* pixels of a load: 1 for images of WARPS_AREA pixels, else 4 */
    int filters, pixels;   /* of a warp */
    int most, most_blocks; /* warps of a block; resident blocks of as many that a multiprocessor has registers for */
    int step, away;        /* cycles: of a k-step of four warps; of the latency of a load of x */
} cuda_pointwise_warps_tile;
enum { WARPS_TILES = 6 };
extern const cuda_pointwise_warps_tile cuda_pointwise_warps_tiles[WARPS_TILES];

sdlf_status cuda_pointwise_warps_run(sdlf_calculator *calculator, const cuda_pointwise_warps *problem, int tile);
/* Launch the prepacking of w (K,C) for that tile. */
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
