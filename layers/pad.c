/* SPDX-License-Identifier: MIT */
/* pad: before[i] and after[i] elements around axis i; negative counts remove elements. The border is constant, or
 * continues x: with its edge element (edge), mirrored without that (reflect), or from the other end (wrap).
 *
 * Constant mode fills y, then copies x; if nothing is added, it only copies x. dx is dy without the border. The other
 * modes resample one axis after another, and dx sums over the copies of each element. */
#include "layers/resample.h"

enum { LIMIT = INT32_MAX };
static const char *const modes[] = {[SDLF_PAD_CONSTANT] = "constant",
                                    [SDLF_PAD_EDGE] = "edge",
                                    [SDLF_PAD_REFLECT] = "reflect",
                                    [SDLF_PAD_WRAP] = "wrap",
                                    NULL};

static const sdlf_field fields[] = {
    {.name = "before",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_pad_options, before),
     .minimum = -LIMIT,
     .maximum = LIMIT,
     .help = "elements before each axis, the batch first; negative: fewer"},
    {.name = "after",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_pad_options, after),
     .minimum = -LIMIT,
     .maximum = LIMIT,
     .help = "elements after each axis"},
    {.name = "value",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_pad_options, value),
     .minimum = -3.4e38,
     .maximum = 3.4e38,
     .help = "their value, if constant"},
    {.name = "mode",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_pad_options, mode),
     .choices = modes,
     .help = "a constant, or how x is extended"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_pad_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0], y = x;
    if (options->before.rank != x.rank || options->after.rank != x.rank)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected %d sizes before and after for its input %s, found %d and %d",
                         x.rank, sdlf_shape_print(x).text, options->before.rank, options->after.rank);
    for (int axis = 0; axis < x.rank; axis++) {
        int64_t before = options->before.dim[axis], after = options->after.dim[axis];
        int64_t cut = (before < 0 ? -before : 0) + (after < 0 ? -after : 0);
        if (cut >= x.dim[axis])
            return sdlf_fail(SDLF_ERROR_SHAPE, "padding %lld and %lld leaves nothing of axis %d of its input %s",
                             (long long)before, (long long)after, axis, sdlf_shape_print(x).text);
        y.dim[axis] += before + after;
    }
    return sdlf_signature_add_output(signature, signature->input_dtype[0], y);
}

/* The common region: of x without what is removed, of y without what is added. */
static sdlf_tensor common(const sdlf_layer *layer, sdlf_tensor tensor, bool is_input)
{
    const sdlf_pad_options *options = layer->options;
    int sign = is_input ? -1 : 1;
    for (int axis = 0; axis < tensor.shape.rank; axis++) {
        int64_t before = sign * options->before.dim[axis], after = sign * options->after.dim[axis];
        if (before < 0) before = 0;
        if (after < 0) after = 0;
        tensor = sdlf_tensor_narrow(tensor, axis, before, tensor.shape.dim[axis] - before - after);
    }
    return tensor;
}

static sdlf_status move(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_tensor from, bool from_input,
                        sdlf_tensor to, double value)
{
    if (!sdlf_tensor_present(&to)) return SDLF_OK;
    sdlf_tensor target = common(layer, to, !from_input);
    sdlf_status status = SDLF_OK;
    if (!sdlf_shape_equal(target.shape, to.shape)) status = sdlf_layer_fill(context, to, value);
    return status == SDLF_OK ? sdlf_layer_copy(context, common(layer, from, from_input), target) : status;
}

/* The resampling of each axis; returns the mask of those that change. */
static unsigned steps_of(sdlf_resample_options *steps, const sdlf_pad_options *options, int rank)
{
    unsigned axes = 0;
    for (int axis = 0; axis < rank; axis++) {
        steps[axis] =
            (sdlf_resample_options){.mode = (sdlf_resample_mode)(SDLF_RESAMPLE_EDGE + options->mode - SDLF_PAD_EDGE),
                                    .before = options->before.dim[axis]};
        if (options->before.dim[axis] != 0 || options->after.dim[axis] != 0) axes |= 1u << axis;
    }
    return axes;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_pad_options *options = layer->options;
    if (options->mode != SDLF_PAD_CONSTANT) {
        sdlf_resample_options steps[SDLF_MAX_RANK];
        unsigned axes = steps_of(steps, options, context->input[0].shape.rank);
        return sdlf_layer_resample(context, context->input[0], context->output[0], steps, axes);
    }
    return move(layer, context, context->input[0], true, context->output[0], (double)options->value);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_pad_options *options = layer->options;
    if (options->mode != SDLF_PAD_CONSTANT) {
        sdlf_resample_options steps[SDLF_MAX_RANK];
        unsigned axes = steps_of(steps, options, context->input[0].shape.rank);
        return sdlf_layer_resample_backward(context, context->output_gradient[0], context->input_gradient[0], steps,
                                            axes);
    }
    return move(layer, context, context->output_gradient[0], false, context->input_gradient[0], 0);
}

const sdlf_layer_class sdlf_pad_class = {
    .name = "pad",
    .summary = "a border around some axes",
    .options_size = sizeof(sdlf_pad_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_pad(sdlf_model *model, sdlf_node x, const sdlf_pad_options *options)
{
    return sdlf_model_add(model, &sdlf_pad_class, options, &x, 1);
}
