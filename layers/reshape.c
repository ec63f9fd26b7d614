/* SPDX-License-Identifier: MIT */
/* reshape: (N, ...) viewed as (N, shape), or with `whole` anything viewed as shape; one dimension may be -1 and is
 * inferred. No operation: the output is the input's memory with another shape. */
#include "layers/layers_internal.h"

static const sdlf_field fields[] = {
    {.name = "shape",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_reshape_options, shape),
     .minimum = -1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "shape of one sample; a -1 is inferred"},
    {.name = "whole",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_reshape_options, whole),
     .help = "shape is the whole output's, including the batch"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_reshape_options *options = layer->options;
    sdlf_shape shape = options->shape, x = signature->input_shape[0];
    bool whole = options->whole;
    if (x.rank < 1 && !whole) return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input (N, ...), found a scalar");
    if (shape.rank >= SDLF_MAX_RANK && !whole)
        return sdlf_fail(SDLF_ERROR_SHAPE, "shape %s has rank %d: at most %d dimensions besides the batch",
                         sdlf_shape_print(shape).text, shape.rank, SDLF_MAX_RANK - 1);
    int64_t wanted = sdlf_shape_span(x, whole ? 0 : 1, x.rank);
    int open = -1;
    for (int axis = 0; axis < shape.rank; axis++) {
        if (shape.dim[axis] > 0) continue;
        if (shape.dim[axis] == 0 || open >= 0)
            return sdlf_fail(SDLF_ERROR_SHAPE, "shape %s: expected positive dimensions and at most one -1",
                             sdlf_shape_print(shape).text);
        open = axis;
    }
    sdlf_shape known = shape;
    if (open >= 0) known.dim[open] = 1;
    int64_t count = sdlf_shape_count(known);
    if (open >= 0 && count > 0 && wanted % count == 0) known.dim[open] = wanted / count;
    if (sdlf_shape_count(known) != wanted && whole && signature->batch > 1 && wanted % signature->batch == 0 &&
        sdlf_shape_count(shape) == wanted / signature->batch)
        return sdlf_fail(
            SDLF_ERROR_SHAPE,
            "shape %s does not hold the %lld elements of its input %s: samples are mixed or picked there: the model "
            "was made for batch 1, not %lld",
            sdlf_shape_print(shape).text, (long long)wanted, sdlf_shape_print(x).text, (long long)signature->batch);
    if (sdlf_shape_count(known) != wanted)
        return sdlf_fail(SDLF_ERROR_SHAPE, "shape %s does not hold the %lld elements of %sits input %s",
                         sdlf_shape_print(shape).text, (long long)wanted, whole ? "" : "a sample of ",
                         sdlf_shape_print(x).text);
    return sdlf_signature_add_output(signature, signature->input_dtype[0],
                                     whole ? known : sdlf_shape_prepend(x.dim[0], known));
}

const sdlf_layer_class sdlf_reshape_class = {
    .name = "reshape",
    .summary = "each sample under another shape",
    .options_size = sizeof(sdlf_reshape_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
};

sdlf_node sdlf_reshape(sdlf_model *model, sdlf_node x, const sdlf_reshape_options *options)
{
    return sdlf_model_add(model, &sdlf_reshape_class, options, &x, 1);
}
