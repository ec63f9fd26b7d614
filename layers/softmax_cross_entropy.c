/* softmax_cross_entropy: the mean over the batch of -sum t log p; or, with weights, their weighted sum.
 *
 *   logits (N,C), labels (N) int32 -> loss (1); p = softmax(logits), t = (1 - smoothing) onehot(label) + smoothing / C
 *   dlogits = (p - t) dloss / N. A label outside [0, C) makes the loss NaN.
 *   A third input of weights w (N) makes it sum w (-sum t log p), dlogits = (p - t) dloss w: rows of weight 0 do not count. */
#include "layers/layers_internal.h"

static const sdlf_field fields[] = {
    {.name = "smoothing",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_softmax_cross_entropy_options, smoothing),
     .maximum = 0.999999,
     .help = "share of the target that is spread over all classes"},
    {.name = NULL},
};

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_shape logits = signature->input_shape[0], labels = signature->input_shape[1];
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 2, "(N,C) of logits");
    if (status != SDLF_OK) return status;
    if (signature->input_dtype[1] != SDLF_INT32 || !sdlf_shape_equal(labels, sdlf_shape(logits.dim[0])))
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected int32 labels of shape %lld, found %s %s", (long long)logits.dim[0],
                         sdlf_dtype_name(signature->input_dtype[1]), sdlf_shape_print(labels).text);
    if (signature->input_count > 2) {
        status = sdlf_layer_check_rank(signature, 2, 1, "(N) of weights");
        if (status != SDLF_OK) return status;
        if (!sdlf_shape_equal(signature->input_shape[2], labels))
            return sdlf_fail(SDLF_ERROR_SHAPE, "expected weights of shape %s, found %s", sdlf_shape_print(labels).text,
                             sdlf_shape_print(signature->input_shape[2]).text);
    }
    status = sdlf_signature_add_output(signature, signature->dtype, sdlf_shape(1));
    if (status == SDLF_OK && signature->training)
        status = sdlf_signature_add_saved(signature, signature->dtype, logits); /* p */
    return status;
}

/* The third input, or an absent tensor. */
static sdlf_tensor weights_of(const sdlf_layer_context *context)
{
    return context->input_count > 2 ? context->input[2] : (sdlf_tensor){.dtype = SDLF_NONE};
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_softmax_cross_entropy_options *options = layer->options;
    sdlf_tensor logits = context->input[0];
    sdlf_tensor p = context->training ? context->saved[0] : sdlf_scratch(context, logits.dtype, logits.shape);
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD,
                                  .in = {logits, context->input[1], [3] = weights_of(context)},
                                  .out = {p, context->output[0], context->metrics},
                                  .cross_entropy = {.smoothing = options->smoothing},
                              });
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_softmax_cross_entropy_options *options = layer->options;
    return sdlf_emit(context,
                     &(sdlf_operation){
                         .kind = SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD,
                         .in = {context->saved[0], context->input[1], context->output_gradient[0], weights_of(context)},
                         .out = {context->input_gradient[0]},
                         .cross_entropy = {.smoothing = options->smoothing},
                     });
}

const sdlf_layer_class sdlf_softmax_cross_entropy_class = {
    .name = "softmax_cross_entropy",
    .summary = "mean cross-entropy of logits against labels: a loss",
    .options_size = sizeof(sdlf_softmax_cross_entropy_options),
    .fields = fields,
    .minimum_inputs = 2,
    .maximum_inputs = 3,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .is_loss = true,
    .has_metrics = true,
};

sdlf_node sdlf_softmax_cross_entropy(sdlf_model *model, sdlf_node logits, sdlf_node labels,
                                     const sdlf_softmax_cross_entropy_options *options)
{
    return sdlf_model_add(model, &sdlf_softmax_cross_entropy_class, options, (const sdlf_node[]){logits, labels}, 2);
}

sdlf_node sdlf_softmax_cross_entropy_weighted(sdlf_model *model, sdlf_node logits, sdlf_node labels, sdlf_node weights,
                                              const sdlf_softmax_cross_entropy_options *options)
{
    const sdlf_node inputs[] = {logits, labels, weights};
    return sdlf_model_add(model, &sdlf_softmax_cross_entropy_class, options, inputs, 3);
}
