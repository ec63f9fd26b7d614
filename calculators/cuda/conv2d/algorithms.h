/* SPDX-License-Identifier: MIT */
/* The ways that the cuda calculator has to a convolution: their names, what is known of them, and what each of them does. The
 * order is that of the ladder in docs/reference/convolution.md. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_ALGORITHMS_H
#define SDLF_CALCULATORS_CUDA_CONV2D_ALGORITHMS_H

#include <sdlf/calculator.h>

/* operation->algorithm */
enum {
    CUDA_CONV2D_AUTO,
    CUDA_CONV2D_NAIVE,
    CUDA_CONV2D_DIRECT,
    CUDA_CONV2D_PADDED,
    CUDA_CONV2D_FINER,
    CUDA_CONV2D_SHARED,
    CUDA_CONV2D_REGISTER,
    CUDA_CONV2D_TILED,
    CUDA_CONV2D_IM2COL,
    CUDA_CONV2D_TWO_STEP,
    CUDA_CONV2D_POINTWISE,
    CUDA_CONV2D_POINTWISE_WARPS,
    CUDA_CONV2D_IMPLICIT,
    CUDA_CONV2D_FEW,
    CUDA_CONV2D_DEPTHWISE,
    CUDA_CONV2D_WINOGRAD_FUSED,
    CUDA_CONV2D_WINOGRAD_2,
    CUDA_CONV2D_WINOGRAD_4,
    CUDA_CONV2D_PATCH,
    CUDA_CONV2D_BOXES,
    CUDA_CONV2D_ALGORITHMS
};

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
