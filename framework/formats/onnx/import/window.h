/* SPDX-License-Identifier: MIT */
/* Sliding windows of convolution and pooling: the attributes kernel_shape, strides, dilations, pads, auto_pad and
 * ceil_mode as one geometry. */
#ifndef SDLF_FORMATS_ONNX_WINDOW_H
#define SDLF_FORMATS_ONNX_WINDOW_H

#include "framework/formats/onnx/import/import.h"

/* Depth, height and width, in this order; axes that x lacks have a window of 1. */
enum { DEPTH = 0, HEIGHT = 1, WIDTH = 2, ONNX_AXES = 3 };

typedef struct onnx_window {
    int size[ONNX_AXES], stride[ONNX_AXES], dilation[ONNX_AXES];
    int before[ONNX_AXES], after[ONNX_AXES]; /* padding; `after` includes `added` */
    int added[ONNX_AXES];                    /* extra padding due to ceil_mode */
} onnx_window;

/* The window over x (N,C,D,H,W), (N,C,H,W), or (N,C,L), which is treated as (N,C,1,L). `kernel`: the sizes if
 * kernel_shape is omitted (as many as x has dimensions beyond 2), or NULL if it is required. Fails if there is no such
 * window. */
onnx_window onnx_window_of(onnx_context *c, sdlf_shape x, const int64_t *kernel);

/* The extent of the window along an axis, from its first to its last element. */
int64_t onnx_extent(const onnx_window *window, int axis);
/* The number of windows along an axis of `in` elements; if there is none, fails and returns 1. */
int64_t onnx_window_count(onnx_context *c, const onnx_window *window, int axis, int64_t in);

/* Views (N,C,L) as (N,C,1,L), and leaves other ranks unchanged; and restores the rank that x had. */
onnx_flow onnx_as_image(onnx_context *c, onnx_flow x);
onnx_flow onnx_as_before(onnx_context *c, onnx_flow y, int rank);

/* (N,C,...) as (N,C,spatial,1). */
onnx_flow onnx_as_column(onnx_context *c, onnx_flow x);

/* 3-D convolutions, composed of 2-D ones (volume.c). `options` are filters, groups and no_bias. The weight is ONNX's; a
 * bias may be NULL. `added`: output_padding. */
onnx_flow onnx_volume_conv(onnx_context *c, onnx_flow x, const onnx_window *window, sdlf_conv2d_options options,
                           const onnx_tensor *weight, const onnx_tensor *bias);
onnx_flow onnx_volume_conv_transpose(onnx_context *c, onnx_flow x, const onnx_window *window,
                                     sdlf_conv_transpose2d_options options, const int64_t *added,
                                     const onnx_tensor *weight, const onnx_tensor *bias);

/* The node's convolution of x with that weight and a per-filter bias, or NULL (convolution.c). */
onnx_flow onnx_convolve(onnx_context *c, onnx_flow x, const onnx_tensor *weight, const onnx_tensor *bias);

/* Elements start, start + step, ... along an axis, `count` of them. */
onnx_flow onnx_take(onnx_context *c, onnx_flow x, int axis, int64_t start, int64_t count, int64_t step);
/* Pads with so many elements of `value` before and after along an axis; negative: crops. */
onnx_flow onnx_pad_axis(onnx_context *c, onnx_flow x, int axis, int64_t before, int64_t after, double value);
/* Concatenates any number of flows along an axis, in groups if a layer accepts fewer. */
onnx_flow onnx_join(onnx_context *c, const onnx_flow *parts, int count, int axis);

/* MaxPool's second output (pool_indices.c): for each window over x, whose axes from 2 on are the window's last ones,
 * the index of its first largest element in all of x. */
onnx_flow onnx_pool_indices(onnx_context *c, onnx_flow x, const onnx_window *window, bool column_major);

#endif
