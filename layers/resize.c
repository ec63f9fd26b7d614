/* SPDX-License-Identifier: MIT */
/* resize: scales some axes, one after another; <sdlf/operations/indexing.h> has the modes and the coordinates. With
 * `sizes` an axis of L elements gets the given size, and the scale is size / L unless `scale` is set; otherwise the
 * size is floor(scale L), in float32. The gradient uses the same weights. */
#include "layers/resample.h"

#include <math.h>

static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
static const char *const coordinates[] = {"half_pixel",           "align_corners", "asymmetric", "pytorch_half_pixel",
                                          "half_pixel_symmetric", "crop",          NULL};
static const char *const roundings[] = {"half_down", "half_up", "down", "up", NULL};

static const sdlf_field fields[] = {
    {.name = "axes",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_resize_options, axes),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .zero_means_default = true,
     .help = "axes to resize, 0 being the batch, -1 the last; left out: all from 2 on"},
    {.name = "sizes",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_resize_options, sizes),
     .minimum = 1,
     .maximum = INT32_MAX,
     .zero_means_default = true,
     .help = "size of each; left out: from scale"},
    {.name = "scale",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_resize_options, scale),
     .minimum = 0,
     .maximum = 65536,
     .help = "factor for all of them"},
    {.name = "mode",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_resize_options, mode),
     .choices = modes,
     .help = "how an element is interpolated"},
    {.name = "coordinates",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_resize_options, coordinates),
     .choices = coordinates,
     .help = "how positions map to the input"},
    {.name = "rounding",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_resize_options, rounding),
     .choices = roundings,
     .help = "which element is nearest"},
    {.name = "cubic",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_resize_options, cubic),
     .minimum = -10,
     .maximum = 10,
     .fallback = -0.75,
     .zero_means_default = true,
     .help = "parameter of Keys's kernel"},
    {.name = "start",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_resize_options, start),
     .minimum = -1e6,
     .maximum = 1e6,
     .help = "crop: its start, as a fraction of the axis"},
    {.name = "end",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_resize_options, end),
     .minimum = -1e6,
     .maximum = 1e6,
     .fallback = 1,
     .zero_means_default = true,
     .help = "crop: its end"},
    {.name = "extrapolates",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_resize_options, extrapolates),
     .help = "elements outside of the input are `outside`, not its last element"},
    {.name = "outside",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_resize_options, outside),
     .minimum = -3.4e38,
     .maximum = 3.4e38,
     .help = "value of those elements"},
    {.name = "antialias",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_resize_options, antialias),
     .help = "shrinking averages over all elements that it covers"},
    {.name = "exclude_outside",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_resize_options, exclude_outside),
     .help = "elements beyond the ends have weight 0"},
    {.name = NULL},
};

/* The axis of the i-th entry of the options; -1 past the last. */
static int axis_at(const sdlf_resize_options *options, int i, int rank)
{
    if (options->axes.rank == 0) return i + 2 < rank ? i + 2 : -1;
    if (i >= options->axes.rank) return -1;
    return sdlf_layer_axis_from_start((int)options->axes.dim[i], rank);
}

static int64_t size_of(const sdlf_resize_options *options, int i, int64_t length)
{
    if (options->sizes.rank > 0) return options->sizes.dim[i];
    return (int64_t)floorf(options->scale * (float)length);
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_resize_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0], y = x;
    unsigned used = 0;
    sdlf_status status = options->mode == 0 ? SDLF_OK : sdlf_layer_check_float(signature, 0);
    if (status != SDLF_OK) return status;
    int count = options->axes.rank > 0 ? options->axes.rank : x.rank - 2;
    if (options->sizes.rank > 0 ? options->sizes.rank != count : !(options->scale > 0))
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected a scale, or a size for each of its %d axes, found %d", count,
                         options->sizes.rank);
    for (int i = 0; i < count; i++) {
        int axis;
        status = sdlf_layer_axis(&axis, options->axes.rank > 0 ? (int)options->axes.dim[i] : i + 2, x);
        if (status != SDLF_OK) return status;
        if (used >> axis & 1) return sdlf_fail(SDLF_ERROR_SHAPE, "axis %d is named twice", axis);
        used |= 1u << axis;
        y.dim[axis] = size_of(options, i, x.dim[axis]);
        double scale = (double)options->scale * (double)x.dim[axis];
        if (options->sizes.rank > 0 && options->scale > 0 && (scale < 0.5 || x.dim[axis] > INT32_MAX))
            return sdlf_fail(SDLF_ERROR_SHAPE, "scale %g leaves nothing of axis %d of its input %s",
                             (double)options->scale, axis, sdlf_shape_print(x).text);
    }
    return sdlf_signature_add_output(signature, signature->input_dtype[0], y);
}

/* The resampling of each axis; returns the mask of those that change. */
static unsigned steps_of(sdlf_resample_options *steps, const sdlf_layer *layer, sdlf_shape x, sdlf_shape y)
{
    const sdlf_resize_options *options = layer->options;
    bool crops = options->coordinates == SDLF_COORDINATES_CROP;
    unsigned axes = 0;
    for (int i = 0; axis_at(options, i, x.rank) >= 0; i++) {
        int axis = axis_at(options, i, x.rank);
        double asked = (double)y.dim[axis] / (double)x.dim[axis];
        steps[axis] = (sdlf_resample_options){
            .mode = (sdlf_resample_mode)options->mode,
            .coordinates = (sdlf_resample_coordinates)options->coordinates,
            .rounding = (sdlf_resample_rounding)options->rounding,
            .scale = options->scale > 0 ? (double)options->scale : asked,
            .cubic = options->cubic,
            .start = options->start,
            .end = options->end,
            .outside = options->outside,
            .extrapolates = options->extrapolates,
            .antialias = options->antialias,
            .exclude_outside = options->exclude_outside,
        };
        if (crops || steps[axis].scale != 1 || x.dim[axis] != y.dim[axis]) axes |= 1u << axis;
    }
    return axes;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_resample_options steps[SDLF_MAX_RANK];
    unsigned axes = steps_of(steps, layer, context->input[0].shape, context->output[0].shape);
    return sdlf_layer_resample(context, context->input[0], context->output[0], steps, axes);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_resample_options steps[SDLF_MAX_RANK];
    unsigned axes = steps_of(steps, layer, context->input[0].shape, context->output[0].shape);
    return sdlf_layer_resample_backward(context, context->output_gradient[0], context->input_gradient[0], steps, axes);
}

const sdlf_layer_class sdlf_resize_class = {
    .name = "resize",
    .summary = "axes enlarged or shrunk",
    .options_size = sizeof(sdlf_resize_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_resize(sdlf_model *model, sdlf_node x, const sdlf_resize_options *options)
{
    return sdlf_model_add(model, &sdlf_resize_class, options, &x, 1);
}
