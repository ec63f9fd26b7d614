/* SPDX-License-Identifier: MIT */
/* The ways that the cuda calculator has to a convolution: their names, what is known of them, and what each of them does. Those
 * of the teaching ladder (lab/conv2d.h) are among them. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_ALGORITHMS_H
#define SDLF_CALCULATORS_CUDA_CONV2D_ALGORITHMS_H

#include "lab/conv2d.h"

/* operation->algorithm */
enum {
    CUDA_CONV2D_AUTO,
    CUDA_CONV2D_LAB, /* the first of lab/conv2d.h */
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

/* What an algorithm takes and does. */
typedef struct cuda_conv2d_algorithm {
    bool (*takes)(const sdlf_calculator *calculator, const sdlf_operation *operation);        /* NULL: everything */
    int64_t (*workspace)(const sdlf_calculator *calculator, const sdlf_operation *operation); /* NULL: none */
    sdlf_kernel *forward, *backward_input, *backward_weights; /* NULL: it has no such kind */
    /* The same of operations whose activations are channels last; NULL: none. */
    bool (*takes_nhwc)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* Prepacked weights; NULL: as they are. */
    int64_t (*prepared)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    sdlf_kernel *prepare;
    bool columns; /* writes the patches of all images as a matrix, and reads it; else that holds for its workspace */
    int winograd; /* 0, or the side of Winograd's tiles */
} cuda_conv2d_algorithm;
const cuda_conv2d_algorithm *cuda_conv2d_algorithm_of(int number);

/* What kernels take that count in 32 bits, and Winograd's; for notes. */
#define CUDA_CONV2D_COUNTED        "up to 5e8 pixels, and as many numbers of an image"
#define CUDA_CONV2D_WINOGRAD_TAKES "3x3 windows with stride 1, no dilation, one group, in float32"

extern const char *const conv2d_algorithms_cuda[];
extern const sdlf_algorithm_note conv2d_notes_cuda[];

/* The slots of the three kinds. */
sdlf_kernel conv2d_cuda, conv2d_prepare_cuda;
bool conv2d_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool conv2d_likes_channels_last_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_cost conv2d_work_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int conv2d_automatic_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
/* May that one compute it, of row-major operands? */
bool cuda_conv2d_takes(const sdlf_calculator *calculator, const sdlf_operation *operation, int algorithm);
/* Does its kernel let the next one start only when its own inputs are there? */
bool cuda_conv2d_starts_others_late(const sdlf_calculator *calculator, const sdlf_operation *operation);
/* Would tensor cores save nothing in a 1x1 convolution of so many channels, with so many FLOPs? */
bool cuda_pointwise_is_small(int64_t channels, int64_t flops);

#endif
