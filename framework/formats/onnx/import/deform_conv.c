/* SPDX-License-Identifier: MIT */
/* DeformConv: a convolution in which each element of a window is displaced by a computed offset. The elements are
 * sampled at these positions (as im2col), and multiplied with the weights as matrices. */
#include <string.h>

#include "framework/formats/onnx/import/bilinear.h"

/* N images; `parts` groups of channels, each with its own offsets; a window of K elements at P positions. */
typedef struct deformed {
    onnx_window window;
    int64_t batch, channels, parts, elements, height, width; /* of the window; of the result */
} deformed;

/* The position of each element of each window without its offset, (K, P): along the height, or the width. */
static onnx_flow regular(onnx_context *c, const deformed *d, bool across)
{
    int axis = across ? WIDTH : HEIGHT;
    onnx_tensor tensor = onnx_new_tensor(c, ONNX_FLOAT, sdlf_shape(d->elements, d->height * d->width));
    for (int64_t i = 0; i < tensor.count && onnx_ok(c); i++) {
        int64_t element = i / (d->height * d->width), place = i % (d->height * d->width);
        int64_t in = across ? element % d->window.size[WIDTH] : element / d->window.size[WIDTH];
        int64_t at = across ? place % d->width : place / d->width;
        ((float *)tensor.data)[i] =
            (float)(at * d->window.stride[axis] + in * d->window.dilation[axis] - d->window.before[axis]);
    }
    return onnx_constant_layer(c, &tensor);
}

/* Every element that a window reads, (N, channels, K P). */
static onnx_flow columns_of(onnx_context *c, const deformed *d, onnx_flow x, onnx_flow offset)
{
    int64_t rows = x.shape.dim[2], columns = x.shape.dim[3], groups = d->batch * d->parts, size = rows * columns;
    int64_t places = d->elements * d->height * d->width, each = d->channels / d->parts;
    onnx_flow base = onnx_count_up(c, 0, size, groups, 0, 2);
    onnx_taps taps[2];
    offset = onnx_reshape_batch(c, offset, sdlf_shape(groups, d->elements, 2, d->height * d->width), -1);
    for (int i = 0; i < 2; i++) {
        onnx_flow moved = onnx_reshape_batch(c, onnx_take(c, offset, 2, i, 1, 1),
                                             sdlf_shape(groups, d->elements, d->height * d->width), -1);
        moved = onnx_elementwise(c, "add", moved, regular(c, d, i == 1));
        moved = onnx_reshape_batch(c, moved, sdlf_shape(groups, places), -1);
        taps[i] = onnx_taps_of(c, moved, i == 0 ? rows : columns, false);
    }
    x = onnx_transpose(c, onnx_reshape_batch(c, x, sdlf_shape(groups, each, size), -1), (const int[]){0, 2, 1});
    x = onnx_bilinear(c, onnx_join_axes(c, x, 0, 1), base, &taps[0], &taps[1], columns, false);
    if (onnx_has(c, 4)) { /* a modulation weight for each of them */
        onnx_flow mask = onnx_in(c, 4);
        if (onnx_ok(c) && onnx_batch_axis(c, mask) >= 0) mask = onnx_batch_fixed(c, mask);
        if (onnx_ok(c) && sdlf_shape_count(mask.shape) != groups * places)
            onnx_wrong(c, "a mask %s", sdlf_shape_print(mask.shape).text);
        x = onnx_elementwise(c, "mul", x, onnx_reshape_batch(c, mask, sdlf_shape(groups, places, 1), -1));
    }
    x = onnx_transpose(c, x, (const int[]){0, 2, 1});
    return onnx_reshape_batch(c, x, sdlf_shape(d->batch, d->channels, places), -1);
}

static void convert_deform_conv(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), weight = onnx_in(c, 1), offset = onnx_in(c, 2);
    int64_t groups = onnx_integer(c, "group", 1);
    deformed d = {.parts = onnx_integer(c, "offset_group", 1)};
    if (onnx_ok(c) && (x.shape.rank != 4 || weight.shape.rank != 4 || offset.shape.rank != 4))
        onnx_unsupported(c, "an input %s, a weight %s and offsets %s", sdlf_shape_print(x.shape).text,
                         sdlf_shape_print(weight.shape).text, sdlf_shape_print(offset.shape).text);
    if (!onnx_ok(c)) return;
    d.window = onnx_window_of(c, x.shape, &weight.shape.dim[2]);
    d.batch = x.shape.dim[0];
    d.channels = x.shape.dim[1];
    d.height = onnx_window_count(c, &d.window, HEIGHT, x.shape.dim[2]);
    d.width = onnx_window_count(c, &d.window, WIDTH, x.shape.dim[3]);
    d.elements = (int64_t)d.window.size[HEIGHT] * d.window.size[WIDTH];
    if (!onnx_ok(c)) return;
    int64_t filters = weight.shape.dim[0];
    bool fits = groups >= 1 && groups <= d.channels && d.channels % groups == 0 && filters % groups == 0 &&
                weight.shape.dim[1] == d.channels / groups && d.parts >= 1 && d.parts <= d.channels &&
                d.channels % d.parts == 0 && weight.shape.dim[2] == d.window.size[HEIGHT] &&
                weight.shape.dim[3] == d.window.size[WIDTH];
    fits = fits && offset.shape.dim[0] == d.batch && offset.shape.dim[2] == d.height &&
           offset.shape.dim[3] == d.width && offset.shape.dim[1] % (2 * d.parts) == 0 &&
           offset.shape.dim[1] / (2 * d.parts) == d.elements;
    if (!fits) {
        onnx_wrong(c, "an input %s, a weight %s and offsets %s", sdlf_shape_print(x.shape).text,
                   sdlf_shape_print(weight.shape).text, sdlf_shape_print(offset.shape).text);
        return;
    }
    if (onnx_batch_axis(c, x) >= 0) x = onnx_batch_fixed(c, x);
    if (onnx_batch_axis(c, offset) >= 0) offset = onnx_batch_fixed(c, offset);
    int64_t depth = d.channels / groups * d.elements, places = d.height * d.width;
    onnx_flow columns =
        onnx_reshape_batch(c, columns_of(c, &d, x, offset), sdlf_shape(d.batch, groups, depth, places), -1);
    onnx_flow y =
        onnx_product(c, onnx_reshape_batch(c, weight, sdlf_shape(groups, filters / groups, depth), -1), columns, false);
    y = onnx_reshape_batch(c, y, sdlf_shape(d.batch, filters, d.height, d.width), -1);
    if (onnx_has(c, 3)) {
        onnx_flow bias = onnx_in(c, 3);
        if (onnx_ok(c) && sdlf_shape_count(bias.shape) != filters)
            onnx_wrong(c, "its bias is %s", sdlf_shape_print(bias.shape).text);
        y = onnx_elementwise(c, "add", y, onnx_reshape_batch(c, bias, sdlf_shape(filters, 1, 1), -1));
    }
    onnx_set_output(c, 0, y);
}

const onnx_operator onnx_deform_operators[] = {
    {.type = "DeformConv",
     .since = 19,
     .minimum_inputs = 3,
     .maximum_inputs = 5,
     .attributes = " dilations group kernel_shape offset_group pads strides ",
     .convert = convert_deform_conv},
    {.type = NULL},
};
