/* SPDX-License-Identifier: MIT */
/* 3-D convolutions, composed of 2-D ones: layers that every calculator has.
 *
 * The slices of x (N,C,D,H,W) are stacked into one tall image, so that one convolution processes all of them. Each
 * slice gets a block of rows: its own, its padding, and as many more as make the next slice start at a multiple of the
 * stride. Outputs across the border of two blocks are discarded.
 *
 *   Conv: along the depth, a window's slices become channels: (N, C KD, D' rows, W) with the weight (K, C KD, R, S),
 *   which is the memory layout of ONNX's (K,C,KD,R,S).
 *   ConvTranspose: the weight (C,K,KD,R,S) is viewed as (C, K KD, R, S). Each input slice yields KD slices per
 *   filter, and slice i of these is added to the output at depth  stride d + dilation i - padding. */
#include "framework/formats/onnx/import/fold.h"
#include "framework/formats/onnx/import/window.h"

enum { MOST_SLICES = 64 }; /* of a window: each is a layer of its own */

static bool is_deep(onnx_context *c, const onnx_window *window)
{
    if (onnx_ok(c) && window->size[DEPTH] > MOST_SLICES)
        onnx_unsupported(c, "a window over 3 dimensions that is %d deep; at most %d is supported", window->size[DEPTH],
                         (int)MOST_SLICES);
    return onnx_ok(c);
}

/* Reshapes (N,C,...) to these dimensions after the batch. */
static onnx_flow seen(onnx_context *c, onnx_flow x, int rank, int64_t a, int64_t b, int64_t d, int64_t e, int64_t f)
{
    sdlf_shape shape = {.rank = rank, .dim = {x.shape.dim[0], a, b, d, e, f}};
    for (int i = rank; i < SDLF_MAX_RANK; i++) shape.dim[i] = 0;
    return onnx_reshape(c, x, shape);
}

/* From (N,C,D',rows,W) with D' output slices, makes a window's slices channels: (N, C KD, D' rows, W). */
static onnx_flow unfold_depth(onnx_context *c, onnx_flow x, const onnx_window *window, int64_t count)
{
    onnx_flow part[MOST_SLICES];
    int taps = window->size[DEPTH];
    for (int i = 0; i < taps && onnx_ok(c); i++) {
        part[i] = onnx_take(c, x, 2, (int64_t)i * window->dilation[DEPTH], count, window->stride[DEPTH]);
        if (onnx_ok(c)) part[i] = seen(c, part[i], 5, x.shape.dim[1], 1, count * x.shape.dim[3], x.shape.dim[4], 0);
    }
    if (!onnx_ok(c)) return x;
    onnx_flow y = onnx_join(c, part, taps, 2);
    return onnx_ok(c) ? seen(c, y, 4, y.shape.dim[1] * taps, y.shape.dim[3], y.shape.dim[4], 0, 0) : y;
}

onnx_flow onnx_volume_conv(onnx_context *c, onnx_flow x, const onnx_window *window, sdlf_conv2d_options options,
                           const onnx_tensor *weight, const onnx_tensor *bias)
{
    if (!is_deep(c, window)) return x;
    int64_t depth = onnx_window_count(c, window, DEPTH, x.shape.dim[2]);
    int64_t height = onnx_window_count(c, window, HEIGHT, x.shape.dim[3]);
    int64_t stride = window->stride[HEIGHT], reach = onnx_extent(window, HEIGHT);
    int64_t rows = ((height - 1) * stride + reach + stride - 1) / stride * stride; /* of a block */
    int64_t slices = (depth - 1) * window->stride[DEPTH] + onnx_extent(window, DEPTH);
    onnx_flow tall = onnx_pad_axis(c, x, 2, window->before[DEPTH], slices - x.shape.dim[2] - window->before[DEPTH], 0);
    tall = onnx_pad_axis(c, tall, 3, window->before[HEIGHT], rows - x.shape.dim[3] - window->before[HEIGHT], 0);
    tall = unfold_depth(c, tall, window, depth);
    for (int i = 0; i < 2; i++) {
        options.kernel[i] = window->size[HEIGHT + i];
        options.stride[i] = window->stride[HEIGHT + i];
        options.dilation[i] = window->dilation[HEIGHT + i];
    }
    options.padding[1] = window->before[WIDTH];
    options.padding_extra[1] = window->after[WIDTH] - window->before[WIDTH];
    options.padding_extra[0] =
        reach > stride ? (int)(reach - stride) : 0; /* so that the last block is like the others */
    onnx_flow y = onnx_layer(c, "conv2d", &options, &tall, 1);
    onnx_fill_with(c, y, "weight", (onnx_fill){.tensor = *weight});
    if (bias != NULL) onnx_fill_with(c, y, "bias", (onnx_fill){.tensor = *bias});
    if (!onnx_ok(c)) return y;
    y = seen(c, y, 5, y.shape.dim[1], depth, rows / stride, y.shape.dim[3], 0);
    return onnx_take(c, y, 3, 0, height, 1);
}

/* Adds a per-channel bias to (N,K,D,H,W). */
static onnx_flow with_bias(onnx_context *c, onnx_flow y, const onnx_tensor *bias)
{
    if (bias == NULL || !onnx_ok(c)) return y;
    onnx_tensor column = *bias;
    column.shape = sdlf_shape(bias->count, 1, 1, 1);
    onnx_flow terms[] = {y, onnx_constant_layer(c, &column)};
    return onnx_binary(c, "add", terms);
}

/* Adds slices (N,K,KD,D,M) at their positions in an output of `depth` slices: (N,K,depth,M). */
static onnx_flow add_slices(onnx_context *c, onnx_flow parts, const onnx_window *window, int64_t depth)
{
    int64_t channels = parts.shape.dim[1], in = parts.shape.dim[3], size = parts.shape.dim[4];
    int64_t stride = window->stride[DEPTH];
    onnx_flow sum = {.node = {-1, 0}};
    for (int i = 0; i < window->size[DEPTH] && onnx_ok(c); i++) {
        int64_t first = (int64_t)i * window->dilation[DEPTH] - window->before[DEPTH];
        if (first >= depth || first + in * stride <= 0) continue; /* entirely cropped */
        onnx_flow part = seen(c, onnx_take(c, parts, 2, i, 1, 1), 5, channels, in, 1, size, 0);
        part = onnx_pad_axis(c, part, 3, 0, stride - 1, 0); /* zeros between the slices */
        part = seen(c, part, 4, channels, in * stride, size, 0, 0);
        part = onnx_pad_axis(c, part, 2, first, depth - in * stride - first, 0);
        onnx_flow terms[] = {sum, part};
        sum = sum.node.layer < 0 ? part : onnx_binary(c, "add", terms);
    }
    if (onnx_ok(c) && sum.node.layer < 0) onnx_wrong(c, "its padding leaves nothing of its output");
    return sum;
}

onnx_flow onnx_volume_conv_transpose(onnx_context *c, onnx_flow x, const onnx_window *window,
                                     sdlf_conv_transpose2d_options options, const int64_t *added,
                                     const onnx_tensor *weight, const onnx_tensor *bias)
{
    if (!is_deep(c, window)) return x;
    int64_t size[ONNX_AXES], filters = options.filters, taps = window->size[DEPTH];
    for (int i = 0; i < ONNX_AXES; i++) {
        size[i] = (x.shape.dim[2 + i] - 1) * window->stride[i] + onnx_extent(window, i) + added[i] - window->before[i] -
                  window->after[i];
        if (size[i] < 1 || size[i] > INT32_MAX)
            onnx_wrong(c, "its output would have %lld elements along an axis", (long long)size[i]);
    }
    if (onnx_ok(c) && filters > INT32_MAX / taps) onnx_unsupported(c, "%lld filters", (long long)filters);
    if (!onnx_ok(c)) return x;
    int64_t stride = window->stride[HEIGHT], reach = onnx_extent(window, HEIGHT);
    int64_t rows = x.shape.dim[3] - 1 + (reach + stride - 1) / stride; /* of a block, before the convolution */
    onnx_flow tall = onnx_pad_axis(c, x, 3, 0, rows - x.shape.dim[3], 0);
    tall = seen(c, tall, 4, x.shape.dim[1], x.shape.dim[2] * rows, x.shape.dim[4], 0, 0);
    for (int i = 0; i < 2; i++) {
        options.kernel[i] = window->size[HEIGHT + i];
        options.stride[i] = window->stride[HEIGHT + i];
        options.dilation[i] = window->dilation[HEIGHT + i];
    }
    options.filters = (int)(filters * taps);
    options.no_bias = true;
    options.padding[1] = window->before[WIDTH];
    options.padding_extra[1] = window->after[WIDTH] - window->before[WIDTH];
    options.output_padding[1] = (int)added[WIDTH];
    if (reach > stride)
        options.padding_extra[0] = (int)(reach - stride);
    else
        options.output_padding[0] = (int)(stride - reach);
    onnx_flow y = onnx_layer(c, "conv_transpose2d", &options, &tall, 1);
    onnx_fill_with(c, y, "weight", (onnx_fill){.tensor = *weight});
    if (!onnx_ok(c)) return y;
    y = seen(c, y, 4, filters * taps * x.shape.dim[2], rows * stride, y.shape.dim[3], 0, 0);
    y = onnx_pad_axis(c, y, 2, -window->before[HEIGHT], window->before[HEIGHT] + size[HEIGHT] - rows * stride, 0);
    y = seen(c, y, 5, filters, taps, x.shape.dim[2], size[HEIGHT] * size[WIDTH], 0);
    y = add_slices(c, y, window, size[DEPTH]);
    if (!onnx_ok(c)) return y;
    return with_bias(c, seen(c, y, 5, filters, size[DEPTH], size[HEIGHT], size[WIDTH], 0), bias);
}
