/* Pad: with a constant, or with the input's own elements, which are gathered along each axis. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/fold.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

static pad_mode mode_of(onnx_context *c)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    onnx_word mode = onnx_text(c, "mode", "constant");
    for (int i = 0; i < 4; i++)
        if (strcmp(mode.text, names[i]) == 0) return (pad_mode)i;
    onnx_wrong(c, "attribute 'mode' is '%s'", mode.text);
    return PAD_CONSTANT;
}

/* Which element of `length` stands at `position`, which may lie outside. */
static int64_t source(pad_mode mode, int64_t position, int64_t length)
{
    if (mode == PAD_EDGE) return position < 0 ? 0 : position >= length ? length - 1 : position;
    if (mode == PAD_WRAP) return (position % length + length) % length;
    if (length == 1) return 0;
    int64_t period = 2 * (length - 1), at = (position % period + period) % period;
    return at < length ? at : period - at;
}

/* The axis with its elements in places -before .. length + after - 1. */
static onnx_flow pad_axis(onnx_context *c, onnx_flow x, int axis, int64_t before, int64_t after, pad_mode mode)
{
    int64_t length = x.shape.dim[axis], count = length + before + after;
    if (!onnx_ok(c) || (before == 0 && after == 0)) return x;
    if (count < 1 || count > ONNX_FOLD_LIMIT) {
        onnx_wrong(c, "axis %d of %lld elements would have %lld", axis, (long long)length, (long long)count);
        return x;
    }
    onnx_tensor index = onnx_new_tensor(c, ONNX_INT64, sdlf_shape(count));
    for (int64_t i = 0; onnx_ok(c) && i < count; i++) {
        int64_t at = source(mode, i - before, length);
        memcpy((char *)index.data + (size_t)i * sizeof at, &at, sizeof at);
    }
    onnx_flow operands[] = {x, onnx_constant_layer(c, &index)};
    return onnx_layer(c, "gather", &(sdlf_gather_options){.axis = axis - x.shape.rank}, operands, 2);
}

static void convert_pad(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int rank = x.shape.rank;
    onnx_list pads = c->opset < 11 ? onnx_integers(c, "pads") : onnx_known_integers(c, 1);
    onnx_list axes = onnx_has(c, 3) ? onnx_known_integers(c, 3) : (onnx_list){NULL, -1};
    double value = c->opset < 11 ? (double)onnx_real(c, "value", 0) : onnx_known_number(c, 2, 0);
    pad_mode mode = mode_of(c);
    sdlf_pad_options options = {.before = {.rank = rank}, .after = {.rank = rank}, .value = (float)value};
    int count = axes.count >= 0 ? axes.count : rank;
    if (onnx_ok(c) && pads.count != 2 * count) onnx_wrong(c, "%d pads for %d axes", pads.count, count);
    for (int i = 0; i < count && onnx_ok(c); i++) {
        int axis = axes.count >= 0 ? onnx_axis(c, axes.item[i], rank) : i;
        if (!onnx_ok(c)) return;
        options.before.dim[axis] = pads.item[i];
        options.after.dim[axis] = pads.item[count + i];
        if (llabs(pads.item[i]) > INT32_MAX || llabs(pads.item[count + i]) > INT32_MAX)
            onnx_wrong(c, "pads of %lld and %lld", (long long)pads.item[i], (long long)pads.item[count + i]);
    }
    if (mode == PAD_CONSTANT) {
        if (onnx_ok(c) && !isfinite(value)) onnx_unsupported(c, "padding with %g", value);
        onnx_give(c, 0, onnx_layer(c, "pad", &options, &x, 1));
        return;
    }
    for (int i = 0; i < rank; i++) x = pad_axis(c, x, i, options.before.dim[i], options.after.dim[i], mode);
    onnx_give(c, 0, x);
}

const onnx_operator onnx_pad_operators[] = {
    {.type = "Pad",
     .since = 2,
     .minimum_inputs = 1,
     .maximum_inputs = 4,
     .known = 0xE,
     .attributes = " mode pads value ",
     .convert = convert_pad},
    {.type = NULL},
};
