/* What the rule of "auto" looks at (conv2d/automatic.c, and for 1x1 windows conv2d/automatic_pointwise.c). */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_AUTOMATIC_H
#define SDLF_CALCULATORS_CUDA_CONV2D_AUTOMATIC_H

#include "calculators/cuda/conv2d/algorithms.h"
#include "calculators/cuda/conv2d/conv2d.h"

/* Short names of what it takes. */
enum {
    AUTO = CUDA_CONV2D_AUTO, /* none of these */
    DIRECT = CUDA_CONV2D_DIRECT,
    TILED = CUDA_CONV2D_TILED,
    TWO_STEP = CUDA_CONV2D_TWO_STEP,
    POINTWISE = CUDA_CONV2D_POINTWISE,
    POINTWISE_WARPS = CUDA_CONV2D_POINTWISE_WARPS,
    IMPLICIT = CUDA_CONV2D_IMPLICIT,
    FEW = CUDA_CONV2D_FEW,
    DEPTHWISE = CUDA_CONV2D_DEPTHWISE,
    WINOGRAD_FUSED = CUDA_CONV2D_WINOGRAD_FUSED,
    WINOGRAD_2 = CUDA_CONV2D_WINOGRAD_2,
    PATCH = CUDA_CONV2D_PATCH,
    BOXES = CUDA_CONV2D_BOXES,
};

/* An operation of any of the three kinds, as the forward one has it. */
typedef struct cuda_conv2d_asked {
    const sdlf_calculator *calculator;
    const sdlf_operation *op;
    cuda_conv2d g;
    int64_t area, pixels;   /* of y: of an image, of all */
    int64_t depth, results; /* numbers of a sum, and of y */
    int64_t flops;
    bool wide, exact; /* float64; that or fp32: factors are not rounded */
    bool half;        /* fp16 or bf16 */
    bool finishes;    /* bias, residual or activation: a pass of its own behind cuBLAS */
    bool quads;       /* area a multiple of 4: lines of a plane are what cuBLAS's tensor cores take at their best */
} cuda_conv2d_asked;

cuda_conv2d_asked cuda_conv2d_ask(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* Is two-step, by the estimates, faster than implicit-gemm? */
bool cuda_prefers_two_step(const cuda_conv2d_asked *a);

/* 1x1 without padding, one group, row-major. */
bool cuda_is_unpadded_pointwise(const cuda_conv2d_asked *a);
int cuda_pointwise_automatic(const cuda_conv2d_asked *a);
/* In tf32, where the image could lie channels last, too: are the warps that read it row-major faster? */
bool cuda_pointwise_prefers_warps(const cuda_conv2d_asked *a);

#endif
