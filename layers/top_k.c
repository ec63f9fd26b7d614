/* SPDX-License-Identifier: MIT */
/* top_k: the k largest (or smallest) elements along an axis, in order, and as output 1 their indices (int64). It has no
 * gradient. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "k",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_top_k_layer_options, k),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "how many"},
    {.name = "axis",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_top_k_layer_options, axis),
     .minimum = -SDLF_MAX_RANK,
     .maximum = SDLF_MAX_RANK - 1,
     .fallback = -1,
     .zero_means_default = true,
     .help = "axis to search along; -1 is the last"},
    {.name = "smallest",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_top_k_layer_options, smallest),
     .help = "the smallest instead of the largest"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_top_k_layer_options *options = layer->options;
    int axis;
    sdlf_shape x = signature->input_shape[0], y = x;
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status == SDLF_OK) status = sdlf_layer_axis(&axis, options->axis, x);
    if (status != SDLF_OK) return status;
    if (options->k > x.dim[axis])
        return sdlf_fail(SDLF_ERROR_SHAPE, "k is %d, and axis %d of its input %s has fewer elements", options->k, axis,
                         sdlf_shape_print(x).text);
    y.dim[axis] = options->k;
    status = sdlf_signature_add_output(signature, signature->dtype, y);
    return status == SDLF_OK ? sdlf_signature_add_output(signature, SDLF_INT64, y) : status;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_top_k_layer_options *options = layer->options;
    int axis = sdlf_layer_axis_from_start(options->axis, context->input[0].shape.rank);
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_TOP_K,
                                  .in = {context->input[0]},
                                  .out = {context->output[0], context->output[1]},
                                  .top_k = {.axis = axis, .smallest = options->smallest},
                              });
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    if (!sdlf_tensor_present(&context->input_gradient[0])) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "no gradient passes through top_k");
}

const sdlf_layer_class sdlf_top_k_class = {
    .name = "top_k",
    .summary = "the largest elements along an axis, and where they are",
    .options_size = sizeof(sdlf_top_k_layer_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_top_k(sdlf_model *model, sdlf_node x, const sdlf_top_k_layer_options *options)
{
    return sdlf_model_add(model, &sdlf_top_k_class, options, &x, 1);
}
