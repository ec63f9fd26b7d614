/* SPDX-License-Identifier: MIT */
/* transpose: permutes the axes, including the batch: axis i of y is axis order[i] of x. dx is dy transposed by the
 * inverse permutation. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "order",
     .type = SDLF_FIELD_SHAPE,
     .offset = offsetof(sdlf_transpose_options, order),
     .minimum = 0,
     .maximum = SDLF_MAX_RANK - 1,
     .zero_means_default = true,
     .help = "input axis of each output axis, 0 being the batch; left out, they are reversed"},
    {.name = NULL},
};

/* Returns false if the options are not a permutation of `rank` axes. */
static bool order_of(int *order, const sdlf_layer *layer, int rank)
{
    sdlf_shape wanted = ((const sdlf_transpose_options *)layer->options)->order;
    bool used[SDLF_MAX_RANK] = {false};
    if (wanted.rank == 0) {
        for (int axis = 0; axis < rank; axis++) order[axis] = rank - 1 - axis;
        return true;
    }
    if (wanted.rank != rank) return false;
    for (int axis = 0; axis < rank; axis++) {
        order[axis] = (int)wanted.dim[axis];
        if (order[axis] < 0 || order[axis] >= rank || used[order[axis]]) return false;
        used[order[axis]] = true;
    }
    return true;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    int order[SDLF_MAX_RANK];
    sdlf_shape x = signature->input_shape[0], y = x;
    if (!order_of(order, layer, x.rank))
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected an order that names each axis of its input %s once",
                         sdlf_shape_print(x).text);
    for (int axis = 0; axis < x.rank; axis++) y.dim[axis] = x.dim[order[axis]];
    return sdlf_signature_add_output(signature, signature->input_dtype[0], y);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    int order[SDLF_MAX_RANK] = {0};
    order_of(order, layer, context->input[0].shape.rank);
    return sdlf_layer_copy(context, sdlf_layer_permuted(context->input[0], order), context->output[0]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    int order[SDLF_MAX_RANK] = {0};
    if (!sdlf_tensor_present(&context->input_gradient[0])) return SDLF_OK;
    order_of(order, layer, context->input[0].shape.rank);
    return sdlf_layer_copy(context, context->output_gradient[0],
                           sdlf_layer_permuted(context->input_gradient[0], order));
}

const sdlf_layer_class sdlf_transpose_class = {
    .name = "transpose",
    .summary = "axes in another order",
    .options_size = sizeof(sdlf_transpose_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_transpose(sdlf_model *model, sdlf_node x, const sdlf_transpose_options *options)
{
    return sdlf_model_add(model, &sdlf_transpose_class, options, &x, 1);
}
