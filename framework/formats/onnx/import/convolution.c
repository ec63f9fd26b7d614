/* SPDX-License-Identifier: MIT */
/* Conv and ConvTranspose. (N,C,L) is computed as (N,C,1,L), (N,C,D,H,W) by volume.c. A bias added by the following node
 * becomes the layer's own. */
#include <string.h>

#include "framework/formats/onnx/import/window.h"

/* True if the constant broadcasts to (N,C,H,W) per channel. Shapes C,1,1 and 1,C,1,1. */
static bool is_channel_bias(const onnx_tensor *tensor, int rank, int64_t channels)
{
    int axis = tensor->shape.rank - rank + 1;
    return tensor->count == channels && tensor->shape.rank >= rank - 1 && tensor->shape.rank <= rank && axis >= 0 &&
           tensor->shape.dim[axis] == channels;
}

static onnx_flow conv_image(onnx_context *c, onnx_flow x, const onnx_window *window, sdlf_conv2d_options options,
                            const onnx_tensor *weight, const onnx_tensor *bias)
{
    for (int i = 0; i < 2; i++) {
        int from = HEIGHT + i;
        options.kernel[i] = window->size[from];
        options.stride[i] = window->stride[from];
        options.dilation[i] = window->dilation[from];
        options.padding[i] = window->before[from];
        options.padding_extra[i] = window->after[from] - window->before[from];
    }
    onnx_flow image = onnx_as_image(c, x);
    onnx_flow y = onnx_layer(c, "conv2d", &options, &image, 1);
    onnx_fill_with(c, y, "weight", (onnx_fill){.tensor = *weight});
    if (bias != NULL) onnx_fill_with(c, y, "bias", (onnx_fill){.tensor = *bias});
    return onnx_as_before(c, y, x.shape.rank);
}

onnx_flow onnx_convolve(onnx_context *c, onnx_flow x, const onnx_tensor *weight, const onnx_tensor *bias)
{
    if (!onnx_ok(c)) return x;
    if (weight->shape.rank != x.shape.rank || weight->count == 0) {
        onnx_wrong(c, "its weight is %s and its input %s", sdlf_shape_print(weight->shape).text,
                   sdlf_shape_print(x.shape).text);
        return x;
    }
    onnx_window window = onnx_window_of(c, x.shape, &weight->shape.dim[2]);
    int64_t groups = onnx_integer(c, "group", 1), filters = weight->shape.dim[0];
    if (groups < 1 || groups > INT32_MAX || filters > INT32_MAX || weight->shape.dim[1] > INT64_MAX / INT32_MAX ||
        weight->shape.dim[1] * groups != x.shape.dim[1]) {
        onnx_wrong(c, "its weight %s with %lld groups does not fit its input %s", sdlf_shape_print(weight->shape).text,
                   (long long)groups, sdlf_shape_print(x.shape).text);
        return x;
    }
    if (bias != NULL && (bias->count != filters || bias->shape.rank != 1)) {
        onnx_wrong(c, "its bias is %s; %lld numbers were expected", sdlf_shape_print(bias->shape).text,
                   (long long)filters);
        return x;
    }
    sdlf_conv2d_options options = {.filters = (int)filters, .groups = (int)groups, .no_bias = bias == NULL};
    return x.shape.rank == 5 ? onnx_volume_conv(c, x, &window, options, weight, bias)
                             : conv_image(c, x, &window, options, weight, bias);
}

static void convert_conv(onnx_context *c)
{
    const onnx_tensor *weight = onnx_known(c, 1), *bias = onnx_has(c, 2) ? onnx_known(c, 2) : NULL;
    onnx_flow x = onnx_in(c, 0);
    const Onnx__NodeProto *behind = NULL;
    onnx_tensor row;
    if (bias == NULL && onnx_ok(c)) bias = onnx_constant_behind(c, "Add", &behind);
    if (behind != NULL && (bias == NULL || !is_channel_bias(bias, x.shape.rank, weight->shape.dim[0]))) bias = NULL;
    if (behind != NULL && bias != NULL) {
        row = *bias;
        row.shape = sdlf_shape(row.count);
        bias = &row;
    }
    onnx_flow y = onnx_convolve(c, x, weight, bias);
    onnx_set_output(c, 0, y);
    if (behind != NULL && bias != NULL) onnx_absorb(c, behind, y);
}

/* One axis of a transposed convolution. A given output size determines the padding. */
static void transposed_axis(onnx_context *c, onnx_window *window, int at, int64_t in, int64_t wanted, int64_t *added,
                            bool upper)
{
    if (wanted < 0) return;
    int64_t total = window->stride[at] * (in - 1) + *added + onnx_extent(window, at) - wanted;
    if (wanted < 1 || wanted > INT32_MAX || total > INT32_MAX) {
        onnx_wrong(c, "an output of %lld elements", (long long)wanted);
        return;
    }
    if (total < 0) {
        *added -= total;
        total = 0;
    }
    window->before[at] = (int)(upper ? total / 2 : total - total / 2);
    window->after[at] = (int)(total - window->before[at]);
}

/* Padding is cropped from the result, and output_padding is added at its end. */
static onnx_window transposed_window(onnx_context *c, sdlf_shape x, const int64_t *kernel, int64_t *added)
{
    onnx_word same = onnx_text(c, "auto_pad", "NOTSET");
    bool upper = strcmp(same.text, "SAME_UPPER") == 0, lower = strcmp(same.text, "SAME_LOWER") == 0;
    onnx_list wanted = onnx_integers(c, "output_shape"), more = onnx_integers(c, "output_padding");
    onnx_window window = onnx_window_of(c, x, kernel);
    int count = x.rank - 2;
    if (!onnx_ok(c)) return window;
    if ((wanted.count >= 0 && wanted.count != count && wanted.count != x.rank) ||
        (more.count >= 0 && more.count != count)) {
        onnx_wrong(c, "attribute 'output_shape' or 'output_padding' is for other dimensions");
        return window;
    }
    for (int i = 0; i < count; i++) {
        int at = ONNX_AXES - count + i;
        int64_t size = wanted.count >= 0 ? wanted.item[wanted.count - count + i] : -1;
        if (size < 0 && (upper || lower)) size = x.dim[2 + i] * window.stride[at];
        added[at] = more.count >= 0 ? more.item[i] : 0;
        if (added[at] < 0 || added[at] > 65535) onnx_wrong(c, "attribute 'output_padding'");
        transposed_axis(c, &window, at, x.dim[2 + i], size, &added[at], upper);
    }
    return window;
}

static onnx_flow transposed_image(onnx_context *c, onnx_flow x, const onnx_window *window,
                                  sdlf_conv_transpose2d_options options, const int64_t *added,
                                  const onnx_tensor *weight, const onnx_tensor *bias)
{
    for (int i = 0; i < 2; i++) {
        int from = HEIGHT + i;
        options.kernel[i] = window->size[from];
        options.stride[i] = window->stride[from];
        options.dilation[i] = window->dilation[from];
        options.padding[i] = window->before[from];
        options.padding_extra[i] = window->after[from] - window->before[from];
        options.output_padding[i] = (int)added[from];
    }
    onnx_flow image = onnx_as_image(c, x);
    onnx_flow y = onnx_layer(c, "conv_transpose2d", &options, &image, 1);
    onnx_fill_with(c, y, "weight", (onnx_fill){.tensor = *weight});
    if (bias != NULL) onnx_fill_with(c, y, "bias", (onnx_fill){.tensor = *bias});
    return onnx_as_before(c, y, x.shape.rank);
}

static void convert_conv_transpose(onnx_context *c)
{
    const onnx_tensor *weight = onnx_known(c, 1), *bias = onnx_has(c, 2) ? onnx_known(c, 2) : NULL;
    onnx_flow x = onnx_in(c, 0);
    int64_t groups = onnx_integer(c, "group", 1), added[ONNX_AXES] = {0, 0, 0};
    if (!onnx_ok(c)) return;
    if (weight->shape.rank != x.shape.rank || weight->count == 0 || weight->shape.dim[0] != x.shape.dim[1] ||
        groups < 1 || groups > INT32_MAX || weight->shape.dim[1] > INT32_MAX / groups) {
        onnx_wrong(c, "its weight %s with %lld groups does not fit its input %s", sdlf_shape_print(weight->shape).text,
                   (long long)groups, sdlf_shape_print(x.shape).text);
        return;
    }
    int64_t filters = weight->shape.dim[1] * groups;
    if (bias != NULL && bias->count != filters)
        onnx_wrong(c, "its bias is %s; %lld numbers were expected", sdlf_shape_print(bias->shape).text,
                   (long long)filters);
    onnx_window window = transposed_window(c, x.shape, &weight->shape.dim[2], added);
    sdlf_conv_transpose2d_options options = {.filters = (int)filters, .groups = (int)groups, .no_bias = bias == NULL};
    onnx_set_output(c, 0,
                    x.shape.rank == 5 ? onnx_volume_conv_transpose(c, x, &window, options, added, weight, bias)
                                      : transposed_image(c, x, &window, options, added, weight, bias));
}

const onnx_operator onnx_convolution_operators[] = {
    {.type = "Conv",
     .since = 1,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .known = 1u << 1 | 1u << 2,
     .attributes = " auto_pad dilations group kernel_shape pads strides ",
     .convert = convert_conv},
    {.type = "ConvTranspose",
     .since = 1,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .known = 1u << 1 | 1u << 2,
     .attributes = " auto_pad dilations group kernel_shape output_padding output_shape pads strides ",
     .convert = convert_conv_transpose},
    {.type = NULL},
};
