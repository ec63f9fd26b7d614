/* SPDX-License-Identifier: MIT */
/* tile: x repeated repeats[i] times along each axis i. dx is the sum of the repeated parts of dy. Each axis is one copy
 * of (outer, size inner) into (outer, times, size inner). */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "repeats",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_tile_options, repeats),
     .minimum = 1,
     .maximum = INT32_MAX,
     .help = "repeats along each axis, the batch first"},
    {.name = NULL},
};

static sdlf_shape repeats_of(const sdlf_layer *layer)
{
    return ((const sdlf_tile_options *)layer->options)->repeats;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    sdlf_shape times = repeats_of(layer), y = signature->input_shape[0];
    if (times.rank != y.rank)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected %d repeats for its input %s, found %d", y.rank,
                         sdlf_shape_print(y).text, times.rank);
    for (int axis = 0; axis < y.rank; axis++) {
        if (times.dim[axis] > INT64_MAX / y.dim[axis])
            return sdlf_fail(SDLF_ERROR_SHAPE, "its output has more elements than can be counted");
        y.dim[axis] *= times.dim[axis];
    }
    return sdlf_signature_add_output(signature, signature->input_dtype[0], y);
}

/* The last repeated axis; -1: none. */
static int last_repeated(sdlf_shape times)
{
    int axis = times.rank - 1;
    while (axis >= 0 && times.dim[axis] == 1) axis--;
    return axis;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_shape times = repeats_of(layer);
    sdlf_tensor now = context->input[0];
    int last = last_repeated(times);
    if (last < 0) return sdlf_layer_copy(context, now, context->output[0]);
    for (int axis = 0; axis <= last; axis++) {
        if (times.dim[axis] == 1) continue;
        sdlf_shape grown = now.shape;
        grown.dim[axis] *= times.dim[axis];
        sdlf_tensor next = axis == last ? context->output[0] : sdlf_scratch(context, now.dtype, grown);
        int64_t outer = sdlf_shape_span(now.shape, 0, axis), run = sdlf_shape_span(now.shape, axis, now.shape.rank);
        sdlf_shape seen = sdlf_shape(outer, times.dim[axis], run);
        sdlf_tensor from = sdlf_tensor_broadcast(sdlf_tensor_reshape(now, sdlf_shape(outer, 1, run)), seen);
        sdlf_status status = sdlf_layer_copy(context, from, sdlf_tensor_reshape(next, seen));
        if (status != SDLF_OK) return status;
        now = next;
    }
    return SDLF_OK;
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_shape times = repeats_of(layer);
    sdlf_tensor now = context->output_gradient[0], dx = context->input_gradient[0];
    int last = last_repeated(times);
    if (!sdlf_tensor_present(&dx)) return SDLF_OK;
    if (last < 0) return sdlf_layer_copy(context, now, dx);
    for (int axis = 0; axis <= last; axis++) {
        if (times.dim[axis] == 1) continue;
        sdlf_shape shrunk = now.shape;
        shrunk.dim[axis] /= times.dim[axis];
        sdlf_tensor next = axis == last ? dx : sdlf_scratch(context, now.dtype, shrunk);
        sdlf_status status = sdlf_layer_reduce(context, now, sdlf_shape_span(shrunk, 0, axis), times.dim[axis],
                                               sdlf_shape_span(shrunk, axis, shrunk.rank), SDLF_REDUCE_SUM, next);
        if (status != SDLF_OK) return status;
        now = next;
    }
    return SDLF_OK;
}

const sdlf_layer_class sdlf_tile_class = {
    .name = "tile",
    .summary = "repeated along its axes",
    .options_size = sizeof(sdlf_tile_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_tile(sdlf_model *model, sdlf_node x, const sdlf_tile_options *options)
{
    return sdlf_model_add(model, &sdlf_tile_class, options, &x, 1);
}
