/* SPDX-License-Identifier: MIT */
/* Pointwise convolutions, forward, without cuBLAS: 1x1, any stride, no padding, one group (conv2d/pointwise.cu). */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_H
#define SDLF_CALCULATORS_CUDA_CONV2D_POINTWISE_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_pointwise {
    const void *x, *w, *bias, *residual;
    void *y;
    sdlf_activation activation;
    int channels, height, width, filters, out_height, out_width, stride[2];
    int pixels; /* N P Q */
    int filter_blocks, pixel_blocks;
    bool plain;          /* stride 1: a plane of x is a plane of y */
    bool wide_w, wide_x; /* may be loaded 16 bytes at a time */
} cuda_pointwise;

/* Tiles of filters x pixels, the largest first. */
enum { POINTWISE_TILES = 4 };
typedef struct cuda_pointwise_tile {
    int filters, pixels;
} cuda_pointwise_tile;
extern const cuda_pointwise_tile cuda_pointwise_tiles[POINTWISE_TILES];

sdlf_status cuda_pointwise_product(sdlf_calculator *calculator, const cuda_pointwise *problem, sdlf_dtype dtype,
                                   int tile);

bool cuda_pointwise_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_pointwise_cuda;

#ifdef __cplusplus
}
#endif
#endif
