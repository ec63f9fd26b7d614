/* SPDX-License-Identifier: MIT */
/* NHWC convolutions as implicit GEMM on the Tensor Cores of compute capability 9.0 (engine/mainloop.cuh).
 *
 * A convolution here has x (N,H,W,C), w (K,R,S,C) and y (N,P,Q,K), all bfloat16, all float16, or all float32 multiplied in tf32; C and K are
 * multiples of 8 (for other C, x and w are packed first, engine/pack.h); accumulation is in float32. With several groups w is (K,R,S,C/groups),
 * and expanded to block-diagonal weights first (engine/groups.h). The wgrad output is float32, row-major (K,C/groups,R,S). */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_H
#define SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The batch-normalisation statistics of an image by channel, computed while a convolution writes that image: for each part of its pixels, and
 * each channel, the mean and the sum of squared deviations from it. */
typedef struct engine_bn_partials {
    float *parts; /* (count, channels, 2); capacity: engine_most_parts */
    float *rows;  /* (count): number of pixels in each part */
    int count;    /* written: number of parts */
} engine_bn_partials;

/* Blocks that run concurrently: two per multiprocessor. */
static inline int engine_most_parts(const cuda_calculator *calculator)
{
    return 2 * calculator->multiprocessors;
}

/* The sizes of a convolution, and its operands' addresses: of x, weights and y, each kind of convolution writes one. */
typedef struct engine_conv2d {
    sdlf_dtype dtype; /* of x, w, y: SDLF_BFLOAT16, SDLF_FLOAT16 or SDLF_FLOAT32 */
    int64_t n, h, w, c, k, p, q;
    int groups;
    int r, s, stride[2], padding[2], dilation[2]; /* padding: at the low side */
    const void *bias;                             /* (K) float32 or NULL */
    const void *residual;                         /* same shape as the output image, or NULL */
    sdlf_activation activation;
    void *x, *weights, *y;
    const void *prepared;         /* output of engine_prepare (block-diagonal if there are several groups), or NULL */
    bool by_channels;             /* 1x1 only: engine_prepare reads float32 weights stored as (C,K) */
    bool row_major;               /* engine_backward_input in float32: weights are stored as (K,C,R,S) */
    int64_t pixel_step, row_step; /* elements between adjacent pixels, and rows, of x; 0: dense (engine/pack.h) */
    float *dw;
    void *workspace;
    engine_bn_partials *moments; /* forward: statistics to compute, or NULL */
    bool pools; /* forward: y (N,P/2,Q/2,K) is the 2 x 2 max-pooling, of stride 2, of the convolution (engine_pools) */
} engine_conv2d;

/* True if this build has kernels for this device. */
static inline bool engine_is_there(const cuda_calculator *calculator)
{
    return calculator->capability == 90 && calculator->kernels == 90;
}

/* True if the engine supports the convolution; depends on its sizes only, not on addresses. */
bool engine_takes_forward(const cuda_calculator *calculator, const engine_conv2d *conv);
bool engine_takes_backward_input(const cuda_calculator *calculator, const engine_conv2d *conv);
bool engine_takes_backward_weights(const cuda_calculator *calculator, const engine_conv2d *conv);
/* True if engine_forward can also max-pool: in 16 bits, where tiles consist of whole pooling windows (engine/conv2d_halo.cuh). */
bool engine_pools(const cuda_calculator *calculator, const engine_conv2d *conv);

int64_t engine_forward_workspace(const engine_conv2d *conv);
int64_t engine_backward_input_workspace(const engine_conv2d *conv);
int64_t engine_backward_weights_workspace(const cuda_calculator *calculator, const engine_conv2d *conv);

/* Prepacked weights of one group for fprop: their size in bytes, and the kernel that packs them from float32 weights, row-major (K,C,R,S). */
int64_t engine_prepared(const engine_conv2d *conv);
sdlf_status engine_prepare(const cuda_calculator *calculator, const engine_conv2d *conv, const float *weights,
                           void *to);

/* fprop: y = act(conv(x, weights) + bias + residual); dgrad: x = gradient with respect to x, given dy in y, + residual; wgrad: dw. */
sdlf_status engine_forward(const cuda_calculator *calculator, const engine_conv2d *conv);
sdlf_status engine_backward_input(const cuda_calculator *calculator, const engine_conv2d *conv);
sdlf_status engine_backward_weights(const cuda_calculator *calculator, const engine_conv2d *conv);

#ifdef __cplusplus
}
#endif
#endif
