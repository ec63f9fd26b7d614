/* SPDX-License-Identifier: MIT */
/* Convolution on the GPU: its geometry, and the algorithms that the slots choose between. For C and for CUDA C. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_CONV2D_H
#define SDLF_CALCULATORS_CUDA_CONV2D_CONV2D_H

#include <math.h>

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* N C H W K P Q G of an operation, and its window (R, S, stride, padding, dilation). */
typedef struct cuda_conv2d {
    int64_t batch, channels, height, width;
    int64_t filters, out_height, out_width;
    int64_t groups, group_channels, group_filters;
    sdlf_window2d window;
} cuda_conv2d;

/* The shapes of x (or dx), w (or dw) and y (or dy). */
static inline cuda_conv2d cuda_conv2d_of(const sdlf_operation *op, const sdlf_tensor *x, const sdlf_tensor *w,
                                         const sdlf_tensor *y)
{
    cuda_conv2d g;
    g.batch = x->shape.dim[0];
    g.channels = x->shape.dim[1];
    g.height = x->shape.dim[2];
    g.width = x->shape.dim[3];
    g.filters = y->shape.dim[1];
    g.out_height = y->shape.dim[2];
    g.out_width = y->shape.dim[3];
    g.groups = op->conv2d.groups;
    g.group_channels = w->shape.dim[1];
    g.group_filters = g.filters / g.groups;
    g.window = op->conv2d.window;
    return g;
}

/* The operands of the three passes: x (or dx), w (or dw), y (or dy). */
static inline void cuda_conv2d_operands(const sdlf_operation *op, const sdlf_tensor **x, const sdlf_tensor **w,
                                        const sdlf_tensor **y)
{
    bool forward = op->kind == SDLF_CONV2D_FORWARD, input = op->kind == SDLF_CONV2D_BACKWARD_INPUT;
    *x = input ? &op->out[0] : &op->in[0];
    *w = forward || input ? &op->in[1] : &op->out[0];
    *y = forward ? &op->out[0] : input ? &op->in[0] : &op->in[1];
}

/* The geometry of an operation of any of the three passes. */
static inline cuda_conv2d cuda_conv2d_geometry(const sdlf_operation *op)
{
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(op, &x, &w, &y);
    return cuda_conv2d_of(op, x, w, y);
}

/* The bounds to which an activation clamps, infinite where there are none. False: it does more than clamp. */
static inline bool activation_range(const sdlf_activation *activation, float *low, float *high)
{
    const bool clips = activation->function == SDLF_CLIP;
    *low = clips ? activation->low : activation->function == SDLF_RELU ? 0.0f : -INFINITY;
    *high = clips ? activation->high : INFINITY;
    return clips || activation->function == SDLF_IDENTITY || activation->function == SDLF_RELU;
}

/* Direct: one kernel, no workspace, every size (conv2d/direct.cu). */
sdlf_kernel conv2d_forward_direct_cuda, conv2d_backward_input_direct_cuda, conv2d_backward_weights_direct_cuda;

/* Two-step: im2col, then a GEMM (conv2d/two_step.c); only the GEMM where the convolution is pointwise: 1x1, stride 1,
 * no padding. */
bool cuda_is_pointwise(const cuda_conv2d *g);
sdlf_kernel conv2d_forward_two_step_cuda, conv2d_backward_input_two_step_cuda, conv2d_backward_weights_two_step_cuda;
int64_t conv2d_two_step_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* Implicit GEMM (conv2d/implicit.c), all three passes. */
sdlf_kernel conv2d_implicit_cuda;
int64_t conv2d_implicit_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* Depthwise, groups = channels: one or a few filters a channel (conv2d/depthwise_nchw.cu, depthwise_backward.cu); and
 * channels last: forward only, one filter a channel (conv2d/depthwise_nhwc.cu). */
sdlf_kernel conv2d_depthwise_forward_cuda, conv2d_depthwise_backward_input_cuda, conv2d_depthwise_backward_weights_cuda;
int64_t conv2d_depthwise_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_depthwise_nhwc_cuda, conv2d_depthwise_nhwc_prepare_cuda;

/* im2col of `images` images of x, group by group: columns (images, G, C/G R S, P Q), of x's dtype, or rounded to the
 * math mode's 16 bits, rows padded as in gemm/convert_operands.h. col2im is its gradient: dx sums over columns. */
sdlf_status cuda_im2col(sdlf_calculator *calculator, const cuda_conv2d *g, sdlf_dtype dtype, bool rounded,
                        const void *x, void *columns, int64_t images);
sdlf_status cuda_col2im(sdlf_calculator *calculator, const cuda_conv2d *g, sdlf_dtype dtype, const void *columns,
                        void *dx, int64_t images);
/* to[e] (+)= the sum over i < parts of from[i * count + e], in order. */
sdlf_status cuda_sum_parts(sdlf_calculator *calculator, sdlf_dtype dtype, const void *from, void *to, int64_t count,
                           int64_t parts, bool accumulate);
/* db[k] = sum over n,p,q of dy. */
sdlf_status cuda_bias_gradient(sdlf_calculator *calculator, const sdlf_tensor *dy, const sdlf_tensor *db);

#ifdef __cplusplus
}
#endif
#endif
