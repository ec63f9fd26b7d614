/* SPDX-License-Identifier: MIT */
/* flatten: (N, ...) viewed as (N, product). No operation: the output is the input's memory with another shape. */
#include "layers/layers_internal.h"

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_shape x = signature->input_shape[0];
    if (x.rank < 1) return sdlf_fail(SDLF_ERROR_SHAPE, "expected an input (N, ...), found a scalar");
    return sdlf_signature_add_output(signature, signature->input_dtype[0],
                                     sdlf_shape(x.dim[0], sdlf_shape_span(x, 1, x.rank)));
}

const sdlf_layer_class sdlf_flatten_class = {
    .name = "flatten",
    .summary = "each sample as one row",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
};

sdlf_node sdlf_flatten(sdlf_model *model, sdlf_node x)
{
    return sdlf_model_add(model, &sdlf_flatten_class, NULL, &x, 1);
}
