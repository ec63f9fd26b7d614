/* SPDX-License-Identifier: MIT */
/* The convolution algorithms of the cuda calculator: their names, what is known of each, and the functions that
 * implement it. Those of the teaching ladder (lab/conv2d.h) are included. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_ALGORITHMS_H
#define SDLF_CALCULATORS_CUDA_CONV2D_ALGORITHMS_H

#include "lab/conv2d.h"

/* operation->algorithm */
enum {
    CUDA_CONV2D_AUTO,
    CUDA_CONV2D_LAB, /* the first algorithm of lab/conv2d.h */
    CUDA_CONV2D_DIRECT = CUDA_CONV2D_LAB + LAB_CONV2D_ALGORITHMS,
    CUDA_CONV2D_TWO_STEP,
    CUDA_CONV2D_POINTWISE,
    CUDA_CONV2D_POINTWISE_WARPS,
    CUDA_CONV2D_IMPLICIT,
    CUDA_CONV2D_STEM,
    CUDA_CONV2D_DEPTHWISE,
    CUDA_CONV2D_WINOGRAD_FUSED,
    CUDA_CONV2D_WINOGRAD_2,
    CUDA_CONV2D_HALO,
    CUDA_CONV2D_HALO16,
    CUDA_CONV2D_ALGORITHMS
};

/* What an algorithm supports, and its functions. */
typedef struct cuda_conv2d_algorithm {
    bool (*takes)(const sdlf_calculator *calculator, const sdlf_operation *operation);        /* NULL: everything */
    int64_t (*workspace)(const sdlf_calculator *calculator, const sdlf_operation *operation); /* NULL: none */
    sdlf_kernel *forward, *backward_input, *backward_weights; /* NULL: this pass is not implemented */
    /* Support test for operations whose activations are channels last (NHWC); NULL: none is supported. */
    bool (*takes_nhwc)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* Bytes of prepacked weights; NULL: weights are read unchanged. */
    int64_t (*prepared)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    sdlf_kernel *prepare;
    bool columns; /* stores the im2col matrix of all images, which counts as traffic; else the whole workspace does */
    int winograd; /* 0, or the side m of Winograd's m x m output tiles */
} cuda_conv2d_algorithm;
const cuda_conv2d_algorithm *cuda_conv2d_algorithm_of(int number);

/* Limits of the kernels with 32-bit indices, and of the Winograd kernels; text for the notes. */
#define CUDA_CONV2D_COUNTED        "up to 5e8 pixels, and as many numbers of an image"
#define CUDA_CONV2D_WINOGRAD_TAKES "3x3 windows with stride 1, no dilation, one group, in float32"

extern const char *const conv2d_algorithms_cuda[];
extern const sdlf_algorithm_note conv2d_notes_cuda[];

/* The slots of the three passes. */
sdlf_kernel conv2d_cuda, conv2d_prepare_cuda;
bool conv2d_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool conv2d_prefers_channels_last_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_cost conv2d_work_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int conv2d_automatic_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
/* True if that algorithm supports the operation with row-major operands. */
bool cuda_conv2d_takes(const sdlf_calculator *calculator, const sdlf_operation *operation, int algorithm);
/* True if its kernel lets the next one start only after its own inputs are complete. */
bool cuda_conv2d_starts_others_late(const sdlf_calculator *calculator, const sdlf_operation *operation);
/* True if tensor cores would save nothing in a 1x1 convolution with so many channels and so many FLOPs. */
bool cuda_pointwise_is_small(int64_t channels, int64_t flops);

#endif
