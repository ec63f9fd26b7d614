/* SPDX-License-Identifier: MIT */
/* Convolutions channels last: implicit GEMM by the tensor cores of compute capability 9.0 (engine/mainloop.cuh).
 *
 * A convolution here has x (N,H,W,C), w (K,R,S,C) and y (N,P,Q,K) in memory, all bfloat16, all float16, or all float32 whose products are in
 * tf32; C and K multiples of 8 (x and w with other C are packed first, engine/pack.h), sums in float32. Of several groups w is (K,R,S,C/groups),
 * and made block-diagonal first (engine/groups.h). Its gradient by the weights is float32, row-major (K,C/groups,R,S). */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_H
#define SDLF_CALCULATORS_CUDA_ENGINE_CONV2D_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What batch normalisation sums over an image by channel, summed while a convolution writes that image: for each part of its pixels, and each
 * channel, the mean and the sum of squared deviations from it. */
typedef struct engine_moments {
    float *parts; /* (count, channels, 2); room for engine_most_parts */
    float *rows;  /* (count): pixels of each part */
    int count;    /* written: parts */
} engine_moments;

/* Blocks that are under way at once: two on each multiprocessor. */
static inline int engine_most_parts(const cuda_calculator *calculator)
{
    return 2 * calculator->multiprocessors;
}

/* The numbers of a convolution, and its operands' addresses: of a kind's three tensors the output is written. */
typedef struct engine_conv2d {
    sdlf_dtype dtype; /* of x, w, y: SDLF_BFLOAT16, SDLF_FLOAT16 or SDLF_FLOAT32 */
    int64_t n, h, w, c, k, p, q;
    int groups;
    int r, s, stride[2], padding[2], dilation[2]; /* padding: before */
    const void *bias;                             /* (K) float32 or NULL */
    const void *residual;                         /* as the image that is written, or NULL */
    sdlf_activation activation;
    void *x, *weights, *y;
    const void *prepared; /* weights as engine_prepare makes them, in several groups block-diagonal ones, or NULL */
    bool by_channels;     /* of 1x1: the float32 weights that engine_prepare prepacks lie (C,K) */
    bool row_major;       /* engine_backward_input of float32: weights lie (K,C,R,S) */
    int64_t pixel_step, row_step; /* of x, elements from one to the next; 0: dense (engine/pack.h) */
    float *dw;
    void *workspace;
    engine_moments *moments; /* forward: to be summed, or NULL */
} engine_conv2d;

/* Are there kernels for this device in this build? */
static inline bool engine_is_there(const cuda_calculator *calculator)
{
    return calculator->capability == 90 && calculator->kernels == 90;
}

/* Does the engine take it? By its numbers only. */
bool engine_takes_forward(const cuda_calculator *calculator, const engine_conv2d *conv);
bool engine_takes_backward_input(const cuda_calculator *calculator, const engine_conv2d *conv);
bool engine_takes_backward_weights(const cuda_calculator *calculator, const engine_conv2d *conv);

int64_t engine_forward_workspace(const engine_conv2d *conv);
int64_t engine_backward_input_workspace(const engine_conv2d *conv);
int64_t engine_backward_weights_workspace(const cuda_calculator *calculator, const engine_conv2d *conv);

/* Weights of one group, prepacked for forward: the bytes, and the kernel that makes them of float32 ones, row-major (K,C,R,S). */
int64_t engine_prepared(const engine_conv2d *conv);
sdlf_status engine_prepare(const cuda_calculator *calculator, const engine_conv2d *conv, const float *weights,
                           void *to);

/* y = act(conv(x, weights) + bias + residual); x = the gradient by x, of y = dy, + residual; dw = that by the weights. */
sdlf_status engine_forward(const cuda_calculator *calculator, const engine_conv2d *conv);
sdlf_status engine_backward_input(const cuda_calculator *calculator, const engine_conv2d *conv);
sdlf_status engine_backward_weights(const cuda_calculator *calculator, const engine_conv2d *conv);

#ifdef __cplusplus
}
#endif
#endif
