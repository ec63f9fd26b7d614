/* SPDX-License-Identifier: MIT */
/* Resize and its predecessor Upsample: axis by axis, since all their interpolations are separable. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

/* Options common to all axes. */
typedef struct resizing {
    sdlf_resize_options options;
    bool crop, old;
} resizing;

/* Index of the attribute's text in the list, which ends with NULL. */
static int choice(onnx_context *c, const char *attribute, const char *fallback, const char *const *names)
{
    onnx_word word = onnx_text(c, attribute, fallback);
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(word.text, names[i]) == 0) return i;
    onnx_unsupported(c, "attribute '%s' is '%s'", attribute, word.text);
    return 0;
}

/* Opset 10 and Upsample: coordinates are j / scale; nearest rounds down, or up if the axis
 * shrinks. */
static resizing read_old(onnx_context *c)
{
    static const char *const modes[] = {"nearest", "linear", NULL};
    bool bilinear = strcmp(onnx_text(c, "mode", "nearest").text, "bilinear") == 0; /* allowed by opset 7 */
    resizing r = {.crop = false, .old = true};
    r.options.mode = bilinear ? SDLF_RESAMPLE_LINEAR : choice(c, "mode", "nearest", modes);
    r.options.coordinates = SDLF_COORDINATES_ASYMMETRIC;
    r.options.rounding = SDLF_ROUND_DOWN;
    return r;
}

static resizing read_new(onnx_context *c)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL}; /* in the order of sdlf_resample_mode */
    static const char *const coordinates[] = {
        "half_pixel",           "align_corners",      "asymmetric", "pytorch_half_pixel",
        "half_pixel_symmetric", "tf_crop_and_resize", NULL}; /* of sdlf_resample_coordinates */
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                            NULL}; /* of sdlf_resample_rounding */
    resizing r = {.crop = false};
    r.options.mode = choice(c, "mode", "nearest", modes);
    r.options.coordinates = choice(c, "coordinate_transformation_mode", "half_pixel", coordinates);
    r.options.rounding = choice(c, "nearest_mode", "round_prefer_floor", roundings);
    r.options.cubic = onnx_real(c, "cubic_coeff_a", -0.75f);
    r.options.exclude_outside = onnx_flag(c, "exclude_outside", false);
    r.options.antialias = onnx_flag(c, "antialias", false);
    r.crop = r.options.coordinates == SDLF_COORDINATES_CROP;
    r.options.extrapolates = r.crop;
    r.options.outside = onnx_real(c, "extrapolation_value", 0);
    if (r.options.cubic == 0) onnx_unsupported(c, "attribute 'cubic_coeff_a' of 0");
    return r;
}

/* Resizes one axis by `scale` to `size` elements. */
static onnx_flow resize_axis(onnx_context *c, onnx_flow x, const resizing *r, int axis, double scale, int64_t size,
                             float start, float end)
{
    sdlf_resize_options options = r->options;
    if (!onnx_ok(c) || (scale == 1 && size == x.shape.dim[axis] && !(r->crop && (start != 0 || end != 1)))) return x;
    if (!(scale > 0) || size < 1 || size > INT32_MAX) {
        onnx_wrong(c, "axis %d of %lld elements, resized by %g: 1 to %d elements were expected", axis,
                   (long long)x.shape.dim[axis], scale, INT32_MAX);
        return x;
    }
    if (r->old && scale < 1) options.rounding = SDLF_ROUND_UP;
    options.axes = sdlf_shape(axis);
    options.sizes = sdlf_shape(size);
    options.scale = (float)scale;
    options.start = start;
    options.end = end;
    return onnx_layer(c, "resize", &options, &x, 1);
}

/* The axes of scales and sizes, in order. */
static int read_axes(onnx_context *c, int rank, int *axis)
{
    onnx_list axes = onnx_integers(c, "axes");
    int count = axes.count < 0 ? rank : axes.count;
    if (count > rank) onnx_wrong(c, "attribute 'axes' has %d axes of %d", count, rank);
    for (int i = 0; i < count && onnx_ok(c); i++) axis[i] = axes.count < 0 ? i : onnx_axis(c, axes.item[i], rank);
    return onnx_ok(c) ? count : 0;
}

/* Reads one number per axis; fails if there are more or fewer. */
static bool read_numbers(onnx_context *c, const onnx_tensor *tensor, int count, double *number)
{
    if (tensor == NULL) return false;
    if (tensor->count != count) {
        onnx_wrong(c, "%lld scales, sizes or bounds; %d were expected", (long long)tensor->count, count);
        return false;
    }
    onnx_tensor_convert(tensor, 0, count, SDLF_FLOAT64, number);
    return true;
}

/* Computes scales from target sizes; with a policy all axes share one scale, the smallest or the largest of them. */
static void scales_from_sizes(onnx_context *c, sdlf_shape x, const int *axis, int count, double *scale, double *size)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    int policy = choice(c, "keep_aspect_ratio_policy", "stretch", policies);
    double common = policy == 1 ? INFINITY : 0;
    for (int i = 0; i < count; i++) {
        scale[i] = size[i] / (double)x.dim[axis[i]];
        common = policy == 1 ? fmin(common, scale[i]) : fmax(common, scale[i]);
    }
    for (int i = 0; i < count && policy != 0; i++) {
        scale[i] = common;
        size[i] = floor(common * (double)x.dim[axis[i]] + 0.5);
    }
}

static bool has_elements(const onnx_context *c, int input)
{
    return onnx_has(c, input) && !(onnx_is_constant(c, input) && c->input[input]->tensor.count == 0);
}

static void convert_resize(onnx_context *c)
{
    bool upsample = strcmp(c->type->type, "Upsample") == 0, old = upsample || c->opset < 11;
    onnx_flow x = onnx_in(c, 0);
    resizing r = old ? read_old(c) : read_new(c);
    int axis[SDLF_MAX_RANK], rank = x.shape.rank, count = read_axes(c, rank, axis), scales = old ? 1 : 2;
    double scale[SDLF_MAX_RANK], size[SDLF_MAX_RANK], bound[2 * SDLF_MAX_RANK];
    const Onnx__AttributeProto *attribute = onnx_attribute(c, "scales");
    if (!onnx_ok(c)) return;
    if (!old && has_elements(c, 3)) {
        if (!read_numbers(c, onnx_known(c, 3), count, size)) return;
        scales_from_sizes(c, x.shape, axis, count, scale, size);
    } else {
        if (upsample && c->opset < 9) {
            if (attribute == NULL || attribute->n_floats != (size_t)count) onnx_wrong(c, "attribute 'scales'");
            for (int i = 0; i < count && onnx_ok(c); i++) scale[i] = (double)attribute->floats[i];
        } else if (!read_numbers(c, onnx_known(c, scales), count, scale)) {
            return;
        }
        for (int i = 0; i < count && onnx_ok(c); i++) {
            float length = (float)scale[i] * (float)x.shape.dim[axis[i]]; /* in float32, as onnxruntime does */
            size[i] = floor((double)length);
        }
    }
    for (int i = 0; i < 2 * count; i++) bound[i] = i < count ? 0 : 1;
    if (onnx_ok(c) && r.crop) read_numbers(c, onnx_known(c, 1), 2 * count, bound);
    for (int i = 0; i < count && onnx_ok(c); i++) {
        bool countable = size[i] >= 1 && size[i] <= INT32_MAX;
        x = resize_axis(c, x, &r, axis[i], scale[i], countable ? (int64_t)size[i] : 0, (float)bound[i],
                        (float)bound[count + i]);
    }
    onnx_set_output(c, 0, x);
}

const onnx_operator onnx_resize_operators[] = {
    {.type = "Resize",
     .since = 10,
     .minimum_inputs = 1,
     .maximum_inputs = 4,
     .known = 0xE,
     .attributes = " antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
                   "keep_aspect_ratio_policy mode nearest_mode ",
     .convert = convert_resize},
    {.type = "Upsample",
     .since = 7,
     .until = 9,
     .minimum_inputs = 1,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " mode scales ",
     .convert = convert_resize},
    {.type = NULL},
};
