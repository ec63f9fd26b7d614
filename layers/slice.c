/* SPDX-License-Identifier: MIT */
/* slice: along each named axis, the elements start, start + step, ... before end. As in numpy, negative bounds count
 * from the end, bounds outside are clamped, and a negative step goes backwards. dx is dy at the selected elements, and
 * 0 elsewhere. */
#include "layers/views.h"

enum { LIMIT = INT32_MAX };

static const sdlf_field fields[] = {
    {.name = "axes",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_slice_options, axes),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .help = "axes to slice, 0 being the batch, -1 the last"},
    {.name = "start",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_slice_options, start),
     .minimum = -LIMIT,
     .maximum = LIMIT,
     .help = "first index along each"},
    {.name = "end",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_slice_options, end),
     .minimum = -LIMIT,
     .maximum = LIMIT,
     .help = "first index along each that is left out"},
    {.name = "step",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_slice_options, step),
     .minimum = -LIMIT,
     .maximum = LIMIT,
     .zero_means_default = true,
     .help = "step of the slice, not 0; left out: 1"},
    {.name = NULL},
};

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The selected part of `whole`, as a view; dimensions of 0 or less if it is empty. */
static sdlf_tensor part_of(const sdlf_layer *layer, sdlf_tensor whole)
{
    const sdlf_slice_options *options = layer->options;
    int64_t size = (int64_t)sdlf_dtype_size(whole.dtype);
    sdlf_tensor part = whole;
    for (int i = 0; i < options->axes.rank; i++) {
        int axis = sdlf_layer_axis_from_start((int)options->axes.dim[i], whole.shape.rank);
        int64_t length = whole.shape.dim[axis], step = options->step.rank ? options->step.dim[i] : 1;
        int64_t start = options->start.dim[i], end = options->end.dim[i];
        start = clamp(start < 0 ? start + length : start, step < 0 ? -1 : 0, step < 0 ? length - 1 : length);
        end = clamp(end < 0 ? end + length : end, step < 0 ? -1 : 0, length);
        int64_t reach = step < 0 ? start - end : end - start, stride = step < 0 ? -step : step;
        part.shape.dim[axis] = reach <= 0 ? 0 : (reach + stride - 1) / stride;
        part.offset += start * whole.stride[axis] * size;
        part.stride[axis] = whole.stride[axis] * step;
    }
    return part;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_slice_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0];
    bool used[SDLF_MAX_RANK] = {false};
    int count = options->axes.rank;
    if (options->start.rank != count || options->end.rank != count ||
        (options->step.rank != count && options->step.rank != 0))
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected a start, an end and a step for each of %d axes", count);
    for (int i = 0; i < count; i++) {
        int axis;
        sdlf_status status = sdlf_layer_axis(&axis, (int)options->axes.dim[i], x);
        if (status != SDLF_OK) return status;
        if (used[axis]) return sdlf_fail(SDLF_ERROR_SHAPE, "axis %d is named twice", axis);
        if (options->step.rank && options->step.dim[i] == 0) return sdlf_fail(SDLF_ERROR_SHAPE, "a step is 0");
        used[axis] = true;
    }
    sdlf_tensor whole = sdlf_tensor_view(signature->input_dtype[0], x, NULL);
    return sdlf_signature_add_output(signature, whole.dtype, part_of(layer, whole).shape);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    return sdlf_layer_copy(context, part_of(layer, context->input[0]), context->output[0]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_tensor dx = context->input_gradient[0];
    if (!sdlf_tensor_present(&dx)) return SDLF_OK;
    sdlf_status status = sdlf_layer_fill(context, dx, 0);
    if (status != SDLF_OK) return status;
    return sdlf_layer_copy(context, context->output_gradient[0], part_of(layer, dx));
}

const sdlf_layer_class sdlf_slice_class = {
    .name = "slice",
    .summary = "a part along some axes",
    .options_size = sizeof(sdlf_slice_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_slice(sdlf_model *model, sdlf_node x, const sdlf_slice_options *options)
{
    return sdlf_model_add(model, &sdlf_slice_class, options, &x, 1);
}
