/* SPDX-License-Identifier: MIT */
/* softmax_cross_entropy: the mean over the rows of -sum t log p; or, with weights, their weighted sum. A row is a sample, or, of sequences
 * (N,T,C) with labels and weights (N,T), a position of one.
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
    bool sequences = logits.rank == 3;
    sdlf_status status =
        sequences ? sdlf_layer_check_float(signature, 0) : sdlf_layer_check_rank(signature, 0, 2, "(N,C) of logits");
    if (status != SDLF_OK) return status;
    sdlf_shape rows = sdlf_shape_without(logits, logits.rank - 1);
    if (signature->input_dtype[1] != SDLF_INT32 || !sdlf_shape_equal(labels, rows))
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected int32 labels of shape %s, found %s %s",
                         sdlf_shape_print(rows).text, sdlf_dtype_name(signature->input_dtype[1]),
                         sdlf_shape_print(labels).text);
    if (signature->input_count > 2) {
        status = sdlf_layer_check_rank(signature, 2, rows.rank, sequences ? "(N,T) of weights" : "(N) of weights");
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

/* Logits, probabilities or gradients as rows; labels and weights as one line. Absent tensors stay absent. */
static sdlf_tensor rows_of(sdlf_tensor tensor)
{
    sdlf_shape shape = tensor.shape;
    if (!sdlf_tensor_present(&tensor) || shape.rank < 3) return tensor;
    return sdlf_tensor_reshape(tensor, sdlf_shape(shape.dim[0] * shape.dim[1], shape.dim[2]));
}

static sdlf_tensor line_of(sdlf_tensor tensor)
{
    return sdlf_tensor_reshape(tensor, sdlf_shape(sdlf_tensor_count(&tensor)));
}

/* The third input, or an absent tensor. */
static sdlf_tensor weights_of(const sdlf_layer_context *context)
{
    return context->input_count > 2 ? line_of(context->input[2]) : (sdlf_tensor){.dtype = SDLF_NONE};
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_softmax_cross_entropy_options *options = layer->options;
    sdlf_tensor logits = rows_of(context->input[0]);
    sdlf_tensor p = context->training ? rows_of(context->saved[0]) : sdlf_scratch(context, logits.dtype, logits.shape);
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD,
                                  .in = {logits, line_of(context->input[1]), [3] = weights_of(context)},
                                  .out = {p, context->output[0], context->metrics},
                                  .cross_entropy = {.smoothing = options->smoothing},
                              });
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_softmax_cross_entropy_options *options = layer->options;
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD,
                                  .in = {rows_of(context->saved[0]), line_of(context->input[1]),
                                         context->output_gradient[0], weights_of(context)},
                                  .out = {rows_of(context->input_gradient[0])},
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
