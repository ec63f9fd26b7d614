/* SPDX-License-Identifier: MIT */
/* Fused MBConv (mbconv.cuh), an inverted residual block in one kernel, for inference of few images on tensor
 * cores: a 1x1 convolution into many channels (expansion), a 3x3 depthwise one, a 1x1 one into few; or the last two.
 *
 * A cluster computes `rows` rows of y of one image. Each of its blocks has a slice of the expanded channels: it
 * computes them from all of x that these rows' windows cover, keeps them in shared memory, and computes its partial sum
 * of all elements of y; these are added via distributed shared memory. Halo rows of two clusters are computed twice. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_H
#define SDLF_CALCULATORS_CUDA_CONV2D_MBCONV_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MBCONV_SIDE = 3,
    MBCONV_SLICE = 16,  /* expanded channels: slices are a multiple */
    MBCONV_PAD = 4,     /* elements between the expanded channels of two pixels */
    MBCONV_STRIP = 4,   /* neighbouring pixels that a thread computes */
    MBCONV_BLOCKS = 16, /* of a cluster, at most */
    MBCONV_THREADS = 512,
};

typedef struct cuda_mbconv {
    const float *x, *residual; /* residual: of the shape of y, or NULL */
    const char *w;             /* prepacked */
    float *y;
    float low[3], high[3]; /* the range that each of the three activations clamps to */
    int images, channels, height, width, middle, filters, out_height, out_width;
    int stride, padding[2];
    int blocks, slice;       /* of a cluster; expanded channels of each */
    int rows, bands;         /* of y in a cluster; of an image */
    int held_rows, pitch;    /* of the expanded tile: rows; pixels between two rows */
    int tiles_in, tiles_out; /* of 8 pixels each: of x and of y */
    int deep_in, deep_out;   /* k-steps: over channels, over a slice; deep_in is 0 where there is no expansion */
    int filter_tiles;        /* of 16 filters */
    int line;                /* elements of one filter in the partial sums of y */
    int chunk;               /* bytes of w that belong to a slice */
    /* Byte offsets in shared memory: x, expanded tile (later sums of y), depthwise results, pixel table; w is first. */
    int at_x, at_middle, at_own, at_places;
    int shared;         /* bytes */
    int threads, strip; /* of a block; neighbouring pixels that a thread computes, 2 or MBCONV_STRIP */
    bool expands;       /* there is an expansion */
    bool aligned;       /* residual and y are aligned to 16 bytes */
    bool fresh;         /* the weights were prepacked by the previous kernel */
} cuda_mbconv;

/* Launch the fused kernel of the math mode. */
sdlf_status cuda_mbconv_run(sdlf_calculator *calculator, const cuda_mbconv *problem);
/* Launch the prepacking of w: the weights of each slice (mbconv.cuh), 0 where there are none. */
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
