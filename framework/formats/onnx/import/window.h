/* SPDX-License-Identifier: MIT */
/* Sliding windows of convolution and pooling: the attributes kernel_shape, strides, dilations, pads, auto_pad and
 * ceil_mode as one geometry. */
#ifndef SDLF_FORMATS_ONNX_WINDOW_H
#define SDLF_FORMATS_ONNX_WINDOW_H

#include "framework/formats/onnx/import/import.h"

/* Depth, height and width, in this order; what x does not have is a window of 1. */
enum { DEPTH = 0, HEIGHT = 1, WIDTH = 2, ONNX_AXES = 3 };

typedef struct onnx_window {
    int size[ONNX_AXES], stride[ONNX_AXES], dilation[ONNX_AXES];
    int before[ONNX_AXES], after[ONNX_AXES]; /* padding; `after` with what ceil_mode adds */
    int added[ONNX_AXES];                    /* what ceil_mode adds */
} onnx_window;

/* The window over x (N,C,D,H,W), (N,C,H,W), or (N,C,L), which is taken as (N,C,1,L). `kernel`: the sizes where
 * kernel_shape is left out (as many as x has dimensions beyond 2), or NULL where it is needed. A failure where there is
 * no such window. */
onnx_window onnx_window_of(onnx_context *c, sdlf_shape x, const int64_t *kernel);

/* Elements from the first to the last that the window covers along an axis. */
int64_t onnx_extent(const onnx_window *window, int axis);
/* How many windows there are along an axis of `in` elements; a failure, and 1, where there is none. */
int64_t onnx_window_count(onnx_context *c, const onnx_window *window, int axis, int64_t in);

/* (N,C,L) as (N,C,1,L), anything else as it is; and back to the rank that x had. */
onnx_flow onnx_as_image(onnx_context *c, onnx_flow x);
onnx_flow onnx_as_before(onnx_context *c, onnx_flow y, int rank);

/* (N,C,...) as (N,C,spatial,1). */
onnx_flow onnx_as_column(onnx_context *c, onnx_flow x);

/* Convolutions over three dimensions, put together from those over two (volume.c). `options` are filters, groups and
 * no_bias. The weight is ONNX's; a bias may be NULL. `added`: output_padding. */
onnx_flow onnx_volume_conv(onnx_context *c, onnx_flow x, const onnx_window *window, sdlf_conv2d_options options,
                           const onnx_tensor *weight, const onnx_tensor *bias);
onnx_flow onnx_volume_conv_transpose(onnx_context *c, onnx_flow x, const onnx_window *window,
                                     sdlf_conv_transpose2d_options options, const int64_t *added,
                                     const onnx_tensor *weight, const onnx_tensor *bias);

/* The node's convolution of x with that weight and a bias of one number for each filter, or NULL (convolution.c). */
onnx_flow onnx_convolve(onnx_context *c, onnx_flow x, const onnx_tensor *weight, const onnx_tensor *bias);

/* Elements start, start + step, ... along an axis, `count` of them. */
onnx_flow onnx_take(onnx_context *c, onnx_flow x, int axis, int64_t start, int64_t count, int64_t step);
/* So many elements of `value` before and behind along an axis; negative: fewer. */
onnx_flow onnx_pad_axis(onnx_context *c, onnx_flow x, int axis, int64_t before, int64_t after, double value);
/* Any number of flows joined along an axis, in groups where a layer takes fewer. */
onnx_flow onnx_join(onnx_context *c, const onnx_flow *parts, int count, int axis);

/* MaxPool's second output (pool_indices.c): for each window over x, whose axes from 2 on are the window's last ones,
 * the number of its first largest element in all of x. */
onnx_flow onnx_pool_indices(onnx_context *c, onnx_flow x, const onnx_window *window, bool column_major);

#endif
