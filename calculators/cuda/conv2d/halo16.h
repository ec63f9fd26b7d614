/* SPDX-License-Identifier: MIT */
/* TMA-tiled implicit GEMM in fp16 and bf16: channels last, WGMMA, patches loaded by TMA.
 *
 * As in conv2d/halo.h a block computes a rectangle of pixels of one image for some filters, from patches of 32
 * channels. A patch is one TMA box: one thread issues the copy, which fills zeros outside the image and swizzles rows
 * as WGMMA reads them; warps then round it to 16 bits in place. Weights are prepacked as for conv2d/halo.h. Only
 * compute capability 9.0; stride 1, no dilation, channels a multiple of 4. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO16_H
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO16_H

#include "calculators/cuda/conv2d/halo.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HALO16_MOST = 4, /* boxes in shared memory at a time, at most */
    HALO16_TILES = 6,
    HALO16_TAPS = 3, /* of a k-step: a line of a window */
};

/* How a problem is computed. */
typedef struct cuda_halo16_launch {
    int tile;
    bool pools;     /* results are 2x2 maxima */
    int64_t shared; /* bytes */
} cuda_halo16_launch;

/* Pixels and filters of a tile; stages of weights, and boxes, in shared memory; resident blocks that a multiprocessor
 * has registers for. */
typedef struct cuda_halo16_tile {
    int pixels, filters, stages, boxes, blocks;
} cuda_halo16_tile;
/* Cut the problem into tiles of that number; bytes of shared memory of a block. */
void cuda_halo16_cut(cuda_halo *problem, int tile);
int64_t cuda_halo16_shared(const cuda_halo *problem, int tile);
/* Choose the tile and splits with the least estimated time, and cut the problem into them. False: no tile fits. */
bool cuda_halo16_choose(const cuda_calculator *calculator, cuda_halo *problem, cuda_halo16_launch *how);

/* What conv2d/halo.h supports with windows of 3 columns, stride 1, no dilation, and more than HALO_THIN channels in
 * quads. Weights are prepacked, or prepared in the workspace, as there. */
bool cuda_halo16_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_halo16_cuda;
/* The same, or, with `pools`, with 2x2 max-pooled results in y. plane: as in cuda_halo_pool. */
sdlf_status cuda_halo16_run(sdlf_calculator *calculator, const sdlf_operation *operation, bool pools, int plane);

/* conv2d_relu_max_pool_forward with a 2x2 pool and no mask, of such convolutions, or of those of cuda_halo_pools in
 * tf32 (conv2d/halo16.c). */
bool cuda_halo16_pool_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t cuda_halo16_pool_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t cuda_halo16_pool_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_halo16_pool_cuda, conv2d_halo16_pool_prepare_cuda;

sdlf_status cuda_halo16_multiply(sdlf_calculator *calculator, const cuda_halo *problem, const cuda_halo16_launch *how);

#ifdef __cplusplus
}
#endif
#endif
