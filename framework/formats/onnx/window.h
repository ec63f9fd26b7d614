/* Sliding windows of convolution and pooling: the attributes kernel_shape, strides, dilations, pads, auto_pad and ceil_mode
 * as one geometry over two dimensions. */
#ifndef SDLF_FORMATS_ONNX_WINDOW_H
#define SDLF_FORMATS_ONNX_WINDOW_H

#include "framework/formats/onnx/import.h"

typedef struct onnx_window {
    int size[2], stride[2], dilation[2];
    int before[2], after[2]; /* padding; `after` with what ceil_mode adds */
    int added[2];            /* what ceil_mode adds */
} onnx_window;

/* The window over x (N,C,H,W), or (N,C,L), which is taken as (N,C,1,L). `kernel`: the sizes where kernel_shape is left out
 * (as many as x has dimensions beyond 2), or NULL where it is needed. A failure where there is no such window. */
onnx_window onnx_window_of(onnx_context *c, sdlf_shape x, const int64_t *kernel);

/* (N,C,L) as (N,C,1,L), anything else as it is; and back to the rank that x had. */
onnx_flow onnx_as_image(onnx_context *c, onnx_flow x);
onnx_flow onnx_as_before(onnx_context *c, onnx_flow y, int rank);

/* (N,C,...) as (N,C,spatial,1). */
onnx_flow onnx_as_column(onnx_context *c, onnx_flow x);

#endif
