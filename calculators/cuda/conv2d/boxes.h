/* SPDX-License-Identifier: MIT */
/* Convolution over boxes: channels last, on tensor cores, with patches that the copy engine brings.
 *
 * As in conv2d/patch.h a block makes a rectangle of pixels of one image, by some filters, and holds for 32 channels at a time all of the
 * image that the rectangle's windows cover. That part is a box of the image: one instruction of one thread copies it, puts zeros where it
 * is outside, and lays rows out as the tensor cores read them; warps then round it to halves where it lies. Weights are those that
 * conv2d/patch.h makes ready. Compute capability 9.0 alone; stride 1, no dilation, channels a multiple of 4. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_BOXES_H
#define SDLF_CALCULATORS_CUDA_CONV2D_BOXES_H

#include "calculators/cuda/conv2d/patch.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BOXES_MOST = 4, /* in shared memory at a time */
    BOXES_TILES = 6,
    BOXES_TAPS = 3, /* of a step: a line of a window */
};

/* How a problem is computed. */
typedef struct cuda_boxes_launch {
    int tile;
    bool pools;     /* results are the largest of 2x2 */
    int64_t shared; /* bytes */
} cuda_boxes_launch;

/* Pixels and filters of a tile; steps of weights and boxes in shared memory; blocks that a multiprocessor has
 * registers for. */
typedef struct cuda_boxes_tile {
    int pixels, filters, stages, boxes, blocks;
} cuda_boxes_tile;
const cuda_boxes_tile *cuda_boxes_tile_of(int number);
/* Cut the problem into tiles of that number; bytes of shared memory of a block. */
void cuda_boxes_cut(cuda_patch *problem, int tile);
int64_t cuda_boxes_shared(const cuda_patch *problem, int tile);
/* What seems fastest, and the problem cut into it. False: no tile fits. */
bool cuda_boxes_choose(const cuda_calculator *calculator, cuda_patch *problem, cuda_boxes_launch *how);

/* What conv2d/patch.h takes, and more than PATCH_THIN channels in quads, stride 1, no dilation. Weights are made ready, and a workspace holds
 * them, as there. */
bool cuda_boxes_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_boxes_cuda;
/* The same, or, with `pools`, of an operation whose y has a 2x2 max-pool of the results, row-major if it has planes of so many numbers. */
sdlf_status cuda_boxes_run(sdlf_calculator *calculator, const sdlf_operation *operation, bool pools, int plane);

/* conv2d_relu_max_pool_forward of such convolutions, or of those that conv2d/patch.h pools in tf32, pooled by 2x2, without a mask
 * (conv2d/boxes.c). */
bool cuda_boxes_pool_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t cuda_boxes_pool_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t cuda_boxes_pool_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_boxes_pool_cuda;

sdlf_status cuda_boxes_multiply(sdlf_calculator *calculator, const cuda_patch *problem, const cuda_boxes_launch *how);

#ifdef __cplusplus
}
#endif
#endif
