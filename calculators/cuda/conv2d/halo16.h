/* SPDX-License-Identifier: MIT */
/* Convolution over boxes: channels last, on tensor cores, with patches that TMA loads.
 *
 * As in conv2d/halo.h a block makes a rectangle of pixels of one image, by some filters, and holds for 32 channels at a time all of the
 * image that the rectangle's windows cover. That part is a box of the image: one instruction of one thread copies it, puts zeros where it
 * is outside, and lays rows out as the tensor cores read them; warps then round it to 16 bits where it lies. Weights are those that
 * conv2d/halo.h makes ready. Compute capability 9.0 alone; stride 1, no dilation, channels a multiple of 4. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_HALO16_H
#define SDLF_CALCULATORS_CUDA_CONV2D_HALO16_H

#include "calculators/cuda/conv2d/halo.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HALO16_MOST = 4, /* in shared memory at a time */
    HALO16_TILES = 6,
    HALO16_TAPS = 3, /* of a step: a line of a window */
};

/* How a problem is computed. */
typedef struct cuda_halo16_launch {
    int tile;
    bool pools;     /* results are the largest of 2x2 */
    int64_t shared; /* bytes */
} cuda_halo16_launch;

/* Pixels and filters of a tile; steps of weights and boxes in shared memory; blocks that a multiprocessor has
 * registers for. */
typedef struct cuda_halo16_tile {
    int pixels, filters, stages, boxes, blocks;
} cuda_halo16_tile;
const cuda_halo16_tile *cuda_halo16_tile_of(int number);
/* Cut the problem into tiles of that number; bytes of shared memory of a block. */
void cuda_halo16_cut(cuda_halo *problem, int tile);
int64_t cuda_halo16_shared(const cuda_halo *problem, int tile);
/* What seems fastest, and the problem cut into it. False: no tile fits. */
bool cuda_halo16_choose(const cuda_calculator *calculator, cuda_halo *problem, cuda_halo16_launch *how);

/* What conv2d/halo.h takes, and more than HALO_THIN channels in quads, stride 1, no dilation. Weights are prepacked, and a workspace holds
 * them, as there. */
bool cuda_halo16_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_halo16_cuda;
/* The same, or, with `pools`, of an operation whose y has a 2x2 max-pool of the results, row-major if it has planes of so many numbers. */
sdlf_status cuda_halo16_run(sdlf_calculator *calculator, const sdlf_operation *operation, bool pools, int plane);

/* conv2d_relu_max_pool_forward of such convolutions, or of those that conv2d/halo.h pools in tf32, pooled by 2x2, without a mask
 * (conv2d/halo16.c). */
bool cuda_halo16_pool_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t cuda_halo16_pool_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t cuda_halo16_pool_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_halo16_pool_cuda;

sdlf_status cuda_halo16_multiply(sdlf_calculator *calculator, const cuda_halo *problem, const cuda_halo16_launch *how);

#ifdef __cplusplus
}
#endif
#endif
