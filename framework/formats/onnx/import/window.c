/* SPDX-License-Identifier: MIT */
/* Window geometry. See window.h. */
#include "framework/formats/onnx/import/window.h"

#include <string.h>

enum { LIMIT = 65535 }; /* of a size, stride or padding */

/* Reads the list attribute `name`; if it is omitted, every dimension gets `fallback`. */
static void read_list(onnx_context *c, const char *name, int count, int64_t fallback, int64_t least, int64_t *out)
{
    onnx_list list = onnx_integers(c, name);
    for (int i = 0; i < count; i++) out[i] = fallback;
    if (list.count < 0) return;
    if (list.count != count) {
        onnx_wrong(c, "attribute '%s' has %d numbers; %d were expected", name, list.count, count);
        return;
    }
    for (int i = 0; i < count; i++) {
        out[i] = list.item[i];
        if (out[i] < least && least == 0)
            onnx_unsupported(c, "attribute '%s' has the negative number %lld", name, (long long)out[i]);
        else if (out[i] < least || out[i] > LIMIT)
            onnx_wrong(c, "attribute '%s': %lld is not in %lld to %d", name, (long long)out[i], (long long)least,
                       LIMIT);
    }
}

/* SAME padding of one dimension: the output has ceil(in / stride) elements. */
static void pad_to_same(int64_t in, int64_t extent, int64_t stride, bool upper, int64_t *before, int64_t *after)
{
    int64_t out = (in + stride - 1) / stride, total = (out - 1) * stride + extent - in;
    if (total < 0) total = 0;
    *before = upper ? total / 2 : total - total / 2;
    *after = total - *before;
}

/* How much further the last window extends if the number of windows is rounded up; windows that would start after the
 * input and the padding before it are omitted. A single window may be larger than the padded input. */
static int64_t ceil_padding(int64_t in, int64_t extent, int64_t stride, int64_t before, int64_t after)
{
    int64_t room = in + before + after - extent;
    if (room <= -stride || room % stride == 0) return 0;
    if (room < 0) return -room;
    int64_t start = (room / stride + 1) * stride;
    return start < in + before ? start - room : 0;
}

onnx_window onnx_window_of(onnx_context *c, sdlf_shape x, const int64_t *kernel)
{
    onnx_window window = {.size = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    int count = x.rank - 2;
    int64_t size[ONNX_AXES], stride[ONNX_AXES], dilation[ONNX_AXES], pads[2 * ONNX_AXES];
    if (!onnx_ok(c)) return window;
    if (count < 1 || count > ONNX_AXES) {
        onnx_unsupported(c, "windows over %d dimensions (its input is %s); 1 to 3 are supported", count,
                         sdlf_shape_print(x).text);
        return window;
    }
    for (int i = 2; i < x.rank; i++)
        if (x.dim[i] > INT32_MAX) onnx_unsupported(c, "its input %s is too large", sdlf_shape_print(x).text);
    if (kernel == NULL && !onnx_has_attribute(c, "kernel_shape")) onnx_wrong(c, "attribute 'kernel_shape' is missing");
    read_list(c, "kernel_shape", count, 0, 1, size);
    for (int i = 0; i < count && kernel != NULL; i++) {
        if (size[i] != 0 && size[i] != kernel[i])
            onnx_wrong(c, "attribute 'kernel_shape' has %lld where the weight has %lld", (long long)size[i],
                       (long long)kernel[i]);
        size[i] = kernel[i];
        if (size[i] < 1 || size[i] > LIMIT) onnx_wrong(c, "a kernel of side %lld", (long long)size[i]);
    }
    read_list(c, "strides", count, 1, 1, stride);
    read_list(c, "dilations", count, 1, 1, dilation);
    read_list(c, "pads", 2 * count, 0, 0, pads);
    onnx_word same = onnx_text(c, "auto_pad", "NOTSET");
    bool upper = strcmp(same.text, "SAME_UPPER") == 0, lower = strcmp(same.text, "SAME_LOWER") == 0;
    bool valid = strcmp(same.text, "VALID") == 0;
    if (!upper && !lower && !valid && strcmp(same.text, "NOTSET") != 0)
        onnx_wrong(c, "attribute 'auto_pad' is '%s'", same.text);
    bool ceil_mode = onnx_has_attribute(c, "ceil_mode") && onnx_flag(c, "ceil_mode", false);
    for (int i = 0; i < count && onnx_ok(c); i++) {
        int at = ONNX_AXES - count + i;
        int64_t in = x.dim[2 + i], extent = (size[i] - 1) * dilation[i] + 1;
        int64_t before = valid ? 0 : pads[i], after = valid ? 0 : pads[count + i], added = 0;
        if (upper || lower) pad_to_same(in, extent, stride[i], upper, &before, &after);
        if (ceil_mode && !upper && !lower) added = ceil_padding(in, extent, stride[i], before, after);
        window.size[at] = (int)size[i];
        window.stride[at] = (int)stride[i];
        window.dilation[at] = (int)dilation[i];
        window.before[at] = (int)before;
        window.after[at] = (int)(after + added);
        window.added[at] = (int)added;
        if (before > LIMIT || after + added > LIMIT) onnx_wrong(c, "padding of more than %d", LIMIT);
    }
    return window;
}

int64_t onnx_extent(const onnx_window *window, int axis)
{
    return (int64_t)(window->size[axis] - 1) * window->dilation[axis] + 1;
}

int64_t onnx_window_count(onnx_context *c, const onnx_window *window, int axis, int64_t in)
{
    int64_t room = in + window->before[axis] + window->after[axis] - onnx_extent(window, axis);
    if (!onnx_ok(c)) return 1;
    if (room >= 0) return room / window->stride[axis] + 1;
    onnx_wrong(c, "its window of %lld elements is larger than its input of %lld with padding %d and %d",
               (long long)onnx_extent(window, axis), (long long)in, window->before[axis], window->after[axis]);
    return 1;
}

onnx_flow onnx_as_image(onnx_context *c, onnx_flow x)
{
    if (!onnx_ok(c) || x.shape.rank != 3) return x;
    return onnx_reshape(c, x, sdlf_shape(x.shape.dim[0], x.shape.dim[1], 1, x.shape.dim[2]));
}

onnx_flow onnx_as_before(onnx_context *c, onnx_flow y, int rank)
{
    if (!onnx_ok(c) || rank != 3 || y.shape.rank != 4) return y;
    return onnx_reshape(c, y, sdlf_shape(y.shape.dim[0], y.shape.dim[1], y.shape.dim[3]));
}

onnx_flow onnx_take(onnx_context *c, onnx_flow x, int axis, int64_t start, int64_t count, int64_t step)
{
    if (!onnx_ok(c) || (start == 0 && step == 1 && count == x.shape.dim[axis])) return x;
    return onnx_layer(c, "slice",
                      &(sdlf_slice_options){.axes = sdlf_shape(axis),
                                            .start = sdlf_shape(start),
                                            .end = sdlf_shape(start + (count - 1) * step + 1),
                                            .step = sdlf_shape(step)},
                      &x, 1);
}

onnx_flow onnx_pad_axis(onnx_context *c, onnx_flow x, int axis, int64_t before, int64_t after, double value)
{
    sdlf_pad_options options = {
        .before = {.rank = x.shape.rank}, .after = {.rank = x.shape.rank}, .value = (float)value};
    if (!onnx_ok(c) || (before == 0 && after == 0)) return x;
    options.before.dim[axis] = before;
    options.after.dim[axis] = after;
    return onnx_layer(c, "pad", &options, &x, 1);
}

onnx_flow onnx_join(onnx_context *c, const onnx_flow *parts, int count, int axis)
{
    onnx_flow group[SDLF_MAX_LAYER_INPUTS];
    int used = 0;
    for (int i = 0; i < count && onnx_ok(c); i++) {
        sdlf_concat_options options = {.axis = axis - parts[0].shape.rank}; /* from the end: 0 would mean the default */
        group[used++] = parts[i];
        if (used < SDLF_MAX_LAYER_INPUTS && i + 1 < count) continue;
        if (used > 1) group[0] = onnx_layer(c, "concat", &options, group, used);
        used = 1;
    }
    return used > 0 ? group[0] : parts[0];
}

onnx_flow onnx_as_column(onnx_context *c, onnx_flow x)
{
    if (!onnx_ok(c)) return x;
    if (x.shape.rank < 2) {
        onnx_wrong(c, "an input (N,C,...) was expected, found %s", sdlf_shape_print(x.shape).text);
        return x;
    }
    return onnx_reshape(c, x, sdlf_shape(x.shape.dim[0], x.shape.dim[1], sdlf_shape_span(x.shape, 2, x.shape.rank), 1));
}
