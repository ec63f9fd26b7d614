/* SPDX-License-Identifier: MIT */
/* Pad, with a constant or with the input's own elements; and CenterCropPad. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

static int mode_of(onnx_context *c)
{
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"}; /* in the order of the layer's modes */
    onnx_word mode = onnx_text(c, "mode", "constant");
    for (int i = 0; i < 4; i++)
        if (strcmp(mode.text, names[i]) == 0) return i;
    onnx_wrong(c, "attribute 'mode' is '%s'", mode.text);
    return 0;
}

static bool is_size(int64_t size)
{
    return size >= -INT32_MAX && size <= INT32_MAX;
}

/* Replaces the zeros with which x was padded by an infinite value or NaN: the layer supports only finite ones. */
static onnx_flow padded_with(onnx_context *c, onnx_flow y, sdlf_shape before, sdlf_shape after, double value)
{
    sdlf_shape shape = y.shape;
    if (!onnx_ok(c)) return y;
    for (int i = 0; i < shape.rank; i++)
        if (before.dim[i] <= 0 && after.dim[i] <= 0) shape.dim[i] = 1;
    onnx_tensor inside = onnx_new_tensor(c, ONNX_BOOL, shape);
    int64_t index[SDLF_MAX_RANK] = {0};
    for (int64_t i = 0; i < inside.count && onnx_ok(c); i++) {
        bool is = true;
        for (int d = 0; d < shape.rank; d++)
            is = is && index[d] >= before.dim[d] && (after.dim[d] <= 0 || index[d] < shape.dim[d] - after.dim[d]);
        ((uint8_t *)inside.data)[i] = is;
        for (int d = shape.rank - 1; d >= 0 && ++index[d] == shape.dim[d]; d--) index[d] = 0;
    }
    return onnx_choose(c, onnx_constant_layer(c, &inside), y, onnx_number(c, SDLF_FLOAT32, value));
}

/* Crops negative padding first: cropped elements must not contribute to edges, reflections or periods. */
static onnx_flow cropped(onnx_context *c, onnx_flow x, sdlf_pad_options *options)
{
    sdlf_pad_options crop = {.before = {.rank = x.shape.rank}, .after = {.rank = x.shape.rank}};
    bool any = false;
    for (int i = 0; i < x.shape.rank; i++) {
        int64_t *before = &options->before.dim[i], *after = &options->after.dim[i];
        any = any || *before < 0 || *after < 0;
        crop.before.dim[i] = *before < 0 ? *before : 0;
        crop.after.dim[i] = *after < 0 ? *after : 0;
        *before = *before > 0 ? *before : 0;
        *after = *after > 0 ? *after : 0;
    }
    return any ? onnx_layer(c, "pad", &crop, &x, 1) : x;
}

static void convert_pad(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int rank = x.shape.rank;
    onnx_list pads = c->opset < 11 ? onnx_integers(c, "pads") : onnx_known_integers(c, 1);
    onnx_list axes = onnx_has(c, 3) ? onnx_known_integers(c, 3) : (onnx_list){NULL, -1};
    double value = c->opset < 11 ? (double)onnx_real(c, "value", 0) : onnx_known_number(c, 2, 0);
    sdlf_pad_options options = {
        .before = {.rank = rank}, .after = {.rank = rank}, .value = (float)value, .mode = mode_of(c)};
    bool named[SDLF_MAX_RANK] = {false};
    int count = axes.count >= 0 ? axes.count : rank;
    if (onnx_ok(c) && pads.count != 2 * count) onnx_wrong(c, "%d pads for %d axes", pads.count, count);
    for (int i = 0; i < count && onnx_ok(c); i++) {
        int axis = axes.count >= 0 ? onnx_axis(c, axes.item[i], rank) : i;
        if (!onnx_ok(c)) return;
        if (named[axis]) onnx_wrong(c, "axis %d is named twice", axis);
        named[axis] = true;
        options.before.dim[axis] = pads.item[i];
        options.after.dim[axis] = pads.item[count + i];
        if (!is_size(pads.item[i]) || !is_size(pads.item[count + i]))
            onnx_wrong(c, "pads of %lld and %lld", (long long)pads.item[i], (long long)pads.item[count + i]);
    }
    bool endless = !isfinite(value) && options.mode == 0 && sdlf_dtype_is_float(x.dtype);
    if (endless) options.value = 0;
    if (onnx_ok(c) && !isfinite((double)options.value)) onnx_unsupported(c, "padding with %g", value);
    if (onnx_ok(c) && c->opset >= 11 && !onnx_is_exact_number(c, 2))
        onnx_unsupported(c, "padding with %.0f, which float32 does not hold", value);
    if (onnx_ok(c) && options.mode != 0) x = cropped(c, x, &options);
    onnx_flow y = onnx_layer(c, "pad", &options, &x, 1);
    onnx_set_output(c, 0, endless ? padded_with(c, y, options.before, options.after, value) : y);
}

/* Crops or zero-pads both sides equally; an odd element goes to the end. */
static void convert_center_crop_pad(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    onnx_list size = onnx_known_integers(c, 1), axes = onnx_integers(c, "axes");
    int rank = x.shape.rank, count = axes.count >= 0 ? axes.count : rank;
    if (onnx_ok(c) && size.count != count) onnx_wrong(c, "%d sizes for %d axes", size.count, count);
    for (int i = 0; i < count && onnx_ok(c); i++) {
        int axis = onnx_axis(c, axes.count >= 0 ? axes.item[i] : i, rank);
        if (onnx_ok(c) && (size.item[i] < 1 || size.item[i] > INT32_MAX))
            onnx_wrong(c, "%lld elements of axis %d", (long long)size.item[i], axis);
        if (!onnx_ok(c)) return;
        if (size.item[i] == x.shape.dim[axis]) continue;
        if (onnx_batch_axis(c, x) == axis) x = onnx_batch_fixed(c, x);
        int64_t more = size.item[i] - x.shape.dim[axis];
        x = onnx_pad_axis(c, x, axis, more / 2, more - more / 2, 0);
    }
    onnx_set_output(c, 0, x);
}

const onnx_operator onnx_pad_operators[] = {
    {.type = "Pad",
     .since = 2,
     .minimum_inputs = 1,
     .maximum_inputs = 4,
     .known = 0xE,
     .attributes = " mode pads value ",
     .convert = convert_pad},
    {.type = "CenterCropPad",
     .since = 18,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " axes ",
     .convert = convert_center_crop_pad},
    {.type = NULL},
};
