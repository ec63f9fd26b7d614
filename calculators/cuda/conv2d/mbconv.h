/* SPDX-License-Identifier: MIT */
/* An inverted residual block in one kernel, for inference with few images in modes with tensor cores (inverted.cuh): a 1x1 convolution
 * into many channels, a depthwise one of 3x3, and a 1x1 convolution into few; or the last two of these.
 *
 * A cluster of blocks makes `rows` rows of y of one image. Each block has a slice of the channels in the middle: it makes them from all of
 * x that these rows' windows cover, keeps them in shared memory, and adds up its part of every number of y; the parts meet in the
 * cluster. What two clusters' windows share is made twice. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_H
#define SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MBCONV_SIDE = 3,
    MBCONV_SLICE = 16,  /* channels in the middle: slices are a multiple */
    MBCONV_PAD = 4,     /* numbers between the channels of two pixels in the middle */
    MBCONV_STRIP = 4,   /* neighbouring pixels that a thread makes */
    MBCONV_BLOCKS = 16, /* of a cluster, at most */
    MBCONV_THREADS = 512,
};

typedef struct cuda_mbconv {
    const float *x, *residual; /* residual: of the shape of y, or NULL */
    const char *w;             /* prepacked */
    float *y;
    float low[3], high[3]; /* what the three activations keep numbers within */
    int images, channels, height, width, middle, filters, out_height, out_width;
    int stride, padding[2];
    int blocks, slice;       /* of a cluster; channels of each */
    int rows, bands;         /* of a cluster; of an image */
    int held_rows, pitch;    /* in the middle: rows; pixels from one to the next */
    int tiles_in, tiles_out; /* of 8 pixels: of x and of y */
    int deep_in,
        deep_out;     /* steps of the sums: over channels, over a slice; deep_in is 0 where the middle is x itself */
    int filter_tiles; /* of 16 filters */
    int line;         /* numbers of a filter's part of y */
    int chunk;        /* bytes of w that belong to a slice */
    /* bytes of shared memory before x, the middle (later parts of y), the windows' sums, the pixels' places; w comes first */
    int at_x, at_middle, at_own, at_places;
    int shared;         /* bytes */
    int threads, strip; /* of a block; neighbouring pixels that a thread makes, 2 or MBCONV_STRIP */
    bool expands;       /* is there a first convolution? */
    bool aligned;       /* residual and y lie at multiples of 16 bytes */
    bool fresh;         /* the weights were prepacked by the kernel before this one */
} cuda_mbconv;

/* Queue the block, in that math mode's kernel. */
sdlf_status cuda_mbconv_run(sdlf_calculator *calculator, const cuda_mbconv *problem);
/* Queue the preparation of w: for each slice its weights (inverted.cuh), 0 where there are none. */
sdlf_status cuda_mbconv_prepare(sdlf_calculator *calculator, const cuda_mbconv *problem,
                                const sdlf_operation *operation, void *to);

bool conv2d_mbconv_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_mbconv_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_mbconv_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_mbconv_cuda, conv2d_mbconv_prepare_cuda;

#ifdef __cplusplus
}
#endif
#endif
