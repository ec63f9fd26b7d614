/* SPDX-License-Identifier: MIT */
/* MaxPool, AveragePool and the global average. 3-D pooling is composed of pooling over height and width, then over the
 * depth: a maximum of maxima; and, since padding is excluded from the counts along each axis independently, a mean of
 * means. */
#include <string.h>

#include "framework/formats/onnx/import/fold.h"
#include "framework/formats/onnx/import/window.h"

static sdlf_pool2d_options options_of(const onnx_window *window)
{
    sdlf_pool2d_options options = {.window = {0}};
    for (int i = 0; i < 2; i++) {
        int from = HEIGHT + i;
        options.window[i] = window->size[from];
        options.stride[i] = window->stride[from];
        options.dilation[i] = window->dilation[from];
        options.padding[i] = window->before[from];
        options.padding_extra[i] = window->after[from] - window->before[from];
    }
    return options;
}

/* The pooling along the depth, as a window over the height. */
static onnx_window depth_of(const onnx_window *window)
{
    onnx_window depth = {.size = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    depth.size[HEIGHT] = window->size[DEPTH];
    depth.stride[HEIGHT] = window->stride[DEPTH];
    depth.dilation[HEIGHT] = window->dilation[DEPTH];
    depth.before[HEIGHT] = window->before[DEPTH];
    depth.after[HEIGHT] = window->after[DEPTH];
    depth.added[HEIGHT] = window->added[DEPTH];
    return depth;
}

typedef onnx_flow pool(onnx_context *c, onnx_flow image, const onnx_window *window, bool count_padding);

/* A pooling of images (N,C,H,W) for x of any rank. */
static onnx_flow over(onnx_context *c, onnx_flow x, const onnx_window *window, bool count_padding, pool *image)
{
    if (!onnx_ok(c) || x.shape.rank < 5)
        return onnx_as_before(c, image(c, onnx_as_image(c, x), window, count_padding), x.shape.rank);
    sdlf_shape s = x.shape;
    onnx_window depth = depth_of(window);
    onnx_flow y = onnx_reshape(c, x, sdlf_shape(s.dim[0], s.dim[1] * s.dim[2], s.dim[3], s.dim[4]));
    y = image(c, y, window, count_padding);
    if (!onnx_ok(c)) return y;
    int64_t height = y.shape.dim[2], width = y.shape.dim[3];
    y = onnx_reshape(c, y, sdlf_shape(s.dim[0], s.dim[1], s.dim[2], height * width));
    y = image(c, y, &depth, count_padding);
    return onnx_ok(c) ? onnx_reshape(c, y, sdlf_shape(s.dim[0], s.dim[1], y.shape.dim[2], height, width)) : y;
}

/* ---- maximum ---- */

static onnx_flow max_image(onnx_context *c, onnx_flow image, const onnx_window *window, bool count_padding)
{
    sdlf_pool2d_options options = options_of(window);
    (void)count_padding;
    options.ties = SDLF_TIES_FIRST;
    for (int i = 0; i < 2 && onnx_ok(c); i++) {
        int from = HEIGHT + i, size = window->size[from];
        bool inside = window->before[from] < size && window->after[from] < size;
        if (window->dilation[from] == 1 || (inside && window->dilation[from] <= image.shape.dim[2 + i])) continue;
        /* a dilated window may lie entirely outside the image, which the layer does not support */
        image = onnx_pad_axis(c, image, 2 + i, window->before[from], window->after[from], -3.4e38);
        options.padding[i] = options.padding_extra[i] = 0;
    }
    return onnx_layer(c, "max_pool2d", &options, &image, 1);
}

static void convert_max_pool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), numbers = onnx_small_as_float(c, x);
    onnx_window window = onnx_window_of(c, x.shape, NULL);
    bool column_major = onnx_flag(c, "storage_order", false);
    onnx_set_output(c, 0, onnx_cast(c, over(c, numbers, &window, false, max_image), x.dtype));
    if (c->output_count > 1 && c->output[1] != NULL)
        onnx_set_output(c, 1, onnx_pool_indices(c, numbers, &window, column_major));
}

/* ---- mean ---- */

/* The number of elements that each window along an axis covers: of the input, and with `padding` also of padding. */
static void cover(const onnx_window *window, int axis, int64_t in, bool padding, int64_t windows, double *count)
{
    int64_t low = padding ? -window->before[axis] : 0;
    int64_t high = padding ? in + window->after[axis] - window->added[axis] : in;
    for (int64_t p = 0; p < windows; p++) {
        count[p] = 0;
        for (int i = 0; i < window->size[axis]; i++) {
            int64_t at = p * window->stride[axis] - window->before[axis] + (int64_t)i * window->dilation[axis];
            if (at >= low && at < high) count[p]++;
        }
    }
}

/* (N,C,P,Q) sums, divided along an axis by their counts. */
static onnx_flow divided(onnx_context *c, onnx_flow sum, const double *count, int64_t windows, bool rows)
{
    onnx_tensor tensor = onnx_new_tensor(c, ONNX_DOUBLE, rows ? sdlf_shape(windows, 1) : sdlf_shape(windows));
    if (!onnx_ok(c)) return sum;
    for (int64_t p = 0; p < windows; p++) ((double *)tensor.data)[p] = count[p] > 0 ? count[p] : 1;
    onnx_flow both[] = {sum, onnx_constant_layer(c, &tensor)};
    return onnx_binary(c, "div", both);
}

/* The mean over a dilated window, axis by axis: the sum of one slice per element of the window. */
static onnx_flow dilated_mean(onnx_context *c, onnx_flow image, const onnx_window *window, bool count_padding)
{
    enum { MOST = 256, MOST_WINDOWS = 1 << 13 };
    for (int d = 0; d < 2 && onnx_ok(c); d++) {
        int from = HEIGHT + d;
        int64_t in = image.shape.dim[2 + d], windows = onnx_window_count(c, window, from, in);
        if (window->size[from] > MOST || windows > MOST_WINDOWS)
            onnx_unsupported(
                c, "attribute 'dilations' other than 1 with a window of more than %d elements, or more than %d windows",
                (int)MOST, (int)MOST_WINDOWS);
        if (!onnx_ok(c)) break;
        onnx_flow wide = onnx_pad_axis(c, image, 2 + d, window->before[from], window->after[from], 0), sum = wide;
        for (int i = 0; i < window->size[from] && onnx_ok(c); i++) {
            int64_t start = (int64_t)i * window->dilation[from];
            onnx_flow terms[] = {sum, onnx_take(c, wide, 2 + d, start, windows, window->stride[from])};
            sum = i == 0 ? terms[1] : onnx_binary(c, "add", terms);
        }
        double *count = onnx_arena_array(&c->import->file->arena, (size_t)windows, sizeof *count);
        if (count == NULL) onnx_no_memory(c);
        if (!onnx_ok(c)) break;
        cover(window, from, in, count_padding, windows, count);
        image = window->size[from] > 1 ? divided(c, sum, count, windows, d == 0) : sum;
    }
    return image;
}

static onnx_flow mean_image(onnx_context *c, onnx_flow image, const onnx_window *window, bool count_padding)
{
    sdlf_pool2d_options options = options_of(window);
    if (!onnx_ok(c)) return image;
    if (window->dilation[HEIGHT] != 1 || window->dilation[WIDTH] != 1)
        return dilated_mean(c, image, window, count_padding);
    options.count_padding = count_padding;
    if (count_padding && (window->added[HEIGHT] > 0 || window->added[WIDTH] > 0)) {
        /* padding counts, but not what ceil_mode adds: so the padding becomes part of the image */
        for (int i = 0; i < 2; i++) {
            int from = HEIGHT + i, added = window->added[from];
            image = onnx_pad_axis(c, image, 2 + i, window->before[from], window->after[from] - added, 0);
            options.padding[i] = 0;
            options.padding_extra[i] = added;
        }
        options.count_padding = false;
    }
    return onnx_layer(c, "avg_pool2d", &options, &image, 1);
}

static void convert_average_pool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    onnx_window window = onnx_window_of(c, x.shape, NULL);
    onnx_set_output(c, 0, over(c, x, &window, onnx_flag(c, "count_include_pad", false), mean_image));
}

/* The root of the sum of powers, from a mean pooling with explicit zero padding. */
static void convert_lp_pool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int64_t p = onnx_integer(c, "p", 2), elements = 1;
    onnx_window window = onnx_window_of(c, x.shape, NULL);
    if (p < 1 || p > 1 << 24) onnx_wrong(c, "attribute 'p' is %lld", (long long)p);
    int axes = x.shape.rank - 2;
    x = onnx_layer(c, "unary", &(sdlf_unary_options){.function = SDLF_UNARY_ABS}, &x, 1);
    if (p > 1) x = onnx_with_number(c, "pow", x, (double)p);
    for (int i = 0; i < axes && onnx_ok(c); i++) {
        int at = ONNX_AXES - axes + i;
        x = onnx_pad_axis(c, x, 2 + i, window.before[at], window.after[at], 0);
        window.before[at] = window.after[at] = window.added[at] = 0;
        elements *= window.size[at];
    }
    onnx_flow y = onnx_with_number(c, "mul", over(c, x, &window, true, mean_image), (double)elements);
    onnx_set_output(c, 0, p > 1 ? onnx_with_number(c, "pow", y, 1.0 / (double)p) : y);
}

/* The result of a global pooling, (N,C,1,1), with trailing ones up to x's rank. */
static onnx_flow as_global(onnx_context *c, onnx_flow y, int rank)
{
    sdlf_shape shape = {.rank = rank, .dim = {y.shape.dim[0], y.shape.dim[1]}};
    for (int i = 2; i < rank; i++) shape.dim[i] = 1;
    return onnx_reshape(c, y, shape);
}

static void convert_global_average_pool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), image = x.shape.rank == 4 ? x : onnx_as_column(c, x);
    onnx_set_output(c, 0, as_global(c, onnx_layer(c, "global_avg_pool2d", NULL, &image, 1), x.shape.rank));
}

const onnx_operator onnx_pooling_operators[] = {
    {.type = "MaxPool",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " auto_pad ceil_mode dilations kernel_shape pads storage_order strides ",
     .convert = convert_max_pool},
    {.type = "AveragePool",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides ",
     .convert = convert_average_pool},
    {.type = "LpPool",
     .since = 2,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " auto_pad ceil_mode dilations kernel_shape p pads strides ",
     .convert = convert_lp_pool},
    {.type = "GlobalAveragePool",
     .since = 1,
     .from_first = true,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " ",
     .convert = convert_global_average_pool},
    {.type = NULL},
};
