/* SPDX-License-Identifier: MIT */
/* Rows of `sdlf bench kernels`: quantised operations on NHWC images. Their dtype is fixed, whatever dtype the others
 * are run in. */
#include "apps/bench/kernels/kernels.h"

static sdlf_tensor bytes(sdlf_shape shape)
{
    return sdlf_tensor_view(SDLF_UINT8, shape, NULL);
}

static sdlf_window2d window_of(int size, int stride)
{
    int padding = size / 2;
    return (sdlf_window2d){{size, size}, {stride, stride}, {1, 1}, {padding, padding}, {padding, padding}};
}

static void add_conv2d(kernel_rows *rows, int64_t c, int64_t side, int64_t k, int size, int groups)
{
    sdlf_operation op = {.kind = SDLF_QUANTIZED_CONV2D};
    op.quantized_conv2d =
        (sdlf_quantized_conv2d_options){.window = window_of(size, 1), .groups = groups, .x_zero = 128, .high = 255};
    op.in[0] = bytes(sdlf_shape(1, c, side, side));
    op.in[1] = sdlf_tensor_view(SDLF_INT8, sdlf_shape(k, c / groups, size, size), NULL);
    op.in[2] = sdlf_tensor_view(SDLF_INT32, sdlf_shape(k), NULL);
    op.in[3] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(k), NULL);
    op.out[0] = bytes(sdlf_shape(1, k, side, side));
    op = sdlf_operation_channels_last(&op);
    kernel_rows_add(rows, &op, false, "1x%lldx%lldx%lld, %lld of %dx%d%s", (long long)c, (long long)side,
                    (long long)side, (long long)k, size, size, groups > 1 ? ", depthwise" : "");
}

void kernel_rows_quantized(kernel_rows *rows)
{
    add_conv2d(rows, 64, 56, 64, 3, 1);     /* ResNet-18's first stage */
    add_conv2d(rows, 512, 7, 512, 3, 1);    /* and its last */
    add_conv2d(rows, 144, 56, 144, 3, 144); /* MobileNetV2 */
    add_conv2d(rows, 384, 14, 64, 1, 1);
    sdlf_tensor x = bytes(sdlf_shape(rows->elements)), floats = sdlf_tensor_view(SDLF_FLOAT32, x.shape, NULL);
    sdlf_operation op = {.kind = SDLF_QUANTIZE, .in = {floats}, .out = {x}, .quantize = {0.01f, 128, 0, 255}};
    kernel_rows_add(rows, &op, false, "%lld numbers", (long long)rows->elements);
    op = (sdlf_operation){.kind = SDLF_DEQUANTIZE, .in = {x}, .out = {floats}, .quantize = {0.01f, 128, 0, 0}};
    kernel_rows_add(rows, &op, false, "%lld numbers", (long long)rows->elements);
    sdlf_tensor scale = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), NULL);
    op = (sdlf_operation){.kind = SDLF_DYNAMIC_QUANTIZE, .in = {floats}, .out = {x, scale, bytes(sdlf_shape(1))}};
    kernel_rows_add(rows, &op, false, "%lld numbers", (long long)rows->elements);
    op = (sdlf_operation){.kind = SDLF_QUANTIZED_ADD, .in = {x, x}, .out = {x}};
    op.quantized_add = (sdlf_quantized_add_options){.a_scale = 0.5f, .b_scale = 0.25f, .high = 255};
    kernel_rows_add(rows, &op, false, "%lld numbers", (long long)rows->elements);
    op = (sdlf_operation){.kind = SDLF_QUANTIZED_POOL2D,
                          .in = {bytes(sdlf_shape(1, 64, 112, 112))},
                          .out = {bytes(sdlf_shape(1, 64, 56, 56))},
                          .quantized_pool2d = {.window = window_of(3, 2), .scale = 1, .high = 255}};
    op = sdlf_operation_channels_last(&op);
    kernel_rows_add(rows, &op, false, "largest of 3x3, 1x64x112x112, stride 2");
    op = (sdlf_operation){.kind = SDLF_INTEGER_MATMUL,
                          .in = {bytes(sdlf_shape(128, 768)), sdlf_tensor_view(SDLF_INT8, sdlf_shape(768, 768), NULL)},
                          .out = {sdlf_tensor_view(SDLF_INT32, sdlf_shape(128, 768), NULL)}};
    kernel_rows_add(rows, &op, false, "128x768 by 768x768");
}
