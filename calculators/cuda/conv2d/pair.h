/* SPDX-License-Identifier: MIT */
/* A 1x1 convolution and the depthwise one behind it in one kernel, for inference with few images (pair.cu).
 *
 * A block makes `rows` rows of y of `group` filters of one image. It holds all channels of the rows of x that these rows' windows
 * cover, makes the filters' numbers between the two convolutions there, rows of the image's border included, and keeps them in shared
 * memory. Numbers that two blocks' windows share are made twice. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_PAIR_H
#define SDLF_CALCULATORS_CUDA_CONV2D_PAIR_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PAIR_DOWN = 8,    /* filters a warp makes at a time, */
    PAIR_ACROSS = 64, /* and pixels */
    PAIR_STRIP = 4,   /* rows of y that a thread makes */
    PAIR_WARPS = 16,  /* of a block, at most */
    PAIR_SLICES = 4,  /* warps that share a sum, where that many share one */
    PAIR_GROUP = 16,  /* filters of a block, at most */
};

typedef struct cuda_pair {
    const float *x, *w; /* w: made ready */
    float *y;
    sdlf_activation between, activation;
    int images, channels, height, width, filters, out_height, out_width;
    int side, stride[2], padding[2];
    int group, groups, rows, bands;
    int slices;           /* warps that share a sum between the convolutions */
    int warps;            /* of a block */
    int held_rows, pitch; /* of what lies between: rows, and numbers from one to the next */
    int chunk;            /* numbers of w that belong to a group of filters */
    int room;             /* numbers of x in shared memory, and later of parts of sums */
    int64_t shared;       /* bytes */
    bool fresh;           /* the weights were made ready by the kernel before this one */
} cuda_pair;

sdlf_status cuda_pair_run(sdlf_calculator *calculator, const cuda_pair *pair);
/* Queue the preparation of w: for each group of filters its weights (C, group), its biases, the depthwise weights (R S, group), and their
 * biases; 0 where there are none. */
sdlf_status cuda_pair_prepare(sdlf_calculator *calculator, const cuda_pair *pair, const sdlf_operation *operation,
                              void *to);

bool conv2d_pair_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_pair_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_pair_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_pair_cuda, conv2d_pair_prepare_cuda;

#ifdef __cplusplus
}
#endif
#endif
